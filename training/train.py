"""The training loop: a pin and the params of a run in, a trained model and its record out.

`python -m training.train PIN --params train.json` needs a project's pins/ and nothing else of the house. It
verifies the pin, trains on a CPU or a GPU (several under torchrun), logs the fingerprint of its data, and
goes on from a checkpoint at the very sequence where it stopped. It builds and fetches no data.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed

from tasks.artifacts.canonical import digest
from training.loader import Batch, Loader, build_dataloader
from training.masks import attention_mask
from training.model import GPT, summed_loss, targets
from training.params import TrainParams, check_repetition
from training.pin import Pin, open_pin
from training.record import git_revision, load_checkpoint, read_record, save_checkpoint, write_record

Log = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Rank:
    """This process among those of the run, and its device."""

    number: int
    world: int
    device: torch.device

    @classmethod
    def here(cls, device: str) -> Rank:
        """From torchrun's environment, joining the others where there are any."""
        wanted = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        if wanted == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        world = int(os.environ.get("WORLD_SIZE", 1))
        if world > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if wanted == "cuda" else "gloo")
        return cls(int(os.environ.get("RANK", 0)), world, torch.device(wanted))

    def summed(self, tensor: Tensor) -> Tensor:
        """`tensor` summed over all ranks, in place."""
        if self.world > 1:
            distributed.all_reduce(tensor)
        return tensor


def train(
    pin: Pin,
    params: TrainParams,
    *,
    root: Path = Path(),
    run: str | None = None,
    resume: bool = False,
    allow_other_pin: bool = False,
    log: Log | None = None,
) -> dict[str, Any]:
    """Train from the first step, or from the run's checkpoint, to the last; gives back the content of
    run.json.

    log(step, {"loss", "tokens_per_second"} or {"validation_loss"}) is called on rank 0 alone. Raises
    ValueError where a source would be repeated too often, and where the checkpoint belongs to other data.
    """
    training = Training(pin, params, root, run, log)
    if resume:
        training.resume(allow_other_pin)
    return training.run()


