"""The models that answer: batch -> (answer logits [B, A] or [B, C], context).

The context of an explanation is (memory_BSD, length_B, pooled_BD): vectors, how many of them count, and one for all.

Legend: B batch, C choices, K rows of text (B, or B (C + 1)), Q question tokens, R regions, F their width, S memory,
G glimpses, D width, A answers.
"""

import torch
from torch import nn

from .layers_evil import (
    ACTIVATIONS,
    Choices,
    Gru,
    Lstm,
    PostNormBlock,
    TextEmbedding,
    inside,
    join,
    signed_root,
    take,
    unit,
    weights,
)

WIDTH = 2048  # of region features


class ImageEmbedding(nn.Module):
    """norm(norm(W feature) + norm(V location) + a type row)."""

    def __init__(self, width):
        super().__init__()
        self.feature, self.feature_norm = nn.Linear(WIDTH, width), nn.LayerNorm(width, 1e-12)
        self.location, self.location_norm = nn.Linear(7, width), nn.LayerNorm(width, 1e-12)
        self.norm = nn.LayerNorm(width, 1e-12)

    def forward(self, features_BRF, locations_BR7, type_D):
        feature_BRD = self.feature_norm(self.feature(features_BRF))
        return self.norm(feature_BRD + self.location_norm(self.location(locations_BR7)) + type_D)


class AnswerHead(nn.Module):
    """D -> 2 D, activation, norm, -> A."""

    def __init__(self, width, answers, activation):
        super().__init__()
        self.up, self.norm = nn.Linear(width, 2 * width), nn.LayerNorm(2 * width, 1e-12)
        self.answer, self.activation = nn.Linear(2 * width, answers), activation

    def forward(self, pooled):
        return self.answer(self.norm(ACTIVATIONS[self.activation](self.up(pooled))))


class Uniter(nn.Module):
    """UNITER (Chen et al. 2020): one encoder over words and regions, with an answer head."""

    def __init__(self, c):
        super().__init__()
        width = c['width']
        self.text = TextEmbedding(c['words'], c['positions'], c['types'], width)
        self.image = ImageEmbedding(width)
        self.layers = nn.ModuleList(PostNormBlock(width, c['heads'], c['hidden']) for _ in range(c['layers']))
        self.pooler = nn.Linear(width, width)
        if c['choices']:
            self.head_vcr = AnswerHead(width, 2, 'relu')
        else:
            self.head = AnswerHead(width, c['answers'], 'gelu')
        self.rows, self.pad_regions, self.read_padding = Choices(c['choices']), c['pad_regions'], c['read_padding']

    def forward(self, batch):
        """(answer logits [B, A or C], (memory_BSD, length_B, pooled_BD))."""
        rows, features_BRF, locations_BR7, region_B = self.rows, *picture(batch, self.pooler.weight.dtype)
        if self.pad_regions:  # as e-UG's published code: zero vectors up to the largest picture of the batch
            beyond_BR1 = ~inside(features_BRF.shape[1], region_B)[..., None]
            features_BRF, locations_BR7 = (x.masked_fill(beyond_BR1, 0) for x in (features_BRF, locations_BR7))
            region_B = torch.full_like(region_B, region_B.max())
        image_KRD = rows.repeat(self.image(features_BRF, locations_BR7, self.text.kind.weight[1]))
        region_K, text_K, linked_KQD = rows.repeat(region_B), rows.join(batch, '_length'), 0
        if rows.choices:
            tags_KQ = rows.join(batch, '_tags')
            linked_KQD = take(image_KRD, tags_KQ.clamp(min=0)).masked_fill((tags_KQ < 0)[..., None], 0)
        text_KQD = self.text(rows.join(batch), rows.join(batch, '_type')) + linked_KQD
        pieces, lengths = [text_KQD, image_KRD], [text_K, region_K]
        if self.read_padding:  # behind all keys: padding sees, and is not seen
            pieces.append(text_KQD.flip(1))
            lengths.append(text_KQD.shape[1] - text_K)
        x_KSD, length_K = join(pieces, lengths)
        keys_K1S = inside(x_KSD.shape[1], text_K + region_K)[:, None]
        for block in self.layers:
            x_KSD = block(x_KSD, keys_K1S)
        pooled_KD = self.pooler(x_KSD[:, 0]).tanh()
        if rows.choices:
            both_BC2 = self.head_vcr(rows.pairs(pooled_KD))
            logits = both_BC2[..., 1] - both_BC2[..., 0]
        else:
            logits = self.head(pooled_KD)
        x_BSD, length_B, text_B, region_B = map(rows.alone, (x_KSD, length_K, text_K, region_K))
        if self.read_padding:  # its place is between text and regions
            x_BSD = self._in_order(x_BSD, text_B, region_B, text_KQD.shape[1])
        memory_BSD = x_BSD.masked_fill(~inside(x_BSD.shape[1], length_B)[..., None], 0)
        return logits, (memory_BSD, length_B, rows.alone(pooled_KD))

    def _in_order(self, x_BSD, text_B, region_B, capacity):
        position_S = torch.arange(x_BSD.shape[1], device=x_BSD.device)
        text_B1, region_B1 = text_B[:, None], region_B[:, None]
        # Padding was laid behind the regions from its end to its start: that is how `flip` left it.
        padding_BS = region_B1 + text_B1 + (capacity - 1 - position_S)
        index_BS = torch.where(position_S < text_B1, position_S.expand_as(padding_BS), padding_BS)
        index_BS = torch.where(position_S < capacity, index_BS, position_S - capacity + text_B1)
        return take(x_BSD, index_BS.clamp(max=x_BSD.shape[1] - 1))


