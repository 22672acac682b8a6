"""A small GPT: proof that the batches feed a model, not a model to be proud of.

In: token ids, and where documents are isolated their positions and mask. Out: logits. It downloads nothing
and knows no data. Legend: B rows, T tokens, C width, H heads, D = C / H, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.masks import IGNORED, Labels

ROTARY_BASE = 10_000.0


class GPT(nn.Module):
    """Pre-norm decoder with rotary positions (Su et al., arXiv 2104.09864), RMS norms and tied embeddings."""

    def __init__(self, vocab_size: int, layers: int, heads: int, width: int) -> None:
        super().__init__()
        if width % (2 * heads):
            raise ValueError(f"width {width} must be a multiple of twice the {heads} heads; change one of them")
        self.embedding = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(heads, width) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        rates = ROTARY_BASE ** -torch.linspace(0, 1, width // heads // 2 + 1)[:-1]
        self.rates: Tensor
        self.register_buffer("rates", rates, persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                # As in GPT-2, the 2 * layers matrices that write to the residual stream start smaller.
                scale = (2 * layers) ** -0.5 if name.endswith(("out.weight", "down.weight")) else 1.0
                nn.init.normal_(weight, std=0.02 * scale)

    def forward(
        self, inputs_BT: Tensor, position_ids_BT: Tensor | None = None, mask_B1TT: Tensor | None = None
    ) -> Tensor:
        """Logits [B, T, V]; causal over the whole row where no mask is given."""
        if position_ids_BT is None:
            position_ids_BT = torch.arange(inputs_BT.shape[1], device=inputs_BT.device)[None]
        angles = position_ids_BT[:, None, :, None] * self.rates
        turns = (angles.cos(), angles.sin())
        x_BTC = self.embedding(inputs_BT)
        for block in self.blocks:
            x_BTC = block(x_BTC, turns, mask_B1TT)
        return functional.linear(self.norm(x_BTC), self.embedding.weight)


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to the residual stream."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x_BTC: Tensor, turns: tuple[Tensor, Tensor], mask_B1TT: Tensor | None) -> Tensor:
        x_BTC = x_BTC + self._attend(self.norm_attention(x_BTC), turns, mask_B1TT)
        hidden: Tensor = x_BTC + self.down(functional.gelu(self.up(self.norm_feed(x_BTC))))
        return hidden

    def _attend(self, x_BTC: Tensor, turns: tuple[Tensor, Tensor], mask_B1TT: Tensor | None) -> Tensor:
        rows, tokens, width = x_BTC.shape
        shape = (rows, tokens, 3, self.heads, width // self.heads)
        q_BHTD, k_BHTD, v_BHTD = self.qkv(x_BTC).view(shape).permute(2, 0, 3, 1, 4)
        q_BHTD, k_BHTD = turned(q_BHTD, *turns), turned(k_BHTD, *turns)
        mixed = functional.scaled_dot_product_attention(
            q_BHTD, k_BHTD, v_BHTD, attn_mask=mask_B1TT, is_causal=mask_B1TT is None
        )
        written: Tensor = self.out(mixed.transpose(1, 2).reshape(rows, tokens, width))
        return written


def turned(x_BHTD: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The two halves of D turned by the angles of their positions."""
    left, right = x_BHTD.chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, left * sin + right * cos], dim=-1).to(x_BHTD.dtype)


def summed_loss(logits_BTV: Tensor, labels_BT: Tensor, labels: Labels) -> Tensor:
    """Cross-entropy summed over all targets, nat; "model" labels are shifted here, "shifted" ones are not."""
    if labels == "model":
        logits_BTV, labels_BT = logits_BTV[:, :-1], labels_BT[:, 1:]
    flat = logits_BTV.flatten(0, 1).float()
    return functional.cross_entropy(flat, labels_BT.flatten(), ignore_index=IGNORED, reduction="sum")


def target_losses(logits_BTV: Tensor, labels_BT: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """(loss of each target, 1 where there is one, else 0), float32 [B, T] each; [B, T - 1] of the convention model,
    whose last place has none."""
    if labels == "model":
        logits_BTV, labels_BT = logits_BTV[:, :-1], labels_BT[:, 1:]
    each = functional.cross_entropy(
        logits_BTV.flatten(0, 1).float(), labels_BT.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return each.view(labels_BT.shape), labels_BT.ne(IGNORED).float()


def targets(labels_BT: Tensor, labels: Labels) -> Tensor:
    """How many targets carry loss, int64 []."""
    return (labels_BT[:, 1:] if labels == "model" else labels_BT).ne(IGNORED).sum()
