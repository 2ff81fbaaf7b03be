"""The recommender of runtime/layers/recommender.h as a torch.nn.Module, with the same switches, to and from
safetensors.

    model, metadata = load("m.safetensors")  # written by `wisp convert`, or by save
    scores = model(torch.tensor([[12, 7, 31]]))      # [B, M]: of every item, after the last one
    loss = model.loss(inputs, targets)               # both [B, T], -1: padding on the left, no target here
    save(model, "m.safetensors")                     # for `wisp convert`

Re-Attention is not here: it is for weights that hold noise of private training. Names: docs/convert.md.
"""
import json
import math
import struct
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional as F

ARCHITECTURE_KEY = "wisp.architecture"


@dataclass
class Architecture:
    """The keys of a recipe's "architecture", and the number of items. Defaults are those of
    runtime/core/architecture.h."""
    num_items: int
    max_length: int = 200
    width: int = 64
    num_heads: int = 1
    num_blocks: int = 2
    inner_width: int = 64
    embedding_scale: float = 1.0
    attention_slope: float = 0.0
    norm_epsilon: float = 1e-5
    activation: str = "gelu"      # exact; or relu
    norm: str = "pre"             # or post
    output_table: str = "tied"    # or untied
    output_bias: str = "none"     # fixed: never trained; or trained
    positions: str = "start"      # end: the newest item is at max_length - 1
    attend: str = "causal"        # or all
    re_attention: str = "off"

    def __post_init__(self):
        allowed = {
            "activation": ("relu", "gelu"), "norm": ("pre", "post"), "output_table": ("tied", "untied"),
            "output_bias": ("none", "fixed", "trained"), "positions": ("start", "end"), "attend": ("causal", "all"),
            "re_attention": ("off",)
        }
        for key, values in allowed.items():
            if getattr(self, key) not in values:
                raise ValueError(f"{key} is {getattr(self, key)!r}, allowed are {', '.join(values)}")
        if self.width % self.num_heads != 0:
            raise ValueError(f"num_heads is {self.num_heads}, which does not divide width {self.width}")


@dataclass
class Dropout:
    """Dropout rates, as in a recipe's "dropout"."""
    embedding: float = 0.0
    attention: float = 0.0  # of the attention weights
    residual: float = 0.0  # of the output of a sublayer