def picture(batch, dtype):
    """features_BRF and locations_BR7 in the dtype of a model, region_length_B."""
    return batch['features'].to(dtype), batch['locations'].to(dtype), batch['region_length']


class Bert(nn.Module):
    """BERT or DistilBERT (no types, ReLU in the pooler): reads text alone. There is no memory, but a pooled vector."""

    def __init__(self, c):
        super().__init__()
        width = c['width']
        self.text = TextEmbedding(c['words'], c['positions'], c['types'], width)
        self.layers = nn.ModuleList(PostNormBlock(width, c['heads'], c['hidden']) for _ in range(c['layers']))
        self.pooler, self.pool, self.types = nn.Linear(width, width), c['pool'], c['types']
        if c['choices']:
            self.head_vcr = Head(width, 1)
        else:
            self.head = Head(width, c['answers'])
        self.rows = Choices(c['choices'])

    def forward(self, batch):
        rows = self.rows
        x_KQD = self.text(rows.join(batch), rows.join(batch, '_type').clamp(max=self.types - 1))
        keys_K1Q = inside(x_KQD.shape[1], rows.join(batch, '_length'))[:, None]
        for block in self.layers:
            x_KQD = block(x_KQD, keys_K1Q)
        pooled_KD = self.pooler(x_KQD[:, 0])
        pooled_KD = pooled_KD.tanh() if self.pool == 'tanh' else pooled_KD.relu()
        logits = self.head_vcr(rows.pairs(pooled_KD))[..., 0] if rows.choices else self.head(pooled_KD)
        pooled_BD = rows.alone(pooled_KD)
        length_B = torch.zeros(len(pooled_BD), dtype=torch.long, device=pooled_BD.device)
        return logits, (pooled_BD.new_zeros(len(pooled_BD), 0, pooled_BD.shape[-1]), length_B, pooled_BD)


class Head(nn.Module):
    """One linear map."""

    def __init__(self, inputs, answers):
        super().__init__()
        self.answer = nn.Linear(inputs, answers)

    def forward(self, x):
        return self.answer(x)


