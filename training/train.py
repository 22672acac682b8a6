"""The training loop: a pin and the params of a run in, a trained model and its record out.

`python -m training.train PIN --params train.json` needs a project's pins/ and nothing else of the house. It
verifies the pin, trains on a CPU or a GPU (several under torchrun), logs the fingerprint of its data, and
goes on from a checkpoint at the very sequence where it stopped. It builds and fetches no data.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from tasks.artifacts.canonical import digest
from training.arguments import asked_of
from training.batch import Batch
from training.classes import Classes
from training.loader import Loader, build_dataloader
from training.logs import Log, log_to
from training.model import GPT, summed_loss, target_losses, targets
from training.order import Shuffle
from training.params import TrainParams, check_repetition, learning_rate, micro_batch
from training.pin import Pin, open_pin
from training.rank import Rank
from training.record import (
    git_revision,
    like,
    load_checkpoint,
    read_record,
    save_checkpoint,
    surroundings,
    write_record,
)
from training.stall import StallMeter


def train(
    pin: Pin,
    params: TrainParams,
    *,
    root: Path = Path(),
    run: str | None = None,
    resume: bool = False,
    allow_other_pin: bool = False,
    log: Log | None = None,
    control_steps: int = 0,
) -> dict[str, Any]:
    """Train from the first step, or from the run's checkpoint, to the last; gives back the content of
    run.json.

    log({"step", "stage", "loss", "tokens_per_second", "wait_ms_p50", ...} or {"step", "validation_loss", ...}) is
    called on rank 0 alone. control_steps: after the last checkpoint, so many steps from the loader and as many with
    one batch repeated, to say what a loader that costs nothing would bring. Raises ValueError where a source would be
    repeated too often, where the ranks or `accumulate` do not divide the batch, and where the checkpoint belongs to
    other data.
    """
    training = Training(pin, params, root, run, log)
    if resume:
        training.resume(allow_other_pin)
    record = training.run()
    if control_steps:
        training.control(control_steps)
    return record


class Training:
    """One run: its model, optimizer, loader and record."""

    def __init__(self, pin: Pin, params: TrainParams, root: Path, run: str | None, log: Log | None) -> None:
        self.params, self.rank, self._log = params, Rank.here(params.device), log
        epochs = check_repetition(pin.schedule, params)
        self._micro = micro_batch(params, self.rank.world)
        if params.threads:
            torch.set_num_threads(params.threads)
        torch.manual_seed(params.seed)
        self.model = GPT(pin.schedule.vocab_size, params.layers, params.heads, params.width).to(self.rank.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=params.learning_rate, betas=(0.9, 0.95), weight_decay=params.weight_decay
        )
        self._wrapped = self._shared(self.model)
        self.loader = self._loader(pin, "train")
        held = (splits["validation"].sequences for splits in pin.schedule.sources.values() if "validation" in splits)
        self.validation = self._loader(pin, "validation") if sum(held) else None
        self.meter = StallMeter(self.rank.device)
        self._losses = torch.zeros(2, device=self.rank.device)
        self._starts = [stage.start for stage in pin.schedule.stages]
        name = run or f"{pin.fingerprint[:12]}-{digest(asdict(params))[:8]}"
        self.folder = root / "runs" / name
        self.record: dict[str, Any] = {
            "run": name, "fingerprint": pin.fingerprint, "release": pin.name, "git": git_revision(root),
            "params": asdict(params), "device": str(self.rank.device), "world": self.rank.world, **surroundings(),
            "resumed_at": None, "epochs": epochs, "position": 0, "tokens": 0, "seconds": 0.0, "loss": [],
            "validation": [], "validation_of": {}, "stall": {}, "control": None,
        }  # fmt: skip

    def resume(self, allow_other_pin: bool) -> None:
        """Take up the run's checkpoint; raises ValueError where it belongs to another pin and that is not
        allowed."""
        state = load_checkpoint(self.folder, self.rank.device)
        self.loader.load_state_dict(state["loader"], allow_other_pin=allow_other_pin)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._losses = state["losses"]
        before = read_record(self.folder)
        step = self.loader.position // self.params.batch_size
        kept = {name: _upto(step, before.get(name, [])) for name in ("loss", "validation")}
        of = {name: _upto(step, points) for name, points in before.get("validation_of", {}).items()}
        self.record.update(kept, validation_of=of, resumed_at=self.loader.position)

    def run(self) -> dict[str, Any]:
        """All steps that are left."""
        first, last = self.loader.position, self.params.steps
        for batch in self.meter.batches(self.loader):
            step = batch.position // self.params.batch_size
            self._losses += self._step(batch, step)
            self.meter.done()
            if _due(step, self.params.log_every, last):
                self._note(step, batch.position - first)
            if self.validation and _due(step, self.params.validate_every, last):
                self._validate(step, self.validation)
                self.meter.paused()
            if _due(step, self.params.checkpoint_every, last):
                self._save()
                self.meter.paused()
        return self.record

    def control(self, steps: int) -> dict[str, Any]:
        """`steps` steps (at most the run's) from the loader, then as many with one batch repeated: what a loader that
        takes no time would bring. The model is compiled and warm for both. The weights are lost to it."""
        steps = min(steps, self.params.steps)
        self.loader.rewind()
        rate = self._rate(islice(self.loader, steps))
        self.loader.rewind()
        repeated = self._rate(repeat(next(iter(self.loader)), steps))
        self.record["control"] = {"steps": steps, "tokens_per_second": repeated, "stall": 1 - rate / repeated}
        self._say(
            {"step": self.params.steps, "control_tokens_per_second": repeated, "control_stall": 1 - rate / repeated}
        )
        return dict(self.record["control"])

    def _rate(self, batches: Iterable[Batch]) -> float:
        """Tokens a second of all ranks over steps with `batches`, to the end of the last one's work on the device."""
        done, began = 0, time.perf_counter()
        for batch in batches:
            lost = self._step(batch, self.params.steps)
            done += self._tokens(self.params.batch_size)
        lost.tolist()
        return done / (time.perf_counter() - began)

    def _step(self, batch: Batch, step: int) -> Tensor:
        """One update; gives back (loss summed over targets, targets), float32 [2], of all ranks.

        Every target of the global batch weighs the same, whichever rank or piece it falls to.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.params)
        count = self.rank.summed(targets(batch.labels, self.params.labels).float())
        total = torch.zeros((), device=self.rank.device)
        for first in range(0, len(batch.input_ids), self._micro):
            whole = self._micro == len(batch.input_ids)
            part = batch if whole else batch.part(slice(first, first + self._micro))
            with self._unshared(first + self._micro < len(batch.input_ids)):
                loss = summed_loss(self._logits(self._wrapped, part), part.labels, self.params.labels)
                # DistributedDataParallel divides by the ranks; a mean over all targets must not.
                torch.autograd.backward(loss * (self.rank.world / count.clamp(min=1)))
            total += loss.detach().float()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return torch.stack([self.rank.summed(total), count])

    def _logits(self, model: Any, batch: Batch) -> Tensor:
        positions, mask = (batch.position_ids, batch.combined_mask()) if batch.isolated else (None, None)
        with self._precision():
            logits: Tensor = model(batch.input_ids, positions, mask)
        return logits

    @torch.no_grad()
    def _validate(self, step: int, batches: Loader) -> None:
        """Mean loss over the whole validation split, in its fixed order, and over what is of a source, a kind, a
        language."""
        batches.rewind()
        classes = Classes(batches.dataset)
        sums = torch.zeros(len(classes.names), 2, device=self.rank.device, dtype=torch.float64)
        for batch in batches:
            losses = target_losses(self._logits(self.model, batch), batch.labels, self.params.labels)
            of_3BT = torch.from_numpy(classes.of(batches.positions_of(batch))).to(sums.device)
            each_BT2 = torch.stack(losses, 2)[: of_3BT.shape[1]].double()
            for of_BT in of_3BT[:, :, : each_BT2.shape[1]]:
                sums.index_add_(0, of_BT.flatten(), each_BT2.flatten(0, 1))
        self._note_validation(step, dict(zip(classes.names, self.rank.summed(sums).tolist(), strict=True)))

    def _note_validation(self, step: int, sums: Mapping[tuple[str, str], Sequence[float]]) -> None:
        """sums: (dimension, member) -> (loss summed over its targets, their number)."""
        of_sources = [pair for (dimension, _), pair in sums.items() if dimension == "source"]
        mean = sum(loss for loss, _ in of_sources) / max(1.0, sum(count for _, count in of_sources))
        self.record["validation"].append([step, mean])
        named = {"/".join(name): loss / count for name, (loss, count) in sums.items() if count and all(name)}
        for name, value in named.items():
            self.record["validation_of"].setdefault(name, []).append([step, value])
        apart = {f"validation_loss_of/{name}": value for name, value in named.items()}
        self._say({"step": step, "validation_loss": mean, **apart})

    def _note(self, step: int, positions: int) -> None:
        loss, count = self._losses.tolist()
        self._losses.zero_()
        mean, seconds = loss / max(1.0, count), self.meter.seconds
        tokens, stall = self._tokens(positions), self.meter.figures(self.rank)
        rate = tokens / seconds
        self.record["loss"].append([step, mean])
        self.record.update(
            position=self.loader.position, tokens=tokens, seconds=seconds, tokens_per_second=rate, stall=stall
        )
        stage = bisect_right(self._starts, self.loader.position - 1) - 1
        waits = {f"wait_ms_{name}": value for name, value in stall["wait_ms"].items()}
        self._say({"step": step, "stage": stage, "loss": mean, "tokens_per_second": rate, **waits})

    def _tokens(self, positions: int) -> int:
        return positions * (self.loader.dataset.width - 1)

    def _say(self, figures: Mapping[str, float]) -> None:
        if self.rank.number == 0:
            write_record(self.folder, self.record)
            if self._log:
                self._log(figures)

    def _save(self) -> None:
        if self.rank.number == 0:
            parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            save_checkpoint(self.folder, {"loader": self.loader.state_dict(), "losses": self._losses, **parts})

    def _loader(self, pin: Pin, split: str) -> Loader:
        own, params = self.rank, self.params
        made: Loader = build_dataloader(
            pin, batch_size=params.batch_size, labels=params.labels, isolate_documents=params.isolate_documents,
            device=own.device, steps=params.steps, split=split, rank=own.number, world=own.world,
            shuffle=Shuffle(params.shuffle, params.shuffle_buffer),  # type: ignore[arg-type]
        )  # fmt: skip
        return made

    def _shared(self, model: GPT) -> Any:
        """The model as steps call it: compiled if asked for, gradients averaged over ranks if there are any."""
        made: Any = torch.compile(model) if self.params.compile else model
        if self.rank.world > 1:
            made = DistributedDataParallel(made, broadcast_buffers=False)
        return made

    def _unshared(self, more: bool) -> AbstractContextManager[Any]:
        """Gradients are exchanged once a step, with its last piece."""
        return self._wrapped.no_sync() if more and self.rank.world > 1 else nullcontext()

    def _precision(self) -> AbstractContextManager[Any]:
        if self.rank.device.type == "cuda":
            return torch.autocast("cuda", torch.bfloat16)
        return nullcontext()


def _due(step: int, every: int, last: int) -> bool:
    return step == last or (every > 0 and step % every == 0)


def _upto(step: int, points: list[list[Any]]) -> list[list[Any]]:
    return [[at, value] for at, value in points if at <= step]


def main(arguments: list[str] | None = None) -> None:
    """The command; prints one line a logged step and where the record lies."""
    asked = asked_of(arguments)
    if asked.like:
        name, section = like(json.loads(asked.like.read_bytes()))
    else:
        name, section = asked.pin, json.loads(asked.params.read_bytes())
    params, pin = TrainParams.of(section), open_pin(asked.pin or name, asked.root)
    run = asked.run or f"{pin.fingerprint[:12]}-{digest(asdict(params))[:8]}"
    facts = {"fingerprint": pin.fingerprint, "git": git_revision(asked.root), **asdict(params)}
    first = int(os.environ.get("RANK", 0)) == 0
    try:
        record = train(
            pin, params, root=asked.root, run=run, resume=asked.resume, allow_other_pin=asked.allow_other_pin,
            log=log_to(asked.log, asked.root / "runs" / run, facts) if first else None, control_steps=asked.control,
        )  # fmt: skip
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
    print(f"data {record['fingerprint'][:12]}: runs/{record['run']}/run.json")


if __name__ == "__main__":
    main()
