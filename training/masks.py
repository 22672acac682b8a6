"""From tokens and the places where documents begin to labels, positions, document ids and attention masks.

In: a gathered batch of rows of T+1 tokens. Out: what a model is fed. Padding and borders are known by
position, never found by looking for the EOS or pad id. Legend: B rows, T tokens of a sequence, T1 = T+1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

IGNORED = -100
"""The label that carries no loss: torch's and transformers' own."""

Labels = Literal["shifted", "model"]


def in_use(lengths_B: Tensor, width: int) -> Tensor:
    """Which positions of each row hold a token rather than padding: bool [B, width]."""
    return torch.arange(width, device=lengths_B.device) < lengths_B[:, None]


def inputs_and_labels(
    tokens_BT1: Tensor, lengths_B: Tensor | None, begins_BT1: Tensor | None, labels: Labels
) -> tuple[Tensor, Tensor]:
    """(inputs, labels), int64, with the same T targets a row under both conventions.

    shifted: inputs [B, T] and labels[t] = input[t+1] [B, T]; the loss compares logits[t] with labels[t].
    model: inputs [B, T+1] and labels = inputs; the model shifts, as transformers does.

    Padding (beyond `lengths_B`; None says that every row is full) carries no loss. Where documents are
    isolated (`begins_BT1`), neither does a document's first token: nothing before it is its own. Labels may
    share memory with the inputs.
    """
    targets_BT1 = tokens_BT1
    if lengths_B is not None:
        targets_BT1 = targets_BT1.masked_fill(~in_use(lengths_B, tokens_BT1.shape[1]), IGNORED)
    if begins_BT1 is not None:
        targets_BT1 = targets_BT1.masked_fill(begins_BT1, IGNORED)
    return seen_as(tokens_BT1, targets_BT1, labels)


def seen_as(tokens_BT1: Tensor, targets_BT1: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """(inputs, labels) by the convention `labels`; raises ValueError for one that is not known."""
    if labels == "model":
        return tokens_BT1, targets_BT1
    if labels == "shifted":
        return tokens_BT1[:, :-1], targets_BT1[:, 1:]
    raise ValueError(f"labels is {labels!r}; it must be 'shifted' or 'model'")


def position_ids(begins_BT: Tensor) -> Tensor:
    """Tokens since the document began, or since the row did: int64 [B, T]; padding counts on."""
    places = torch.arange(begins_BT.shape[1], device=begins_BT.device).expand(begins_BT.shape)
    return places - torch.where(begins_BT, places, 0).cummax(1).values


def document_ids(sizes: Sequence[Sequence[int]], width: int) -> Tensor:
    """Rows of documents of so many tokens: int64 [B, width], 1 to n in each row and 0 in padding.

    A document without tokens takes no number; a row may hold none. Raises ValueError for a row beyond `width`.
    """
    made = torch.zeros(len(sizes), width, dtype=torch.int64)
    for row, documents in zip(made, sizes, strict=True):
        held = torch.tensor([size for size in documents if size], dtype=torch.int64)
        if int(held.sum()) > width:
            raise ValueError(f"documents of {list(documents)} tokens do not fit in a row of {width}")
        row[: int(held.sum())] = torch.repeat_interleave(torch.arange(1, len(held) + 1), held)
    return made


def attention_mask(document_ids_BT: Tensor) -> Tensor:
    """padding ∩ causal ∩ document: bool [B, 1, T, T], true where query t (third) may look at key s (fourth).

    document_ids as training.batch gives them, 0 (or less) in padding. A padding position sees itself alone: a row of
    the softmax with nothing in it would be NaN.
    """
    width = document_ids_BT.shape[1]
    same = document_ids_BT[:, :, None] == document_ids_BT[:, None, :]
    same &= (document_ids_BT > 0)[:, :, None]
    same &= torch.ones(width, width, dtype=torch.bool, device=same.device).tril()
    same |= torch.eye(width, dtype=torch.bool, device=same.device)
    return same[:, None]


def create_combined_attention_mask(
    attention_mask_BT: Tensor, document_ids_BT: Tensor | None = None, *, additive: torch.dtype | None = None
) -> Tensor:
    """The mask of scaled_dot_product_attention, [B, 1, T, T]: padding ∩ causal ∩ document.

    attention_mask: 1 or true for a token, 0 for padding, on either side. document_ids: 1 to n, or any numbers; without
    them a row is one document. additive: instead of bool, 0 where a query may look and the dtype's least number where
    it may not (-inf would make NaN of a row in which nothing is left). A padding position sees itself alone.
    """
    real = attention_mask_BT.bool()
    numbers = real.long() if document_ids_BT is None else document_ids_BT - document_ids_BT.min() + 1
    allowed = attention_mask(numbers.masked_fill(~real, 0))
    if additive is None:
        return allowed
    least = torch.finfo(additive).min
    return torch.zeros(allowed.shape, dtype=additive, device=allowed.device).masked_fill(~allowed, least)


def block_mask(document_ids_BT: Tensor) -> Any:
    """The same for torch's FlexAttention: a BlockMask that skips blocks in which no query sees a key."""
    from torch.nn.attention.flex_attention import create_block_mask

    rows, width = document_ids_BT.shape

    def visible(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = (document_ids_BT[b, query] == document_ids_BT[b, key]) & (document_ids_BT[b, query] > 0)
        return (same & (key <= query)) | (key == query)

    return create_block_mask(visible, rows, None, width, width, device=str(document_ids_BT.device))
