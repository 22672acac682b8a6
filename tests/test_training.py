"""A run on a pin: the loss falls, resuming is exact, the record names the data, documents do not leak."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests.pin_maker import FINGERPRINT, lay_pin
from training.masks import attention_mask, document_ids
from training.model import GPT, summed_loss, targets
from training.params import TrainParams, check_repetition
from training.pin import Pin, open_pin
from training.record import git_revision, load_checkpoint
from training.train import learning_rate, main, train

ROOT = Path(__file__).parents[1]
SECTION = {
    "seed": 1, "batch_size": 8, "steps": 50, "learning_rate": 0.005, "warmup_steps": 5, "weight_decay": 0.1,
    "layers": 2, "heads": 2, "width": 32, "labels": "shifted", "isolate_documents": True, "threads": 1,
    "device": "cpu", "log_every": 1, "validate_every": 0, "checkpoint_every": 10, "max_epochs": 4.0,
}  # fmt: skip
PARAMS = TrainParams.of(SECTION)


def structured_documents(count: int, vocab_size: int, seed: int) -> list[list[int]]:
    """Zipf-like ids; the next is one of two followers of the last seven times out of ten."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, vocab_size - 2)
    draw = random.choice(vocab_size - 3, size=200_000, p=shares / shares.sum()) + 3
    followers = np.random.default_rng(0).integers(3, vocab_size, (vocab_size, 2))
    documents, at = [], 0
    for length in random.integers(5, 60, count):
        ids = [int(draw[at])]
        for place in range(int(length)):
            fresh = random.random() > 0.7
            ids.append(int(draw[at + place]) if fresh else int(followers[ids[-1], place % 2]))
        documents.append([*ids, 2])
        at += int(length) + 1
    return documents


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    train_documents = structured_documents(1200, 200, 1)
    corpus = {
        "a": {"train": [train_documents[:500], train_documents[500:]]},
        "b": {"train": [structured_documents(300, 200, 2)], "validation": [structured_documents(20, 200, 3)]},
    }
    lay_pin(root, corpus, width=32, vocab_size=200, name="v1")
    return root


@pytest.fixture(scope="module")
def pin(project: Path) -> Pin:
    return open_pin("v1", project)


@pytest.fixture(scope="module")
def whole(pin: Pin, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """An uninterrupted run."""
    return train(pin, PARAMS, root=tmp_path_factory.mktemp("whole"), run="whole")


def test_the_loss_falls(whole: dict) -> None:
    losses = [loss for _, loss in whole["loss"]]
    assert losses[0] == pytest.approx(math.log(200), abs=0.2)
    assert losses[-1] < losses[0] - 1.2
    assert whole["validation"] == [[50, pytest.approx(losses[-1], abs=0.4)]]


def test_the_record_names_data_code_and_params(pin: Pin, tmp_path: Path) -> None:
    seen: list[dict] = []
    params = replace(PARAMS, steps=4, log_every=2)
    given = train(pin, params, root=tmp_path, log=lambda figures: seen.append(dict(figures)))
    [folder] = (tmp_path / "runs").iterdir()
    record = json.loads((folder / "run.json").read_bytes())
    assert record == {"format": 1, **json.loads(json.dumps(given))}
    assert folder.name == record["run"] and folder.name.startswith(FINGERPRINT[:12])
    assert (record["fingerprint"], record["release"], record["position"]) == (FINGERPRINT, "v1", 32)
    assert (record["tokens"], record["git"], record["resumed_at"]) == (4 * 8 * 32, None, None)
    assert record["params"]["learning_rate"] == 0.005
    assert set(record["epochs"]) == {"a", "b"} and record["tokens_per_second"] > 0
    assert [figures["step"] for figures in seen] == [2, 4, 4]
    waits = {"wait_ms_p50", "wait_ms_p99", "wait_ms_max"}
    assert set(seen[0]) == {"step", "stage", "loss", "tokens_per_second", *waits}
    assert set(seen[2]) == {"step", "validation_loss", "validation_loss_of/source/b"}


def test_the_commit_is_that_of_the_project() -> None:
    revision = git_revision(ROOT)
    assert revision is None or len(revision.removesuffix("+changes")) == 40


@pytest.mark.parametrize("stop", [10, 30])
def test_a_run_goes_on_exactly_where_it_stopped(stop: int, pin: Pin, whole: dict, tmp_path: Path) -> None:
    def stopped(figures: dict) -> None:
        if figures["step"] == stop + 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(pin, PARAMS, root=tmp_path, run="r", log=stopped)
    record = train(pin, PARAMS, root=tmp_path, run="r", resume=True)
    assert record["resumed_at"] == 8 * stop
    assert [step for step, _ in record["loss"]] == list(range(1, 51))
    assert record["loss"] == whole["loss"]


def test_a_checkpoint_of_other_data_is_refused(pin: Pin, tmp_path: Path) -> None:
    params = replace(PARAMS, steps=2)
    train(pin, params, root=tmp_path, run="r")
    corpus = {"a": {"train": [structured_documents(300, 200, 5)]}}
    lay_pin(tmp_path, corpus, width=32, vocab_size=200, fingerprint="cd" * 32)
    other = open_pin("cdcdcd", tmp_path)
    with pytest.raises(ValueError, match="belongs to data abababababab, this loader reads cdcdcdcdcdcd"):
        train(other, params, root=tmp_path, run="r", resume=True)
    longer = replace(params, steps=4, max_epochs=99.0)
    record = train(other, longer, root=tmp_path, run="r", resume=True, allow_other_pin=True)
    assert (record["resumed_at"], record["position"]) == (16, 32)
    with pytest.raises(FileNotFoundError, match="without --resume"):
        train(pin, params, root=tmp_path, run="nobody", resume=True)


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple:
            return Path.touch, (tmp_path / "touched",)

    torch.save({"loader": Hostile()}, tmp_path / "checkpoint.pt")
    with pytest.raises(Exception, match=r"[Ww]eights"):
        load_checkpoint(tmp_path, torch.device("cpu"))
    assert not (tmp_path / "touched").exists()


def test_both_label_conventions_give_the_same_loss(pin: Pin, tmp_path: Path) -> None:
    """Same targets: the rows of "model" are one token longer, and causal."""
    runs = [
        train(pin, replace(PARAMS, steps=5, labels=labels, isolate_documents=isolate), root=tmp_path)["loss"]
        for isolate in (False, True)
        for labels in ("shifted", "model")
    ]
    assert [loss for _, loss in runs[0]] == pytest.approx([loss for _, loss in runs[1]], abs=1e-4)
    assert [loss for _, loss in runs[2]] == pytest.approx([loss for _, loss in runs[3]], abs=1e-4)


def test_documents_do_not_leak_into_each_other() -> None:
    """Case 30: changing any token of document 1 leaves the logits of document 2, to the last bit."""
    torch.manual_seed(0)
    model = GPT(100, 2, 2, 16).eval()
    row = torch.tensor([[10, 11, 12, 2, 20, 21, 2, 2]])
    mask, places = attention_mask(document_ids([[4, 3]], 8)), torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])
    with torch.no_grad():
        logits = model(row, places, mask)
        for place in range(4):
            changed = row.clone()
            changed[0, place] = 99
            assert torch.equal(model(changed, places, mask)[0, 4:7], logits[0, 4:7])
        alone = model(row[:, 4:7])[0]
        assert torch.allclose(alone, logits[0, 4:7], atol=1e-6)
        assert not torch.allclose(model(row)[0, 4:7], logits[0, 4:7], atol=1e-3)
        assert torch.isfinite(logits).all()