class Training:
    """One run: its model, optimizer, loader and record."""

    def __init__(self, pin: Pin, params: TrainParams, root: Path, run: str | None, log: Log | None) -> None:
        self.params, self.rank, self._log = params, Rank.here(params.device), log
        epochs = check_repetition(pin.schedule, params)
        if params.threads:
            torch.set_num_threads(params.threads)
        torch.manual_seed(params.seed)
        self.model = GPT(pin.schedule.vocab_size, params.layers, params.heads, params.width).to(self.rank.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=params.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=params.weight_decay,
        )
        self.loader = self._loader(pin, "train")
        held = (splits["validation"].sequences for splits in pin.schedule.sources.values() if "validation" in splits)
        self.validation = self._loader(pin, "validation") if sum(held) else None
        name = run or f"{pin.fingerprint[:12]}-{digest(asdict(params))[:8]}"
        self.folder = root / "runs" / name
        self.record: dict[str, Any] = {
            "run": name, "fingerprint": pin.fingerprint, "release": pin.name, "git": git_revision(root),
            "params": asdict(params), "device": str(self.rank.device), "world": self.rank.world,
            "versions": {"torch": torch.__version__}, "resumed_at": None, "epochs": epochs, "position": 0,
            "tokens": 0, "seconds": 0.0, "loss": [], "validation": [],
        }  # fmt: skip

    def resume(self, allow_other_pin: bool) -> None:
        """Take up the run's checkpoint; raises ValueError where it belongs to another pin and that is not
        allowed."""
        state = load_checkpoint(self.folder, self.rank.device)
        self.loader.load_state_dict(state["loader"], allow_other_pin=allow_other_pin)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        before = read_record(self.folder)
        step = self.loader.position // self.params.batch_size
        for name in ("loss", "validation"):
            self.record[name] = [[at, value] for at, value in before.get(name, []) if at <= step]
        self.record["resumed_at"] = self.loader.position

    def run(self) -> dict[str, Any]:
        """All steps that are left."""
        started, first, last = time.perf_counter(), self.loader.position, self.params.steps
        losses = torch.zeros(2, device=self.rank.device)
        for batch in self.loader:
            step = batch.position // self.params.batch_size
            losses += self._step(batch, step)
            if step % self.params.log_every == 0 or step == last:
                self._note(step, losses, batch.position - first, time.perf_counter() - started)
                losses.zero_()
            if self.validation and _due(step, self.params.validate_every, last):
                self._validate(step, self.validation)
            if _due(step, self.params.checkpoint_every, last):
                self._save()
        return self.record

    def _step(self, batch: Batch, step: int) -> Tensor:
        """One update; gives back (loss summed over targets, targets), float32 [2], of all ranks."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.params)
        loss, count = self._loss(batch)
        whole = self.rank.summed(torch.stack([loss.detach().float(), count.float()]))
        torch.autograd.backward(loss / whole[1].clamp(min=1))
        for weight in self.model.parameters():
            if weight.grad is not None:
                self.rank.summed(weight.grad)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return whole

    def _loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(loss summed over this rank's targets, their number)."""
        mask = attention_mask(batch.document_ids_BT) if batch.document_ids_BT is not None else None
        with self._precision():
            logits = self.model(batch.inputs_BT, batch.position_ids_BT, mask)
        kind = self.params.labels
        return summed_loss(logits, batch.labels_BT, kind), targets(batch.labels_BT, kind)

    @torch.no_grad()
    def _validate(self, step: int, batches: Loader) -> None:
        """Mean loss over the whole validation split, in its fixed order."""
        batches.rewind()
        sums = torch.zeros(2, device=self.rank.device)
        for batch in batches:
            loss, count = self._loss(batch)
            sums += torch.stack([loss.float(), count.float()])
        loss, count = self.rank.summed(sums).tolist()
        self.record["validation"].append([step, loss / max(1.0, count)])
        self._say(step, {"validation_loss": loss / max(1.0, count)})

    def _note(self, step: int, losses: Tensor, positions: int, seconds: float) -> None:
        loss, count = losses.tolist()
        tokens = positions * (self.loader.dataset.width - 1)
        mean, rate = loss / max(1.0, count), tokens / seconds
        self.record["loss"].append([step, mean])
        self.record.update(position=self.loader.position, tokens=tokens, seconds=seconds, tokens_per_second=rate)
        self._say(step, {"loss": mean, "tokens_per_second": rate})

    def _say(self, step: int, figures: Mapping[str, float]) -> None:
        if self.rank.number == 0:
            write_record(self.folder, self.record)
            if self._log:
                self._log(step, figures)

    def _save(self) -> None:
        if self.rank.number == 0:
            parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            save_checkpoint(self.folder, {"loader": self.loader.state_dict(), **parts})

    def _loader(self, pin: Pin, split: str) -> Loader:
        own, params = self.rank, self.params
        return build_dataloader(
            pin, params.batch_size, labels=params.labels, isolate_documents=params.isolate_documents,
            device=own.device, steps=params.steps, split=split, rank=own.number, world=own.world,
        )  # fmt: skip

    def _precision(self) -> AbstractContextManager[Any]:
        if self.rank.device.type == "cuda":
            return torch.autocast("cuda", torch.bfloat16)
        return nullcontext()


def learning_rate(step: int, params: TrainParams) -> float:
    """Linear warm-up, then a half cosine down to a tenth; step counts from 1."""
    if step <= params.warmup_steps:
        return params.learning_rate * step / params.warmup_steps
    done = (step - params.warmup_steps) / max(1, params.steps - params.warmup_steps)
    return params.learning_rate * (0.55 + 0.45 * math.cos(math.pi * min(1.0, done)))


def _due(step: int, every: int, last: int) -> bool:
    return step == last or (every > 0 and step % every == 0)


def _print(step: int, figures: Mapping[str, float]) -> None:
    print(step, json.dumps(figures), flush=True)


def main(arguments: list[str] | None = None) -> None:
    """The command; prints one line a logged step and where the record lies."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description="Train on a pin.")
    parser.add_argument("pin", help="release name, tag or beginning of a fingerprint")
    parser.add_argument("--params", type=Path, required=True, help="JSON: the section train of params.yaml")
    parser.add_argument("--root", type=Path, default=Path(), help="the folder that holds pins/ and gets runs/")
    parser.add_argument("--run", help="name of the run; by default from data and params")
    parser.add_argument("--resume", action="store_true", help="go on from the run's checkpoint")
    parser.add_argument("--allow-other-pin", action="store_true", help="even where it belongs to other data")
    asked = parser.parse_args(arguments)
    params = TrainParams.of(json.loads(asked.params.read_bytes()))
    pin = open_pin(asked.pin, asked.root)
    try:
        record = train(
            pin, params, root=asked.root, run=asked.run, log=_print,
            resume=asked.resume, allow_other_pin=asked.allow_other_pin,
        )  # fmt: skip
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
    print(f"data {record['fingerprint'][:12]}: runs/{record['run']}/run.json")


if __name__ == "__main__":
    main()
