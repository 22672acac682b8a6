"""Processes that train together: equal steps, one order, one loss; and uneven shards hold nobody up.

One subprocess forks the ranks, so that torch is imported once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pin_maker import lay_pin

ROOT = Path(__file__).parents[1]
SECTION = {
    "seed": 1, "batch_size": 12, "steps": 4, "learning_rate": 0.005, "warmup_steps": 2, "weight_decay": 0.1,
    "layers": 1, "heads": 2, "width": 16, "labels": "shifted", "isolate_documents": True, "threads": 1,
    "device": "cpu", "log_every": 1, "validate_every": 2, "checkpoint_every": 2, "max_epochs": 99.0,
}  # fmt: skip
RANKS = """
import json, os, sys, tempfile
from pathlib import Path
import torch
from torch import distributed
from training.loader import build_dataloader
from training.params import TrainParams
from training.pin import open_pin
from training.train import train

root, section = Path(sys.argv[1]), json.loads(sys.argv[2])
torch.set_num_threads(1)

def work(rank, world, port):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    pin = open_pin("v1", root)
    params = TrainParams.of(section)
    log = (lambda figures: None) if rank else None
    train(pin, params, root=root, run=f"of-{world}", log=log)
    longer = TrainParams.of({**section, "steps": 8, "accumulate": 12 // world})
    train(pin, longer, root=root, run=f"of-{world}", resume=True)
    loader = build_dataloader(pin, batch_size=12, steps=5)
    validation = build_dataloader(pin, batch_size=12, split="validation")
    found = {
        "steps": [len(loader), len(validation)],
        "rows": [batch.input_ids.tolist() for batch in loader],
        "held": [batch.input_ids[batch.attention_mask].tolist() for batch in validation],
    }
    every = [found] * world
    if world > 1:
        distributed.all_gather_object(every, found)
    if rank == 0:
        (root / f"seen-{world}.json").write_text(json.dumps(every))
    if world > 1:
        distributed.destroy_process_group()

for world, port in zip(map(int, sys.argv[3].split(",")), sys.argv[4].split(",")):
    children = []
    for rank in range(world):
        child = os.fork()
        if not child:
            try:
                work(rank, world, port)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children), f"a rank of {world} failed"
"""


def ports(count: int) -> list[str]:
    import socket
    from contextlib import ExitStack

    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Case 32's shards of 7, 5 and 5 sequences, and all that 1 to 4 ranks made of them."""
    root = tmp_path_factory.mktemp("ranks")
    shards = [[[(n * 7 + k) % 90 + 3 for k in range(8 * size)] + [2]] for n, size in enumerate((7, 5, 5))]
    held = [[[(n * 5 + k) % 90 + 3 for k in range(30)] + [2] for n in range(4)]]
    lay_pin(root, {"a": {"train": shards, "validation": held}}, vocab_size=100, name="v1")
    worlds = [1, 2, 3, 4]
    words = [str(root), json.dumps(SECTION), ",".join(map(str, worlds)), ",".join(ports(len(worlds)))]
    known = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [sys.executable, "-c", RANKS, *words], env=known, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def losses(project: Path, world: int, name: str = "loss") -> list:
    return json.loads((project / "runs" / f"of-{world}" / "run.json").read_bytes())[name]


@pytest.mark.parametrize("world", [2, 3, 4])
def test_ranks_take_equal_steps_and_read_one_order(project: Path, world: int) -> None:
    """Rank and world come from torch.distributed; together the ranks read what one reads alone, and no row twice."""
    [alone] = json.loads((project / "seen-1.json").read_bytes())
    ranks = json.loads((project / f"seen-{world}.json").read_bytes())
    assert [one["steps"] for one in ranks] == [alone["steps"]] * world
    together = [[row for one in ranks for row in one["rows"][step]] for step in range(5)]
    assert together == alone["rows"]
    held = [[token for one in ranks for token in one["held"][step]] for step in range(len(alone["held"]))]
    assert held == alone["held"]


@pytest.mark.parametrize("world", [2, 3, 4])
def test_any_number_of_ranks_learns_what_one_does(project: Path, world: int) -> None:
    """Also resumed, and in pieces of one sequence: every target of a global batch weighs the same."""
    for name in ("loss", "validation"):
        expected, found = losses(project, 1, name), losses(project, world, name)
        assert [step for step, _ in found] == [step for step, _ in expected]
        assert [loss for _, loss in found] == pytest.approx([loss for _, loss in expected], abs=2e-5)


def test_an_epoch_reads_each_sequence_once(project: Path) -> None:
    [alone] = json.loads((project / "seen-1.json").read_bytes())
    rows = [tuple(row) for step in alone["rows"] for row in step]
    assert len(set(rows[:17])) == 17 and set(rows[:17]) == set(rows[17:34])