class Block(nn.Module):
    def __init__(self, a: Architecture, dropout: Dropout):
        super().__init__()
        self.pre = a.norm == "pre"
        self.attention_norm = nn.LayerNorm(a.width, eps=a.norm_epsilon)
        self.attention = nn.MultiheadAttention(a.width, a.num_heads, dropout=dropout.attention, batch_first=True)
        self.feed_forward_norm = nn.LayerNorm(a.width, eps=a.norm_epsilon)
        self.feed_forward_in = nn.Linear(a.width, a.inner_width)
        self.feed_forward_out = nn.Linear(a.inner_width, a.width)
        self.activation = nn.GELU() if a.activation == "gelu" else nn.ReLU()
        self.dropout = nn.Dropout(dropout.residual)

    def attend(self, x, mask):
        return self.dropout(self.attention(x, x, x, attn_mask=mask, need_weights=False)[0])

    def feed_forward(self, x):
        return self.dropout(self.feed_forward_out(self.activation(self.feed_forward_in(x))))

    def forward(self, x, mask):
        if self.pre:
            x = x + self.attend(self.attention_norm(x), mask)
            return x + self.feed_forward(self.feed_forward_norm(x))
        x = self.attention_norm(x + self.attend(x, mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


class SASRec(nn.Module):
    def __init__(self, architecture: Architecture, dropout: Dropout = Dropout()):
        super().__init__()
        self.architecture = a = architecture
        self.item_embedding = nn.Embedding(a.num_items, a.width)
        self.position_embedding = nn.Embedding(a.max_length, a.width)
        self.blocks = nn.ModuleList(Block(a, dropout) for _ in range(a.num_blocks))
        self.final_norm = nn.LayerNorm(a.width, eps=a.norm_epsilon) if a.norm == "pre" else None
        self.output_embedding = nn.Embedding(a.num_items, a.width) if a.output_table == "untied" else None
        if a.output_bias == "none":
            self.output_bias = None
        else:
            self.output_bias = nn.Parameter(torch.zeros(a.num_items), requires_grad=a.output_bias == "trained")
        self.embedding_dropout = nn.Dropout(dropout.embedding)
        for table in (self.item_embedding, self.position_embedding, self.output_embedding):
            if table is not None:
                nn.init.normal_(table.weight, std=0.02)

    def mask(self, items):
        """Returns the mask that is added to the attention logits, [B * H, T, T]. A padded row attends to itself
        alone; its result is not used."""
        a = self.architecture
        batch, length = items.shape
        at = torch.arange(length, device=items.device)
        distance = (at[:, None] - at[None, :]).abs()
        slopes = torch.tensor([a.attention_slope * 2.0 ** (-8.0 * h / a.num_heads) for h in range(a.num_heads)],
                              dtype=self.item_embedding.weight.dtype, device=items.device)
        bias = (-slopes[:, None, None] * distance).expand(batch, -1, -1, -1)
        hidden = (items < 0)[:, None, :] & (distance > 0)
        if a.attend == "causal":
            hidden = hidden | (at[None, :] > at[:, None])
        return bias.masked_fill(hidden[:, None], -math.inf).reshape(batch * a.num_heads, length, length)

    def hidden(self, items):
        """The stream after the last block, [B, T, D]."""
        a = self.architecture
        length = items.shape[1]
        first = a.max_length - length if a.positions == "end" else 0
        positions = self.position_embedding.weight[first:first + length]
        x = self.item_embedding(items.clamp(min=0)) * a.embedding_scale + positions
        x = self.embedding_dropout(x * (items >= 0)[..., None])
        mask = self.mask(items)
        for block in self.blocks:
            x = block(x, mask)
        return x if self.final_norm is None else self.final_norm(x)

    def scores(self, hidden):
        table = self.item_embedding if self.output_embedding is None else self.output_embedding
        return F.linear(hidden, table.weight, self.output_bias)

    def forward(self, items):
        """Returns the scores of every item after the last position, [B, M]; for a history [T] without a batch, [M].
        Longer histories lose their oldest items."""
        batch = items if items.dim() == 2 else items[None]
        scores = self.scores(self.hidden(batch[:, -self.architecture.max_length:])[:, -1])
        return scores if items.dim() == 2 else scores[0]

    def loss(self, inputs, targets, weighting="record_mean"):
        """Cross-entropy over all items: the mean over records of the mean over their targets, or (position_mean) over
        all targets."""
        logits = self.scores(self.hidden(inputs))
        if weighting == "position_mean":
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        each = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=-1, reduction="none")
        return (each.sum(1) / (targets >= 0).sum(1).clamp(min=1)).mean()


def read_safetensors(path):
    """Returns tensors by name, and the metadata, of a file in F32. It needs only torch."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, t in header.items():
        if t["dtype"] != "F32":
            raise ValueError(f"{path}: tensor {name} has the dtype {t['dtype']}, allowed is F32")
        begin, end = t["data_offsets"]
        tensors[name] = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4,
                                         offset=begin).reshape(t["shape"]).clone()
    return tensors, metadata


def write_safetensors(path, tensors, metadata):
    header, parts, at = {"__metadata__": metadata}, [], 0
    for name, t in tensors.items():
        flat = t.detach().to("cpu", torch.float32).contiguous().flatten()
        parts.append(bytes(flat.view(torch.uint8).tolist()) if t.numel() else b"")
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load(path):
    """Returns a SASRec in evaluation mode, and the file's metadata."""
    try:
        from safetensors import safe_open
        with safe_open(path, framework="pt") as file:
            tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except ImportError:
        tensors, metadata = read_safetensors(path)
    if ARCHITECTURE_KEY not in metadata:
        raise ValueError(f"{path}: its metadata has no {ARCHITECTURE_KEY}")
    model = SASRec(
        Architecture(num_items=tensors["item_embedding.weight"].shape[0], **json.loads(metadata[ARCHITECTURE_KEY])))
    model.load_state_dict(tensors)
    return model.eval(), metadata


def save(model, path, metadata=None):
    """Writes a file for `wisp convert`. `metadata`: more texts, for example "wisp.item_keys", a list as JSON."""
    architecture = asdict(model.architecture)
    del architecture["num_items"]  # the table gives it
    texts = {"format": "pt", ARCHITECTURE_KEY: json.dumps(architecture), **(metadata or {})}
    try:
        from safetensors.torch import save_file
        save_file({name: t.contiguous() for name, t in model.state_dict().items()}, path, metadata=texts)
    except ImportError:
        write_safetensors(path, model.state_dict(), texts)
