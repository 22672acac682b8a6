"""How long samples are, what that means for a width of max_seq_len, and what to do about it.

In: lengths, or samples. Out: figures, a histogram, and advice by thresholds that stand here. It changes nothing. The
thresholds are the project's own: each marks where the mend saves more than it costs to set up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from training.grouping import LengthGroupedBatches
from training.histogram import Bin, bins, svg, terminal

UTILISATION_LOW = 0.5
"""Below this share of ids in rows padded to max_seq_len, most of the compute is padding: pack, or pad less."""
CUT_SHARE_HIGH = 0.05
"""Above this share of ids beyond max_seq_len, cutting costs more text than most filters do."""
WIDE = 2
"""Where p95 times this is within max_seq_len, half the width serves 95 samples of 100."""
FEW = 100
"""With fewer samples, a p95 rests on less than five of them."""


@dataclass(frozen=True)
class Statistics:
    """Lengths in ids. p95: the least length that 95 of 100 samples do not exceed. utilisation: share of ids where
    each sample is cut or padded to max_seq_len; cut_share: of all ids, those beyond it; over: samples longer than
    it. advice: what follows, never empty."""

    count: int
    tokens: int
    min: int
    max: int
    mean: float
    median: float
    p95: int
    max_seq_len: int
    utilisation: float
    cut_share: float
    over: int
    histogram: tuple[Bin, ...]
    advice: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """For a terminal."""
        yield (
            f"{self.count:,} samples of {self.min:,} to {self.max:,} ids, {self.tokens:,} together: "
            f"mean {self.mean:,.1f}, median {self.median:,g}, p95 {self.p95:,}"
        )
        yield from terminal(self.histogram)
        yield f"padded or cut to {self.max_seq_len:,}: {self.utilisation:.1%} ids; {self.cut_share:.1%} of the ids lost"
        yield from self.advice

    def picture(self, title: str = "Lengths of samples") -> str:
        """The histogram as SVG, with the figures and the advice below."""
        lines = list(self.lines())
        return svg(self.histogram, title, [lines[0], *lines[1 + len(self.histogram) :]])


def analyze_dataset_statistics(
    samples: Iterable[Any] | np.ndarray, max_seq_len: int, *, picture: Path | None = None
) -> Statistics:
    """The figures of `samples`: an array of lengths, or samples (rows of ids, mappings of input_ids, whose padding by
    their own attention_mask is not counted). picture: an .svg to write. Raises ValueError for no samples."""
    lengths = samples if isinstance(samples, np.ndarray) and samples.ndim == 1 else lengths_of(samples)
    if not len(lengths) or max_seq_len < 1:
        raise ValueError(
            f"{len(lengths)} samples at max_seq_len={max_seq_len} have no figures; give at least one of each"
        )
    found = _figures(np.asarray(lengths, np.int64), max_seq_len)
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(found.picture(), encoding="utf-8")
    return found


def lengths_of(samples: Iterable[Any]) -> np.ndarray:
    """Ids of each sample, int64 [n]."""
    return np.fromiter((_length(sample) for sample in samples), np.int64)


def padding_shares(
    lengths: np.ndarray, max_seq_len: int, batch_size: int, buckets: tuple[int, ...]
) -> dict[str, float]:
    """Share of ids in batches of samples cut to max_seq_len: padded to it (fixed), to the longest of the batch
    (dynamic), the same in batches of like length (grouped), those to the next bucket (bucketed), and packed."""
    cut = np.minimum(lengths, max_seq_len)
    total = int(cut.sum())
    plain = [cut[at : at + batch_size] for at in range(0, len(cut), batch_size)]
    grouped = [cut[batch] for batch in LengthGroupedBatches(cut, batch_size, seed=0)]
    edges = np.array(sorted({*(bucket for bucket in buckets if bucket < max_seq_len), max_seq_len}))
    spent = {
        "fixed": len(cut) * max_seq_len,
        "dynamic": sum(len(batch) * int(batch.max()) for batch in plain),
        "grouped": sum(len(batch) * int(batch.max()) for batch in grouped),
        "bucketed": sum(len(batch) * int(edges[np.searchsorted(edges, batch.max())]) for batch in grouped),
        "packed": -(-total // max_seq_len) * max_seq_len,
    }
    return {name: total / max(1, positions) for name, positions in spent.items()}


def _length(sample: Any) -> int:
    if isinstance(sample, Mapping):
        mask = sample.get("attention_mask")
        return int(np.count_nonzero(np.asarray(mask))) if mask is not None else len(sample["input_ids"])
    return len(sample)


def _figures(lengths: np.ndarray, max_seq_len: int) -> Statistics:
    total = int(lengths.sum())
    kept = int(np.minimum(lengths, max_seq_len).sum())
    p95 = int(np.percentile(lengths, 95, method="inverted_cdf"))
    used, lost = kept / (len(lengths) * max_seq_len), (total - kept) / max(1, total)
    over = int((lengths > max_seq_len).sum())
    return Statistics(
        len(lengths), total, int(lengths.min()), int(lengths.max()), total / len(lengths), float(np.median(lengths)),
        p95, max_seq_len, used, lost, over, tuple(bins(lengths)),
        tuple(_advice(len(lengths), p95, max_seq_len, used, lost, over)),
    )  # fmt: skip


def _advice(count: int, p95: int, max_seq_len: int, used: float, lost: float, over: int) -> Iterator[str]:
    quiet = True
    if count < FEW:
        quiet = False
        yield f"only {count} samples, fewer than {FEW}: take these figures for a hint"
    if lost > CUT_SHARE_HIGH:
        quiet = False
        yield (
            f"{over} samples are longer than {max_seq_len}, and cutting them loses {lost:.1%} of the ids, above "
            f"{CUT_SHARE_HIGH:.0%}: pack, take windows with a stride, or raise max_seq_len"
        )
    if used < UTILISATION_LOW:
        quiet = False
        yield (
            f"only {used:.1%} of rows padded to {max_seq_len} would be ids, below {UTILISATION_LOW:.0%}: pack, or pad "
            f"batches of like length to their longest (LLMDataCollator, LengthGroupedBatches)"
        )
    if p95 * WIDE <= max_seq_len:
        quiet = False
        enough = 1 << max(0, p95 - 1).bit_length()
        yield f"95 of 100 samples have at most {p95} ids: max_seq_len={enough} would do for them"
    if quiet:
        yield f"the lengths suit max_seq_len={max_seq_len}"