class Sketch(nn.Module):
    """Count sketch: y[d] = sum of sign(i) x[i] over i with hash(i) = d. Both were drawn once and are in the file."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.register_buffer('hash', torch.zeros(inputs, dtype=torch.int32))
        self.register_buffer('sign', torch.ones(inputs, dtype=torch.int8))
        self.outputs = outputs

    def forward(self, x):
        return x.new_zeros(*x.shape[:-1], self.outputs).index_add(-1, self.hash, x * self.sign)


class Bilinear(nn.Module):
    """Compact bilinear pooling: the circular convolution of two sketches."""

    def __init__(self, first, second, outputs):
        super().__init__()
        self.first, self.second = Sketch(first, outputs), Sketch(second, outputs)

    def forward(self, x, y):
        spectrum = torch.fft.rfft(self.first(x)) * torch.fft.rfft(self.second(y))
        return torch.fft.irfft(spectrum, n=self.first.outputs)


class Mcb(nn.Module):
    """Compact bilinear pooling, signed square root, norm."""

    def __init__(self, inputs, width, outputs):
        super().__init__()
        self.bilinear, self.norm = Bilinear(inputs, width, outputs), nn.LayerNorm(outputs, 1e-5)
        self.outputs = outputs

    def forward(self, x, question):
        return self.norm(signed_root(self.bilinear(x, question)))


class Product(nn.Module):
    """Element by element, signed square root, length 1."""

    def __init__(self, width, attended):
        super().__init__()
        self.map = nn.Linear(width, width) if attended else None
        self.outputs = width

    def forward(self, x, question):
        return unit(signed_root((x if self.map is None else self.map(x)) * question))


class Glimpses(nn.Module):
    """Attention of PJ-X: what each glimpse sees of the cells."""

    def __init__(self, inputs, hidden, glimpses):
        super().__init__()
        self.hidden, self.score = nn.Linear(inputs, hidden), nn.Linear(hidden, glimpses)

    def forward(self, fused_BNRI, cells_BRD, valid_BR):
        scores_BNRG = self.score(self.hidden(fused_BNRI).relu())
        weights_BNGR = weights(scores_BNRG.transpose(-1, -2), valid_BR[:, None, None])
        return torch.einsum('bngr,brd->bngd', weights_BNGR, cells_BRD).flatten(2)


class Question(nn.Module):
    """Two LSTMs, one above the other, over tanh(words): their last states."""

    def __init__(self, words, embedding, width):
        super().__init__()
        self.word = nn.Embedding(words, embedding)
        self.layers = nn.ModuleList(Lstm(inputs, width // 2) for inputs in (embedding, width // 2))

    def forward(self, ids_KQ, length_K):
        x_KQD, lasts = self.word(ids_KQ).tanh(), []
        for layer in self.layers:
            x_KQD, last_KD = layer(x_KQD, length_K)
            lasts.append(last_KD)
        return torch.cat(lasts, -1)


class Pjx(nn.Module):
    """PJ-X (Park et al. 2018): a question finds cells of a picture, and is fused with them twice."""

    def __init__(self, c):
        super().__init__()
        width = c['width']
        self.question = Question(c['words'], c['embedding'], width)
        self.image, self.places = nn.Linear(WIDTH, width), c['places']
        if self.places:
            self.location, self.location_norm = nn.Linear(7, width), nn.LayerNorm(width, 1e-5)
        if c['fusion'] == 'mcb':
            self.fuse, self.fuse_again = (Mcb(n * width, width, c['sketch']) for n in (1, c['glimpses']))
        else:
            self.fuse, self.fuse_again = Product(width, False), Product(width, True)
        self.attention = Glimpses(self.fuse.outputs, c['hidden'], c['glimpses'])
        if c['choices']:
            self.head_vcr = Head(self.fuse_again.outputs, 1)
        else:
            self.head = Head(self.fuse_again.outputs, c['answers'])
        self.rows = Choices(c['choices'])

    def forward(self, batch):
        rows, (features_BRF, locations_BR7, region_B) = self.rows, picture(batch, self.image.weight.dtype)
        valid_BR = inside(features_BRF.shape[1], region_B)
        features_BRF = features_BRF.masked_fill(~valid_BR[..., None], 0)
        unit_BRF = (
            unit(features_BRF.flatten(1)).view_as(features_BRF)
            * (region_B * WIDTH).to(features_BRF.dtype).sqrt()[:, None, None]
        )
        cells_BRD = self.image(unit_BRF)
        if self.places:
            cells_BRD = cells_BRD + self.location_norm(self.location(locations_BR7))
        cells_BRD = cells_BRD.masked_fill(~valid_BR[..., None], 0)
        question_KD = self.question(rows.join(batch), rows.join(batch, '_length'))
        asked_BND = rows.pairs(question_KD) if rows.choices else question_KD[:, None]
        fused_BNRI = self.fuse(cells_BRD[:, None], asked_BND[:, :, None])
        answering_BNI = self.fuse_again(self.attention(fused_BNRI, cells_BRD, valid_BR), asked_BND)
        logits = self.head_vcr(answering_BNI)[..., 0] if rows.choices else self.head(answering_BNI)[:, 0]
        return logits, (cells_BRD, region_B, rows.alone(question_KD))


class NormedLinear(nn.Module):
    """A linear map whose weights are scale V / |V|."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(outputs, inputs)), nn.Parameter(torch.empty(outputs))
        self.scale = nn.Parameter(torch.empty(()))

    def forward(self, x):
        return nn.functional.linear(x, self.weight * (self.scale / self.weight.norm()), self.bias)


