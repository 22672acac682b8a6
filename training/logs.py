"""Where the figures of a run go: one hook `log(dict)`, and the same for services that are installed.

In: mappings with `step` and figures. Out: lines, or records of TensorBoard, Weights & Biases or MLflow. DVCLive, the
house's own, is hooked in by flows.train. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Log = Callable[[Mapping[str, float]], None]

NEEDS = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
SERVICES = ("lines", *NEEDS)


def log_to(service: str, folder: Path, facts: Mapping[str, Any]) -> Log:
    """The hook of one of SERVICES. folder: of the run; facts: what names it (fingerprint, git revision, params).

    Raises ValueError for a service that is not known, and ImportError saying what to install.
    """
    if service == "lines":
        return lambda figures: print(json.dumps(dict(figures)), flush=True)
    if service not in NEEDS:
        raise ValueError(f"log is {service!r}; use one of {', '.join(SERVICES)}")
    try:
        module = importlib.import_module(NEEDS[service])
    except ImportError as error:
        raise ImportError(f"the log goes to {service}, which is not installed: pip install {service}") from error
    return {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}[service](module, folder, facts)


def _tensorboard(module: Any, folder: Path, facts: Mapping[str, Any]) -> Log:
    writer = module.SummaryWriter(str(folder / "tensorboard"))
    writer.add_text("run", json.dumps(dict(facts)))

    def log(figures: Mapping[str, float]) -> None:
        for name, value in _without_step(figures).items():
            writer.add_scalar(name, value, int(figures["step"]))
        writer.flush()

    return log


def _wandb(module: Any, folder: Path, facts: Mapping[str, Any]) -> Log:
    run = module.init(dir=str(folder), name=folder.name, config=dict(facts), mode="offline")
    return lambda figures: run.log(_without_step(figures), step=int(figures["step"]))


def _mlflow(module: Any, folder: Path, facts: Mapping[str, Any]) -> Log:
    module.set_tracking_uri((folder / "mlflow").absolute().as_uri())
    module.start_run(run_name=folder.name)
    module.log_params({name: str(value) for name, value in facts.items()})
    return lambda figures: module.log_metrics(_without_step(figures), step=int(figures["step"]))


def _without_step(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if name != "step"}
