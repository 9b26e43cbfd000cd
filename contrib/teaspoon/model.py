"""The model: Llama as it is published, small. One class, no cache of keys and values.

A batch is rows of tokens; several documents may stand in a row, and `mask` says who sees whom.
The names of the weights are Hugging Face's, without their "model." and ".weight".
"""
import dataclasses

import torch
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Shape:
    width: int
    heads: int
    kv_heads: int
    inner: int
    layers: int
    head: int = 64
    vocabulary: int = 2048
    context: int = 4096
    theta: float = 10000.0
    epsilon: float = 1e-5


SHAPES = {
    "teaspoon": Shape(width=256, heads=4, kv_heads=2, inner=768, layers=4),
    "pinch": Shape(width=96, heads=2, kv_heads=1, inner=256, layers=2),
}


def angles(shape, length):
    """Cosines and sines for each position, both halves of a head alike."""
    speeds = shape.theta ** (-torch.arange(0, shape.head, 2, dtype=torch.float64) / shape.head)
    turns = torch.outer(torch.arange(length, dtype=torch.float64), speeds)
    turns = torch.cat([turns, turns], dim=-1)
    return turns.cos().float(), turns.sin().float()


def turned(x, cos, sin):
    """x (rows, heads, positions, numbers): number i and number i + half turn together."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def causal(q, k, v):
    each = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(each, dim=1), v.repeat_interleave(each, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q, k, v, mask):
    """The same, written out: for short rows twice as fast on a CPU as what torch has for masks."""
    rows, heads, length, size = q.shape
    pairs = rows * k.shape[1]
    q, k, v = q.reshape(pairs, -1, size), k.reshape(pairs, -1, size), v.reshape(pairs, -1, size)
    scores = (q @ k.transpose(1, 2)).view(rows, heads, length, length) * size**-0.5 + mask
    shares = scores.float().softmax(-1).to(v.dtype).view(pairs, -1, length)
    return (shares @ v).view(rows, heads, length, size)


class Layer(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        keys = shape.kv_heads * shape.head
        self.input_norm = torch.nn.Parameter(torch.ones(shape.width))
        self.q = torch.nn.Parameter(torch.empty(shape.heads * shape.head, shape.width))
        self.k = torch.nn.Parameter(torch.empty(keys, shape.width))
        self.v = torch.nn.Parameter(torch.empty(keys, shape.width))
        self.o = torch.nn.Parameter(torch.empty(shape.width, shape.heads * shape.head))
        self.post_norm = torch.nn.Parameter(torch.ones(shape.width))
        self.gate = torch.nn.Parameter(torch.empty(shape.inner, shape.width))
        self.up = torch.nn.Parameter(torch.empty(shape.inner, shape.width))
        self.down = torch.nn.Parameter(torch.empty(shape.width, shape.inner))

    def forward(self, x, cos, sin, mask, at=None):
        x = x + self.attention(self.norm(x, self.input_norm), cos, sin, mask)
        if at is not None:
            x = x.flatten(0, 1)[at]
        return x + self.feed(self.norm(x, self.post_norm))

    def norm(self, x, weight):
        return F.rms_norm(x, weight.shape, weight, self.shape.epsilon)

    def attention(self, x, cos, sin, mask):
        rows, length, _ = x.shape

        def headed(weight):
            return F.linear(x, weight).view(rows, length, -1, self.shape.head).transpose(1, 2)

        q, k, v = turned(headed(self.q), cos, sin), turned(headed(self.k), cos, sin), headed(self.v)
        y = causal(q, k, v) if mask is None else masked(q, k, v, mask)
        return F.linear(y.transpose(1, 2).reshape(rows, length, -1), self.o)

    def feed(self, x):
        return F.linear(F.silu(F.linear(x, self.gate)) * F.linear(x, self.up), self.down)


class Llama(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embedding = torch.nn.Parameter(torch.empty(shape.vocabulary, shape.width))
        self.layers = torch.nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = torch.nn.Parameter(torch.ones(shape.width))
        cos, sin = angles(shape, shape.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def initialise(self, seed):
        """What is added to the stream begins smaller, by how many layers add to it."""
        dice = torch.Generator().manual_seed(seed)
        less = (2 * self.shape.layers) ** -0.5
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                small = less if name.endswith((".o", ".down")) else 1.0
                torch.nn.init.normal_(weight, 0.0, 0.02 * small, generator=dice)
        return self

    def forward(self, tokens, mask=None, at=None):
        """Logits after each token, or at some places (counted through all rows) only: of most of
        the last layer, and of the head, nothing but what is asked for is computed."""
        x = F.embedding(tokens, self.embedding)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for layer in self.layers[:-1]:
            x = layer(x, cos, sin, mask)
        x = self.layers[-1](x, cos, sin, mask, at)
        x = F.rms_norm(x, self.norm.shape, self.norm, self.shape.epsilon)
        return F.linear(x, self.embedding)