class Layer(nn.Module):
    """A normed linear map and a non-linearity: gated tanh, or ReLU."""

    def __init__(self, inputs, outputs, gate):
        super().__init__()
        self.up = NormedLinear(inputs, outputs)
        self.open = NormedLinear(inputs, outputs) if gate == 'tanh' else None

    def forward(self, x):
        return self.up(x).relu() if self.open is None else self.open(x).sigmoid() * self.up(x).tanh()


class TopDown(nn.Module):
    """Which regions matter to a question: weights_KR."""

    def __init__(self, width, gate):
        super().__init__()
        if gate == 'tanh':
            self.both = Layer(2 * width, width, gate)
        else:
            self.region, self.question = Layer(width, width, gate), Layer(width, width, gate)
        self.score, self.gate = NormedLinear(width, 1), gate

    def forward(self, x_KRD, length_K, question_KD):
        if self.gate == 'tanh':
            joint_KRD = self.both(torch.cat([x_KRD, question_KD[:, None].expand_as(x_KRD)], -1))
        else:
            joint_KRD = self.region(x_KRD) * self.question(question_KD)[:, None]
        return weights(self.score(joint_KRD)[..., 0], inside(x_KRD.shape[1], length_K))


class UpDownHead(nn.Module):
    """A layer, then a plain linear map."""

    def __init__(self, width, hidden, answers, gate):
        super().__init__()
        self.up, self.answer = Layer(width, hidden, gate), nn.Linear(hidden, answers)

    def forward(self, x):
        return self.answer(self.up(x))


class UpDown(nn.Module):
    """Up-Down VQA (Anderson et al. 2018): a question's GRU, and attention over regions."""

    def __init__(self, c):
        super().__init__()
        width, gate = c['width'], c['gate']
        self.word = nn.Embedding(c['words'], c['embedding'])
        self.tag = nn.Linear(width, c['embedding']) if c['choices'] else None
        self.question, self.image = Gru(c['embedding'], width), nn.Linear(WIDTH, width)
        self.location = nn.Linear(7, width) if c['locations'] else None
        norm = lambda: nn.LayerNorm(width, 1e-5) if c['norms'] else nn.Identity()
        self.image_norm, self.question_norm, self.joint_norm = norm(), norm(), norm()
        if c['locations']:
            self.location_norm = norm()
        self.glimpses = nn.ModuleList(TopDown(width, gate) for _ in range(c['glimpses']))
        self.question_net, self.image_net = Layer(width, width, gate), Layer(c['glimpses'] * width, width, gate)
        if c['choices']:
            self.head_vcr = UpDownHead(width, c['hidden'], 1, gate)
        else:
            self.head = UpDownHead(width, c['hidden'], c['answers'], gate)
        self.rows = Choices(c['choices'])

    def forward(self, batch):
        rows, (features_BRF, locations_BR7, region_B) = self.rows, picture(batch, self.image.weight.dtype)
        x_BRD = self.image_norm(self.image(features_BRF))
        if self.location is not None:
            x_BRD = x_BRD + self.location_norm(self.location(locations_BR7))
        x_BRD = x_BRD.masked_fill(~inside(x_BRD.shape[1], region_B)[..., None], 0)
        words_KQE = self.word(rows.join(batch))
        if rows.choices:
            tags_KQ = rows.join(batch, '_tags')
            linked_KQE = take(rows.repeat(self.tag(x_BRD)), tags_KQ.clamp(min=0))
            words_KQE = words_KQE + linked_KQE.masked_fill((tags_KQ < 0)[..., None], 0)
        question_KD = self.question_norm(self.question(words_KQE, rows.join(batch, '_length'))[1])
        x_KRD, length_K = rows.repeat(x_BRD), rows.repeat(region_B)
        weights_KGR = torch.stack([glimpse(x_KRD, length_K, question_KD) for glimpse in self.glimpses], 1)
        joint_KD = self.question_net(question_KD) * self.image_net((weights_KGR @ x_KRD).flatten(1))
        joint_KD = self.joint_norm(joint_KD)
        logits = self.head_vcr(rows.pairs(joint_KD))[..., 0] if rows.choices else self.head(joint_KD)
        return logits, (x_BRD, region_B, rows.alone(question_KD))


MODELS = {'uniter': Uniter, 'bert': Bert, 'mcb': Pjx, 'updown': UpDown}
