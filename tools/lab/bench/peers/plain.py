"""The twin's graph written for speed and from standard layers only, with the twin's weights.

Histories are full (no padding), so that attention needs no mask but the causal one, the query, key and value of a
position come from one Linear, and a scorer asks the last block about the last position alone. What has a weight is
nn.Embedding, nn.Linear or nn.LayerNorm: Opacus knows these.
"""
import torch
from torch import nn
from torch.nn import functional as F


def attend(q, k, v, mask=None):
    """Computes attention in the operations that ExecuTorch delegates: its version of scaled_dot_product_attention
    runs in slow portable kernels."""
    logits = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return F.softmax(logits if mask is None else logits + mask, dim=-1) @ v


class PlainBlock(nn.Module):
    def __init__(self, block, architecture, spelled_out):
        super().__init__()
        a = architecture
        self.spelled_out = spelled_out or not hasattr(F, "scaled_dot_product_attention")  # torch has it from 2.0 on
        if self.spelled_out:
            self.register_buffer("mask", torch.full((a.max_length, a.max_length), -torch.inf).triu(1), persistent=False)
        self.num_heads = a.num_heads
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(a.width,
                                                                   eps=a.norm_epsilon), nn.LayerNorm(a.width,
                                                                                                     eps=a.norm_epsilon)
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.feed_forward_in, self.feed_forward_out = nn.Linear(a.width,
                                                                a.inner_width), nn.Linear(a.inner_width, a.width)
        self.activation = nn.GELU() if a.activation == "gelu" else nn.ReLU()
        with torch.no_grad():
            self.qkv.weight.copy_(block.attention.in_proj_weight)
            self.qkv.bias.copy_(block.attention.in_proj_bias)
        for mine, theirs in ((self.out, block.attention.out_proj), (self.attention_norm, block.attention_norm),
                             (self.feed_forward_norm, block.feed_forward_norm),
                             (self.feed_forward_in, block.feed_forward_in), (self.feed_forward_out,
                                                                             block.feed_forward_out)):
            mine.load_state_dict(theirs.state_dict())

    def heads(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def feed_forward(self, x):
        return x + self.feed_forward_out(self.activation(self.feed_forward_in(self.feed_forward_norm(x))))

    def forward(self, x):
        q, k, v = (self.heads(part) for part in self.qkv(self.attention_norm(x)).chunk(3, dim=-1))
        if self.spelled_out:
            attended = attend(q, k, v, self.mask[:x.shape[1], :x.shape[1]])
        else:
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.feed_forward(x + self.out(attended.transpose(1, 2).flatten(2)))


class Plain(nn.Module):
    """tied: one table at both ends. Otherwise the output has a copy of it, which gives the same scores but other
    gradients. spelled_out: attention in elementary operations."""

    def __init__(self, module, tied=True, spelled_out=False):
        super().__init__()
        a = module.architecture
        if (a.norm, a.output_table, a.output_bias, a.attend, a.attention_slope) != ("pre", "tied", "none", "causal",
                                                                                    0.0):
            raise ValueError(
                "the fast twin is of pre-norm models with a tied table, no output bias and causal attention without "
                "slopes"
            )
        self.scale = a.embedding_scale
        self.items, self.positions = nn.Embedding(a.num_items, a.width), nn.Embedding(a.max_length, a.width)
        self.blocks = nn.ModuleList(PlainBlock(block, a, spelled_out) for block in module.blocks)
        self.final_norm = nn.LayerNorm(a.width, eps=a.norm_epsilon)
        self.output = nn.Linear(a.width, a.num_items, bias=False)
        self.items.load_state_dict(module.item_embedding.state_dict())
        self.positions.load_state_dict(module.position_embedding.state_dict())
        self.final_norm.load_state_dict(module.final_norm.state_dict())
        if tied:
            self.output.weight = self.items.weight
        else:
            self.output.weight.data.copy_(self.items.weight.data)

    def stream(self, items):
        # The positions are repeated for each record, because Opacus must see whose gradient it is. They are not a view,
        # because its ghost clipping cannot read views.
        return self.items(items) * self.scale + self.positions(
            torch.arange(items.shape[1], device=items.device).repeat(len(items), 1))

    def forward(self, items):
        """Logits of every position, [B, T, M]."""
        x = self.stream(items)
        for block in self.blocks:
            x = block(x)
        return self.output(self.final_norm(x))

    def loss(self, inputs, targets):
        """Records are full, so the mean over records of means over positions is the mean over all."""
        return F.cross_entropy(self(inputs).flatten(0, 1), targets.flatten())


class Scorer(nn.Module):
    """Returns the scores of every item after the last position, [B, M]. In the last block only that position has a
    query; the others give keys and values."""

    def __init__(self, plain):
        super().__init__()
        self.plain = plain
        qkv, width = plain.blocks[-1].qkv, plain.blocks[-1].qkv.in_features
        self.query, self.key_value = nn.Linear(width, width), nn.Linear(width, 2 * width)
        with torch.no_grad():
            for mine, rows in ((self.query, slice(width)), (self.key_value, slice(width, None))):
                mine.weight.copy_(qkv.weight[rows])
                mine.bias.copy_(qkv.bias[rows])

    def forward(self, items):
        x = self.plain.stream(items)
        for block in self.plain.blocks[:-1]:
            x = block(x)
        last = self.plain.blocks[-1]
        normed = last.attention_norm(x)
        k, v = self.key_value(normed).chunk(2, dim=-1)
        attention = attend if last.spelled_out else F.scaled_dot_product_attention
        attended = attention(last.heads(self.query(normed[:, -1:])), last.heads(k), last.heads(v))
        x = last.feed_forward(x[:, -1:] + last.out(attended.transpose(1, 2).flatten(2)))
        return self.plain.output(self.plain.final_norm(x))[:, 0]
