"""A batch as a model wants it: inputs and labels at hand, everything about documents made when it is asked for.

In: widened tokens, and where rows end and documents begin. Out: the tensors of one rank's share of a global batch. It
gathers and copies nothing. Legend: B rows, T1 = tokens_per_sequence + 1, W = T tokens of an input row, or T1 where
labels="model".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training import kernels
from training.dataset import Origin
from training.gather import Apart
from training.masks import IGNORED, Labels, block_mask, create_combined_attention_mask, in_use


class Batch:
    """One rank's share of a global batch, on the device.

    position: of the run, after this global batch. isolated: whether documents are told apart; if not, a row counts as
    one document. Names are those of transformers where it has one.
    """

    def __init__(
        self,
        tokens_BT1: Tensor,
        lengths: np.ndarray | None,
        begins: np.ndarray | None,
        labels: Labels,
        position: int,
        origins: Callable[[], list[Origin]] | None = None,
        unlearnt: np.ndarray | None = None,
        borders: np.ndarray | None = None,
        apart: Apart | None = None,
    ) -> None:
        """lengths int32 [B], None if all rows are full; begins int64 [m]: row * T1 + place of each row's start and of
        each document that begins in it; unlearnt int64 [k]: likewise, of each id without loss; borders, apart: what
        follows from these, where it was found with the tokens, apart in int64. All on the host."""
        self.tokens_BT1, self._lengths, self._begins = tokens_BT1, lengths, begins
        self._unlearnt = None if unlearnt is None or not len(unlearnt) else unlearnt
        self.convention, self.position, self._origins = labels, position, origins
        self.isolated, self._on_host = begins is not None, tokens_BT1.device.type == "cpu"
        self.input_ids = tokens_BT1[:, :-1] if labels == "shifted" else tokens_BT1
        if borders is not None:
            self._borders = borders
        if apart is not None:
            self.labels = torch.from_numpy(apart.labels[:, int(labels == "shifted") :])
            self.position_ids = torch.from_numpy(apart.positions)

    @property
    def device(self) -> torch.device:
        return self.tokens_BT1.device

    @cached_property
    def labels(self) -> Tensor:
        """int64 [B, W], -100 where there is no loss: in padding, on the first token of an isolated document, which
        nothing before it foretells, and where the shards say so (of a chat, all but the answers). May share memory
        with input_ids. See training.masks.inputs_and_labels."""
        targets = self.tokens_BT1
        if self._lengths is not None:
            targets = targets.masked_fill(~self._used(targets.shape[1]), IGNORED)
        shift = int(self.convention == "shifted")
        if self._on_host:
            # Sliced before it is a tensor, which costs less.
            return torch.from_numpy(self._ignoring(targets.numpy(), targets is self.tokens_BT1)[:, shift:])
        for places in (self._begins, self._unlearnt):
            if places is not None:
                targets = targets.clone() if targets is self.tokens_BT1 else targets
                targets.view(-1).index_fill_(0, self._sent(places), IGNORED)
        return targets[:, shift:]

    def _ignoring(self, targets: np.ndarray, shared: bool) -> np.ndarray:
        """`targets` [B, T1] with IGNORED where a token carries no loss; a copy if they are `shared`."""
        for places in (self._begins, self._unlearnt):
            if places is not None:
                targets, shared = (targets.copy() if shared else targets), False
                targets.reshape(-1)[places] = IGNORED
        return targets

    @cached_property
    def attention_mask(self) -> Tensor:
        """bool [B, W]: true for a token, false for padding."""
        if self._lengths is None:
            return torch.ones(self.input_ids.shape, dtype=torch.bool, device=self.device)
        return self._used(self.input_ids.shape[1])

    @cached_property
    def position_ids(self) -> Tensor:
        """int64 [B, W]: tokens since the document began, or the row where documents are not isolated. Padding counts
        on, as a kernel that looks for 0 would take it for documents."""
        rows, width = self.input_ids.shape
        if self._begins is None:
            return torch.arange(width, device=self.device).expand(rows, width)
        if self._on_host:
            return torch.from_numpy(kernels.positions(self._borders).reshape(rows, width))
        spread = self._spread(self._borders[:-1].astype(np.int64))
        return torch.sub(_places(rows * width, self.device), spread, out=spread).view(rows, width)

    @cached_property
    def document_ids(self) -> Tensor:
        """int64 [B, W]: 1 to n within each row, 0 in padding."""
        if self._begins is None:
            return self.attention_mask.long()
        starts, width = self._borders[:-1], self.input_ids.shape[1]
        firsts = np.flatnonzero(starts % width == 0)
        numbers = np.arange(1, len(starts) + 1) - np.repeat(firsts, np.diff(firsts, append=len(starts)))
        spread = self._spread(numbers).view(self.input_ids.shape)
        return spread if self._lengths is None else spread.masked_fill(~self.attention_mask, 0)

    @cached_property
    def cu_seqlens(self) -> Tensor:
        """Borders for variable-length attention, int32 [documents + 1], from 0 to the batch's tokens, row after row
        and padding left out: take the tokens themselves with `x[batch.attention_mask]`."""
        if self._begins is not None and self._lengths is None:
            borders = self._borders
        else:
            borders = np.concatenate([[0], np.cumsum(self._document_sizes)]).astype(np.int32)
        held = torch.from_numpy(borders)
        return held if self._on_host else held.to(self.device, non_blocking=True)

    @property
    def max_seqlen(self) -> int:
        """Tokens of the longest piece that cu_seqlens borders; 0 for a batch of padding."""
        return int(self._document_sizes.max(initial=0))

    def combined_mask(self, additive: torch.dtype | None = None) -> Tensor:
        """padding ∩ causal ∩ document, [B, 1, W, W]; see training.masks.create_combined_attention_mask."""
        return create_combined_attention_mask(self.attention_mask, self.document_ids, additive=additive)

    def block_mask(self) -> Any:
        """The same for FlexAttention."""
        return block_mask(self.document_ids)

    def origins(self) -> list[Origin]:
        """Which documents stand in each row; [] for rows that fill up the last batch of a split."""
        return self._origins() if self._origins else []

    def model_inputs(self) -> dict[str, Tensor]:
        """What a model of transformers takes as keywords: input_ids, labels, attention_mask [B, W], or, where
        documents are isolated, position_ids and the combined mask."""
        given = {"input_ids": self.input_ids, "labels": self.labels}
        if not self.isolated:
            return given | {"attention_mask": self.attention_mask}
        return given | {"position_ids": self.position_ids, "attention_mask": self.combined_mask()}

    def part(self, rows: slice) -> Batch:
        """Some rows as a batch of their own: for gradient accumulation."""
        width, (start, stop, _) = self.tokens_BT1.shape[1], rows.indices(len(self.tokens_BT1))
        begins, unlearnt = (_within(own, start * width, stop * width) for own in (self._begins, self._unlearnt))
        lengths = None if self._lengths is None else self._lengths[rows]
        made = Batch(self.tokens_BT1[rows], lengths, begins, self.convention, self.position, unlearnt=unlearnt)
        for name in ("labels", "position_ids"):
            if name in self.__dict__:
                setattr(made, name, self.__dict__[name][rows])
        return made

    @cached_property
    def _borders(self) -> np.ndarray:
        """Where pieces begin among the B * W places, and their end, int32: padding belongs to the piece before."""
        begins = np.empty(0, np.int64) if self._begins is None else self._begins
        rows, width = self.input_ids.shape
        # A document that begins with a row's last token begins in no shifted input.
        return kernels.piece_borders(begins, rows, width, int(self.convention == "shifted"))

    @cached_property
    def _document_sizes(self) -> np.ndarray:
        """Tokens of each document's piece, padding left out."""
        rows, width = self.input_ids.shape
        lengths = np.full(rows, width) if self._lengths is None else np.minimum(self._lengths, width)
        if self._begins is None:
            return lengths[lengths > 0]
        row, place = np.divmod(self._borders[:-1], width)
        real: np.ndarray = np.minimum(np.diff(self._borders), lengths[row] - place)
        return real[real > 0]

    def _spread(self, values: np.ndarray) -> Tensor:
        """One value for each piece -> one for each of the B * W places, int64."""
        sizes = np.diff(self._borders)
        if self._on_host:
            return torch.from_numpy(np.repeat(values, sizes))
        total = self.input_ids.numel()
        return torch.repeat_interleave(self._sent(values), self._sent(sizes), output_size=total)

    def _used(self, width: int) -> Tensor:
        lengths = np.full(len(self.tokens_BT1), width) if self._lengths is None else self._lengths
        return in_use(self._sent(lengths), width)

    def _sent(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device, non_blocking=True)


def _within(places: np.ndarray | None, start: int, stop: int) -> np.ndarray | None:
    """Of ascending places those in [start, stop), counted from start."""
    if places is None:
        return None
    low, high = np.searchsorted(places, [start, stop])
    found: np.ndarray = places[low:high] - start
    return found


@lru_cache(maxsize=4)
def _places(total: int, device: torch.device) -> Tensor:
    """0 to total - 1, made once a shape and never written to."""
    return torch.arange(total, device=device)
