"""How long a GPU waits for data: a GPT of 124 M parameters in bfloat16 on a pin of random ids, beside one batch again.

`python -m benchmarks stall`; with `--device cpu --layers 1 --width 64 --steps 8` (python -m benchmarks.stall) it shows
that it runs where there is no GPU. In: nothing; it lays the pin. Out: figures. Several GPUs: torchrun
--nproc-per-node N -m benchmarks.stall --root DIR, after one run with --root DIR has laid the pin there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from benchmarks.loader_corpus import FINGERPRINT, lay
from benchmarks.loader_figures import report
from training.params import TrainParams
from training.pin import open_pin
from training.train import train


def params(asked: argparse.Namespace) -> TrainParams:
    """GPT-2's smallest shape unless asked otherwise, compiled on a GPU; the steps of the run warm it up."""
    on_gpu = asked.device == "cuda"
    section: dict[str, Any] = {
        "seed": 1, "batch_size": asked.batch, "steps": asked.steps, "learning_rate": 6e-4, "warmup_steps": 10,
        "weight_decay": 0.1, "layers": asked.layers, "heads": asked.width // 64, "width": asked.width,
        "labels": "shifted", "isolate_documents": asked.isolate, "threads": 0, "device": asked.device,
        "log_every": asked.steps, "validate_every": 0, "checkpoint_every": 0, "max_epochs": 1000.0, "compile": on_gpu,
    }  # fmt: skip
    return TrainParams.of(section)


def main(arguments: Sequence[str] = ()) -> None:
    """Stall as the loss of throughput against one repeated batch, the gaps between steps, and waits on the host."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stall", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768, help="a multiple of 64, the width of a head")
    parser.add_argument("--batch", type=int, default=16, help="sequences of 2,048 tokens, over all GPUs")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=50_000_000)
    parser.add_argument("--isolate", action="store_true", help="documents see themselves alone")
    parser.add_argument("--root", type=Path, help="where the pin lies, or is laid; a temporary folder by default")
    asked = parser.parse_args(list(arguments))
    if asked.device == "cuda" and not torch.cuda.is_available():
        report("data stall on a GPU", None, goal=0.01, better="lower", unit="share", why="no CUDA device")
        return
    with (
        tempfile.TemporaryDirectory(prefix="gristmill-stall-")
        if asked.root is None
        else nullcontext(asked.root) as name
    ):
        root = Path(name)
        pin = open_pin(FINGERPRINT, root) if (root / "pins").exists() else lay(root, asked.tokens)
        record = train(pin, params(asked), root=root, run="stall", control_steps=asked.steps)
    where = torch.cuda.get_device_name() if asked.device == "cuda" else "a CPU"
    control, waits = record["control"], record["stall"]
    report("tokens a second, one batch repeated", control["tokens_per_second"], unit="tokens", device=where)
    report(f"data stall on {where}", control["stall"], goal=0.01, better="lower", unit="share", device=where)
    for name, spread in (("wait of the host", waits["wait_ms"]), ("gap between steps", waits["gpu_idle_ms"])):
        for which, value in (spread or {}).items():
            report(f"{name}, {which}", value, unit="ms", device=where)


if __name__ == "__main__":
    main(sys.argv[1:])
