"""build_dataloader over a text file: every window once a pass, ranks and workers alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from training.loader import build_dataloader
from training.text_loader import EpochBatches


class Letters:
    """One id a character."""

    eos_token_id, pad_token_id = 1, 0

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 250 + 2 for letter in text]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "{chr(65 + n % 26) * (20 + n % 7)}{n}"}}\n' for n in range(60)))
    return path


def rows(loader) -> list[tuple]:
    return [tuple(row) for batch in loader for row in batch["input_ids"].tolist()]


def test_each_pass_reads_every_window_once_in_another_order(text: Path) -> None:
    loader = build_dataloader(text, Letters(), batch_size=8, max_seq_len=16)
    fixed = build_dataloader(text, Letters(), batch_size=8, max_seq_len=16, shuffle=False)
    first, second, plain = rows(loader), rows(loader), rows(fixed)
    assert len(first) == len(loader.dataset) and sorted(first) == sorted(second) == sorted(plain)
    assert first != second and first != plain and plain == rows(fixed)
    batch = next(iter(fixed))
    assert set(batch) == {"input_ids", "labels", "attention_mask", "position_ids"}
    assert torch.equal(batch["labels"][:, :-1], batch["input_ids"][:, 1:])
    assert len(rows(build_dataloader(text, Letters(), batch_size=7, max_seq_len=16, drop_last=True))) % 7 == 0


def test_workers_and_a_stride_change_no_window(text: Path) -> None:
    plain = rows(build_dataloader(text, Letters(), max_seq_len=16, stride=4, shuffle=False))
    workers = build_dataloader(text, Letters(), max_seq_len=16, stride=4, shuffle=False, num_workers=1)
    assert workers.persistent_workers and not workers.pin_memory
    assert rows(workers) == plain
    assert len(plain) > 3 * len(rows(build_dataloader(text, Letters(), max_seq_len=16)))


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("windows", [40, 41, 43, 47])
def test_ranks_take_equal_steps_and_share_the_windows(windows: int, world: int) -> None:
    ranks = [EpochBatches(windows, 8, shuffle=True, drop_last=False, rank=rank, world=world) for rank in range(world)]
    steps = [[*one] for one in ranks]
    assert {len(one) for one in steps} == {len(ranks[0])}
    assert all(len({len(batch) for batch in step}) == 1 for step in zip(*steps, strict=True))
    seen = [window for one in steps for batch in one for window in batch]
    assert len(set(seen)) == len(seen) == windows // world * world


def test_a_tokenizer_without_a_pad_id_is_refused_or_given_one(text: Path) -> None:
    tokenizer = Letters()
    tokenizer.pad_token_id = -1
    with pytest.raises(ValueError, match="the pad id is -1, no id of a vocabulary"):
        build_dataloader(text, tokenizer)
    assert len(rows(build_dataloader(text, tokenizer, max_seq_len=16, pad_id=1))) > 50
