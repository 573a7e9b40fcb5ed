"""Layers that the models have in common.

Legend: B batch, C choices, K rows of an encoder (B, or B (C + 1)), P positions, S memory or regions, D width.
"""

import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {'gelu': F.gelu, 'gelu_tanh': lambda x: F.gelu(x, approximate='tanh'), 'relu': F.relu}


def take(x_BPD, index_BS):
    """Rows of each example: x[b, index[b, s]]."""
    return x_BPD.gather(1, index_BS[..., None].expand(-1, -1, x_BPD.shape[-1]))


def inside(size, length_B):
    """[B, size]: whether a position is one of the first `length`."""
    return torch.arange(size, device=length_B.device) < length_B[:, None]


def join(pieces, lengths):
    """Pieces [B, P_i, D], of which `lengths` are valid, one behind the other without gaps: (x_BPD, length_B); zeros
    fill up."""
    valid_BP = torch.cat([inside(x.shape[1], length) for x, length in zip(pieces, lengths)], 1)
    length_B = valid_BP.sum(1)
    x_BPD = take(torch.cat(pieces, 1), (~valid_BP).int().argsort(dim=1, stable=True))
    return x_BPD.masked_fill(~inside(x_BPD.shape[1], length_B)[..., None], 0), length_B


class Attention(nn.Module):
    """Multi-head attention over the keys that `mask` [B or 1, Q or 1, K] allows."""

    def __init__(self, width, heads):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.heads = heads

    def forward(self, x_BPD, mask, past=None):
        """(y_BPD, (keys, values)); `past`: keys and values of earlier positions, which come first."""
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = split(self.query(x_BPD)), split(self.key(x_BPD)), split(self.value(x_BPD))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        return self.out(z.transpose(1, 2).flatten(2)), (k, v)


class Mlp(nn.Module):
    def __init__(self, width, hidden, activation):
        super().__init__()
        self.up, self.down, self.activation = nn.Linear(width, hidden), nn.Linear(hidden, width), activation

    def forward(self, x):
        return self.down(ACTIVATIONS[self.activation](self.up(x)))


class PostNormBlock(nn.Module):
    """BERT's: norm behind the residual sum."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention, self.attention_norm = Attention(width, heads), nn.LayerNorm(width, 1e-12)
        self.mlp, self.mlp_norm = Mlp(width, hidden, 'gelu'), nn.LayerNorm(width, 1e-12)

    def forward(self, x_BPD, mask):
        x_BPD = self.attention_norm(x_BPD + self.attention(x_BPD, mask)[0])
        return self.mlp_norm(x_BPD + self.mlp(x_BPD))


class PreNormBlock(nn.Module):
    """GPT-2's: norm before each branch."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width, 1e-5), Attention(width, heads)
        self.mlp_norm, self.mlp = nn.LayerNorm(width, 1e-5), Mlp(width, 4 * width, 'gelu_tanh')

    def forward(self, x_BPD, mask, past=None):
        y_BPD, present = self.attention(self.attention_norm(x_BPD), mask, past)
        x_BPD = x_BPD + y_BPD
        return x_BPD + self.mlp(self.mlp_norm(x_BPD)), present


class TextEmbedding(nn.Module):
    """norm(word + position + type); without types there is no such table. `first`: position of the first word."""

    def __init__(self, words, positions, types, width, first=0):
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.kind = nn.Embedding(types, width) if types else None
        self.norm, self.first = nn.LayerNorm(width, 1e-12), first

    def forward(self, ids_KQ, type_KQ):
        x_KQD = self.word(ids_KQ) + self.position.weight[self.first : self.first + ids_KQ.shape[1]]
        return self.norm(x_KQD if self.kind is None else x_KQD + self.kind(type_KQ))


class Choices:
    """Rows of an encoder where each example has C choices: its C pairs with the question, then the question alone."""

    def __init__(self, choices):
        self.choices = choices

    def join(self, batch, name=''):
        """An array of the text ('' the ids, '_type', '_length', '_tags') for all rows."""
        text_B = batch[f'text{name}']
        return torch.cat([batch[f'choices{name}'], text_B[:, None]], 1).flatten(0, 1) if self.choices else text_B

    def repeat(self, x_B):
        """Something of the picture, for all rows."""
        return x_B.repeat_interleave(self.choices + 1, 0) if self.choices else x_B

    def pairs(self, x_K):
        """The rows with a choice: B, C, ..."""
        return x_K.unflatten(0, (-1, self.choices + 1))[:, :-1]

    def alone(self, x_K):
        """The rows without a choice: B, ..."""
        return x_K[self.choices :: self.choices + 1]


class Recurrent(nn.Module):
    """What LSTM and GRU share: two linear maps, whose outputs are the gates side by side, and the run over a row."""

    gates = 0

    def __init__(self, inputs, width):
        super().__init__()
        self.input, self.recurrent = nn.Linear(inputs, self.gates * width), nn.Linear(width, self.gates * width)
        self.width = width

    def forward(self, x_BQI, length_B):
        """(states_BQD, last_BD): beyond its length a row's state does not change."""
        state, states = self.start(x_BQI), []
        for q in range(x_BQI.shape[1]):
            new, inside_B1 = self.step(x_BQI[:, q], state), (q < length_B)[:, None]
            state = tuple(torch.where(inside_B1, a, b) for a, b in zip(new, state))
            states.append(state[0])
        return torch.stack(states, 1), state[0]


class Lstm(Recurrent):
    """Gates: input, forget, candidate, output. A state is (h_BD, c_BD)."""

    gates = 4

    def start(self, x):
        zeros = x.new_zeros(len(x), self.width)
        return zeros, zeros

    def step(self, x_BI, state):
        h_BD, c_BD = state
        i, f, g, o = (self.input(x_BI) + self.recurrent(h_BD)).chunk(4, -1)
        c_BD = f.sigmoid() * c_BD + i.sigmoid() * g.tanh()
        return o.sigmoid() * c_BD.tanh(), c_BD


class Gru(Recurrent):
    """Gates: reset, update, candidate. A state is (h_BD,)."""

    gates = 3

    def start(self, x):
        return (x.new_zeros(len(x), self.width),)

    def step(self, x_BI, state):
        (h_BD,) = state
        x_r, x_z, x_n = self.input(x_BI).chunk(3, -1)
        h_r, h_z, h_n = self.recurrent(h_BD).chunk(3, -1)
        update = (x_z + h_z).sigmoid()
        return ((1 - update) * (x_n + (x_r + h_r).sigmoid() * h_n).tanh() + update * h_BD,)


def weights(scores, valid):
    """Softmax over what is valid; 0 elsewhere, and everywhere where nothing is."""
    return scores.masked_fill(~valid, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~valid, 0)


def mean(x_BSD, length_B):
    """Mean of the first `length` vectors of each row; 0 for none."""
    total_BD = x_BSD.masked_fill(~inside(x_BSD.shape[1], length_B)[..., None], 0).sum(1)
    return total_BD / length_B.clamp(min=1)[:, None]


def signed_root(x):
    """sign(x) sqrt(|x|)."""
    return x * (x.abs() + 1e-8).rsqrt()


def unit(x):
    """x / |x|; 0 stays 0."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-12).rsqrt()
