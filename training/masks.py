"""From tokens and the places where documents begin to labels, positions, document ids and attention masks.

In: a gathered batch of rows of T+1 tokens. Out: what a model is fed. Padding and borders are known by
position, never found by looking for the EOS or pad id. Legend: B rows, T tokens of a sequence, T1 = T+1.
"""

from __future__ import annotations

from typing import Literal

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
    if labels == "model":
        return tokens_BT1, targets_BT1
    if labels == "shifted":
        return tokens_BT1[:, :-1], targets_BT1[:, 1:]
    raise ValueError(f"labels is {labels!r}; it must be 'shifted' or 'model'")


def position_ids(begins_BT: Tensor) -> Tensor:
    """Tokens since the document began, or since the row did: int64 [B, T]; padding counts on."""
    places = torch.arange(begins_BT.shape[1], device=begins_BT.device).expand(begins_BT.shape)
    return places - torch.where(begins_BT, places, 0).cummax(1).values


def document_ids(begins_BT: Tensor, lengths_B: Tensor | None) -> Tensor:
    """Number of the document within its row, from 0: int64 [B, T]; -1 in padding."""
    numbers = begins_BT.cumsum(1)
    numbers = numbers - numbers[:, :1]
    if lengths_B is None:
        return numbers
    return numbers.masked_fill(~in_use(lengths_B, begins_BT.shape[1]), -1)


def attention_mask(document_ids_BT: Tensor) -> Tensor:
    """padding ∩ causal ∩ document: bool [B, 1, T, T], true where query t (third) may look at key s (fourth).

    A padding position sees itself alone: a row of the softmax with nothing in it would be NaN.
    """
    width = document_ids_BT.shape[1]
    same = document_ids_BT[:, :, None] == document_ids_BT[:, None, :]
    same &= (document_ids_BT >= 0)[:, :, None]
    same &= torch.ones(width, width, dtype=torch.bool, device=same.device).tril()
    same |= torch.eye(width, dtype=torch.bool, device=same.device)
    return same[:, None]


def cu_seqlens(document_ids_BT: Tensor) -> Tensor:
    """Borders for variable-length attention over the batch's tokens, row after row and padding left out.

    int32 [documents + 1], from 0 to the number of tokens; take the tokens themselves with
    `x[document_ids_BT >= 0]`.
    """
    rows = torch.arange(len(document_ids_BT), device=document_ids_BT.device)[:, None]
    of_its_own = rows * (document_ids_BT.shape[1] + 1) + document_ids_BT
    _, sizes = torch.unique_consecutive(of_its_own[document_ids_BT >= 0], return_counts=True)
    return torch.nn.functional.pad(sizes.cumsum(0), (1, 0)).to(torch.int32)
