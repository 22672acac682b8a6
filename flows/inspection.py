"""Looking at a pin before a run: its batches held against the files, its documents' lengths, its vocabulary.

In: a pin's name. Out: what was found, as plain data, and a picture of the lengths. It changes no file of the pin and
nothing of a run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from training.inspect_batches import Coverage, Statistics, Verified
    from training.pin import Pin

BATCH = 8


@dataclass(frozen=True)
class Inspection:
    """fingerprint of the data; picture: where the histogram lies."""

    fingerprint: str
    batches: Verified
    documents: Statistics
    vocabulary: Coverage
    picture: Path

    @property
    def faults(self) -> int:
        """Faults of batches, and ids out of range."""
        return len(self.batches.faults) + self.vocabulary.out_of_range


def inspect(root: Path, pin: str, batches: int, samples: int, picture: Path | None = None) -> Inspection:
    """Inspect `batches` global batches of eight, all documents of train, and `samples` of its sequences.

    picture: an .svg to write; reports/docs/inspect-<fingerprint>.svg by default. Raises training.pin.PinError for a
    pin that is absent or damaged.
    """
    from training.inspect_batches import analyze_dataset_statistics, check_vocab_coverage, verify_pipeline
    from training.loader import build_dataloader
    from training.pin import open_pin
    from training.pin_rows import batches_at, document_lengths, sampled_rows

    held = open_pin(pin, root)
    schedule, place = held.schedule, picture or root / "reports" / "docs" / f"inspect-{held.fingerprint[:12]}.svg"
    loader = build_dataloader(held, batch_size=BATCH, labels="shifted", isolate_documents=True)
    chats = any(held.folder.glob("shard/*/train/*.loss"))
    verified = verify_pipeline(
        loader, batches, labels="shifted", vocab_size=schedule.vocab_size, expected=batches_at(held, BATCH, batches),
        loss_masked=chats,
    )  # fmt: skip
    lengths = analyze_dataset_statistics(document_lengths(held), schedule.tokens_per_sequence, picture=place)
    vocabulary = check_vocab_coverage(
        sampled_rows(held, samples), schedule.vocab_size, unknown_id=_unknown(root, held), num_samples=samples
    )
    return Inspection(held.fingerprint, verified, lengths, vocabulary, place)


def _unknown(root: Path, pin: Pin) -> int | None:
    """The unknown id by the card of the tokenizer that made the pin; None where another or no card lies there."""
    try:
        card: dict[str, Any] = json.loads(
            (root / "tokenizers" / pin.schedule.tokenizer["name"] / "card.json").read_bytes()
        )
        special = card["special"]["unk"] if card["sha256"] == pin.schedule.tokenizer["sha256"] else None
        return int(special["id"]) if special else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