def test_a_batch_without_targets_has_no_loss_and_breaks_nothing() -> None:
    logits, labels = torch.randn(2, 4, 10), torch.full((2, 4), -100)
    for kind in ("shifted", "model"):
        assert summed_loss(logits, labels, kind) == 0
        assert targets(labels, kind) == 0


def test_learning_rate_warms_up_and_falls_to_a_tenth() -> None:
    rates = [learning_rate(step, PARAMS) for step in (1, 5, 50, 60)]
    assert rates == pytest.approx([0.001, 0.005, 0.0005, 0.0005])
    assert learning_rate(1, replace(PARAMS, warmup_steps=0)) == pytest.approx(0.005, rel=0.01)


def test_too_many_passes_over_a_source_are_refused_before_any_work(pin: Pin, tmp_path: Path) -> None:
    """Case 42."""
    epochs = check_repetition(pin.schedule, PARAMS)
    assert epochs["b"] == pytest.approx(200 / pin.schedule.sources["b"]["train"].sequences)
    long = replace(PARAMS, steps=1000)
    with pytest.raises(ValueError, match=r"8000 positions repeat source b \(\d+ sequences\) .* allowed are 4; lower"):
        train(pin, long, root=tmp_path)
    assert not (tmp_path / "runs").exists()
    check_repetition(pin.schedule, replace(long, max_epochs_of={"b": 99.0}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 1}, "train.speed is an unknown key"),
        ({"steps": "50"}, "train.steps is '50', not of type int"),
        ({"steps": True}, "train.steps is True, not of type int"),
        ({"isolate_documents": 1}, "train.isolate_documents is 1, not of type bool"),
        ({"batch_size": 0}, "train.batch_size is 0, below 1"),
        ({"learning_rate": -1.0}, "train.learning_rate is -1.0, below 0"),
        ({"labels": "next"}, "train.labels is 'next', not 'shifted' or 'model'"),
        ({"max_epochs_of": 3}, "train.max_epochs_of is 3, not a mapping"),
    ],
)
def test_params_that_are_none_are_refused_by_name(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainParams.of({**SECTION, **change})


def test_missing_params_are_named() -> None:
    with pytest.raises(ValueError, match=r"train.heads is missing; train.steps is missing"):
        TrainParams.of({name: value for name, value in SECTION.items() if name not in ("steps", "heads")})


def test_the_repositorys_own_section_is_valid() -> None:
    TrainParams.of(yaml.safe_load((ROOT / "params.yaml").read_text())["train"])


def test_a_width_that_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="width 30 must be a multiple of twice the 4 heads"):
        GPT(10, 1, 4, 30)


def test_the_command_trains_and_says_where(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.json").write_text(json.dumps({**SECTION, "steps": 2}))
    main(["v1", "--params", str(project / "train.json"), "--root", str(project), "--run", "said"])
    printed = capsys.readouterr().out.splitlines()
    assert json.loads(printed[0])["step"] == 1
    assert printed[-1] == f"data {FINGERPRINT[:12]}: runs/said/run.json"


@pytest.mark.gpu
def test_a_gpu_learns_as_a_cpu_does(pin: Pin, whole: dict, tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    record = train(pin, replace(PARAMS, device="cuda"), root=tmp_path)
    assert record["loss"][-1][1] == pytest.approx(whole["loss"][-1][1], abs=0.1)
