"""The network: a decoder-only transformer over bytes, in the family of MiniMind and Llama.

Shapes in comments: B sequences in a batch, T positions, D width, H query heads, K heads of keys and values, E = D / H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that everybody reads

from trainer.options import Options

VOCABULARY = 256  # a token is a byte
ROTARY_BASE = 10_000.0


class Attention(nn.Module):
    """Causal self-attention in which groups of query heads share one head of keys and values."""

    def __init__(self, options: Options) -> None:
        """Make the four projections."""
        super().__init__()
        self.heads, self.kv_heads, self.size = options.heads, options.kv_heads, options.dim // options.heads
        self.query = nn.Linear(options.dim, self.heads * self.size, bias=False)
        self.key = nn.Linear(options.dim, self.kv_heads * self.size, bias=False)
        self.value = nn.Linear(options.dim, self.kv_heads * self.size, bias=False)
        self.out = nn.Linear(self.heads * self.size, options.dim, bias=False)
        self.dropout = options.dropout

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Mix each position of `x` (B, T, D) with those before it; `turn` is from `rotary_table`."""
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)  # (B, H, T, E)
        key = self.key(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)  # (B, K, T, E)
        value = self.value(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)  # (B, K, T, E)
        query, key = rotate(query, turn), rotate(key, turn)
        group = self.heads // self.kv_heads
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)  # (B, H, T, E)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)  # (B, H, T, E)
        joined: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, -1))  # (B, T, D)
        return joined


class SwiGLU(nn.Module):
    """The feed-forward part: one projection gates another."""

    def __init__(self, options: Options) -> None:
        """Make the projections; the inner width is 8/3 of the outer, rounded up to a multiple of 64."""
        super().__init__()
        inner = 64 * -(-options.dim * 8 // (3 * 64))
        self.gate = nn.Linear(options.dim, inner, bias=False)
        self.up = nn.Linear(options.dim, inner, bias=False)
        self.down = nn.Linear(inner, options.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position of `x` (B, T, D) by itself."""
        gated: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))  # (B, T, D)
        return gated


class Block(nn.Module):
    """One decoder block: attention, then feed-forward, each normalised before and added after."""

    def __init__(self, options: Options) -> None:
        """Make both parts and their norms."""
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(options.dim), Attention(options)
        self.forward_norm, self.feed_forward = nn.RMSNorm(options.dim), SwiGLU(options)
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Refine `x` (B, T, D)."""
        x = x + self.dropout(self.attention(self.attention_norm(x), turn))  # (B, T, D)
        refined: Tensor = x + self.dropout(self.feed_forward(self.forward_norm(x)))  # (B, T, D)
        return refined


class LanguageModel(nn.Module):
    """Gives, for each position of a text, the logits of the byte that follows."""

    def __init__(self, options: Options) -> None:
        """Make the blocks, and draw all weights from torch's global generator."""
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, options.dim)
        self.blocks = nn.ModuleList(Block(options) for _ in range(options.layers))
        self.norm = nn.RMSNorm(options.dim)
        self.dropout = nn.Dropout(options.dropout)
        self.head_size = options.dim // options.heads
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (B, T, 256) for `tokens` (B, T); the embedding is also the output matrix."""
        turn = rotary_table(tokens.shape[1], self.head_size, tokens.device)
        x = self.dropout(self.embedding(tokens))  # (B, T, D)
        for block in self.blocks:
            x = block(x, turn)
        return F.linear(self.norm(x), self.embedding.weight)  # (B, T, 256)


def rotary_table(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cosine and sine (T, E / 2) of the angle by which each position turns each pair of a head."""
    speed = ROTARY_BASE ** -(torch.arange(0, size, 2, device=device) / size)  # (E / 2)
    angle = torch.outer(torch.arange(length, device=device), speed)  # (T, E / 2)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turn the pairs (i, i + E / 2) of `x` (B, heads, T, E), as RoPE does (arXiv:2104.09864)."""
    cosine, sine = turn  # (T, E / 2)
    left, right = x.chunk(2, dim=-1)  # (B, heads, T, E / 2)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1).type_as(x)


def next_byte_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy, in nats, of each byte of `tokens` (B, T + 1) given those before it."""
    logits = model(tokens[:, :-1])  # (B, T, 256)
    return F.cross_entropy(logits.reshape(-1, VOCABULARY).float(), tokens[:, 1:].reshape(-1))
