"""A model of evil_jax in PyTorch: it answers a question about the regions of a picture and explains the answer.

    from transformers import AutoModel
    model = AutoModel.from_pretrained(FOLDER, trust_remote_code=True)
    batch = model.encode('is the cat asleep?', features=..., boxes=..., size=(640, 480))
    model(**batch).logits           answer logits [B, A]
    model.explain(batch)            [Explained(answer='yes', probability=0.9, explanation='its eyes are closed', ...)]

One class for each architecture; modules are named as in evil_jax. Evaluation only: there is no dropout here.

Legend: B batch, C choices, K rows of an encoder (B, or B (C + 1)), Q question tokens, R regions, S memory, P positions,
T explanation tokens, A answers, D width, V vocabulary.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from .configuration_evil import EvilConfig
from .processing_evil import Processor, Regions

WIDTH = 2048  # of region features
IMAGE, QUESTION, ANSWER, EXPLANATION = range(4)
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
    """norm(word + position + type), plus the region that a word stands for."""

    def __init__(self, words, positions, types, width):
        super().__init__()
        self.word, self.position, self.kind = (nn.Embedding(n, width) for n in (words, positions, types))
        self.norm = nn.LayerNorm(width, 1e-12)

    def forward(self, ids_KQ, type_KQ, region_KQD=0):
        position_Q = torch.arange(ids_KQ.shape[1], device=ids_KQ.device)
        return self.norm(self.word(ids_KQ) + self.position(position_Q) + self.kind(type_KQ)) + region_KQD


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
        rows, features_BRF, locations_BR7, region_B = self.rows, *picture(batch)
        if self.pad_regions:  # as e-UG's published code: zero vectors up to the largest picture of the batch
            beyond_BR1 = ~inside(features_BRF.shape[1], region_B)[..., None]
            features_BRF, locations_BR7 = (x.masked_fill(beyond_BR1, 0) for x in (features_BRF, locations_BR7))
            region_B = torch.full_like(region_B, region_B.max())
        image_KRD = rows.repeat(self.image(features_BRF, locations_BR7, self.text.kind.weight[1]))
        region_K, text_K, linked_KQD = rows.repeat(region_B), rows.join(batch, '_length'), 0
        if rows.choices:
            tags_KQ = rows.join(batch, '_tags')
            linked_KQD = take(image_KRD, tags_KQ.clamp(min=0)).masked_fill((tags_KQ < 0)[..., None], 0)
        text_KQD = self.text(rows.join(batch), rows.join(batch, '_type'), linked_KQD)
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


def picture(batch):
    """features_BRF as float32, locations_BR7, region_length_B."""
    return batch['features'].float(), batch['locations'], batch['region_length']


class Gpt2(nn.Module):
    """GPT-2 (Radford et al. 2019), which reads the memory as a visual prefix, then question and answer, and explains.

    A row is `<|b_img|> memory <|e_img|>`, `<|b_qn|> question <|e_qn|>`, `<|b_ans|> answer <|e_ans|>`, `<|b_rtnl|>
    explanation`, without gaps; each position has its row of the position table and one of four type rows, which stand
    in the word table.
    """

    def __init__(self, c):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(c['rows'], c['width']), nn.Embedding(c['positions'], c['width'])
        self.layers = nn.ModuleList(PreNormBlock(c['width'], c['heads']) for _ in range(c['layers']))
        self.norm = nn.LayerNorm(c['width'], 1e-5)
        self.b_img, self.e_img, self.types, self.late = c['b_img'], c['e_img'], c['types'], c['late']

    def _typed(self, x_BPD, kind):
        return x_BPD + self.wte.weight[self.types[kind]]

    def _rows(self, batch, context, answer_BT, answer_B, tokens_BT):
        """(x_BPD, length_B), explanation tokens included."""
        memory_BSD, length_B, _ = context
        rows = len(length_B)
        marker = lambda i: self._typed(self.wte.weight[i].expand(rows, 1, -1), IMAGE)
        lost = int(self.late)  # e-UG's published code lays the memory over <|e_img|> and <|b_qn|>
        typed_BSD = self._typed(memory_BSD, IMAGE)
        if self.late:
            last_BS1 = (torch.arange(memory_BSD.shape[1], device=length_B.device) == length_B[:, None] - 1)[..., None]
            typed_BSD = torch.where(last_BS1, self._typed(memory_BSD, QUESTION), typed_BSD)
        one_B = torch.ones_like(length_B)
        pieces, lengths = zip(
            (marker(self.b_img), one_B),
            (typed_BSD, length_B),
            (marker(self.e_img)[:, lost:], one_B - lost),
            (self._typed(self.wte(batch['question']), QUESTION)[:, lost:], batch['question_length'] - lost),
            (self._typed(self.wte(answer_BT), ANSWER), answer_B),
            (self._typed(self.wte(tokens_BT), EXPLANATION), one_B * tokens_BT.shape[1]),
        )
        x_BPD, length_B = join(pieces, lengths)
        return x_BPD + self.wpe.weight[: x_BPD.shape[1]], length_B

    def _logits(self, x):
        return F.linear(self.norm(x), self.wte.weight)

    def forward(self, batch, context, answer_BT, answer_B, tokens_BT):
        """Logits [B, T, V]; those at t are of token t + 1."""
        logits_BPV, (_, _, _, length_B) = self._read(batch, context, answer_BT, answer_B, tokens_BT)
        T = tokens_BT.shape[1]
        return self._logits(take(logits_BPV, (length_B - T)[:, None] + torch.arange(T, device=length_B.device)))

    def _read(self, *row):
        x_BPD, length_B = self._rows(*row)
        size, past = x_BPD.shape[1], []
        causal_1PP = torch.ones(size, size, dtype=torch.bool, device=x_BPD.device).tril()[None]
        for block in self.layers:
            x_BPD, present = block(x_BPD, causal_1PP)
            past.append(present)
        return x_BPD, (past, inside(size, length_B), length_B, length_B)

    def start(self, batch, context, answer_BT, answer_B, begin, tokens):
        """Reads everything up to `<|b_rtnl|>`: (logits_BV of the first token, state)."""
        begin_B1 = torch.full_like(answer_B[:, None], begin)
        x_BPD, state = self._read(batch, context, answer_BT, answer_B, begin_B1)
        if (longest := x_BPD.shape[1] + tokens) > len(self.wpe.weight):
            raise ValueError(f'{tokens} tokens need {longest} positions, GPT-2 has {len(self.wpe.weight)}')
        return self._logits(take(x_BPD, state[-1][:, None] - 1)[:, 0]), state

    def extend(self, state, token_B):
        """One more token a row: (logits_BV of the next one, state)."""
        past, keys_BP, position_B, first_B = state
        x_B1D = (self._typed(self.wte(token_B), EXPLANATION) + self.wpe(position_B))[:, None]
        keys_BP, new = F.pad(keys_BP, (0, 1), value=True), []
        for block, before in zip(self.layers, past):
            x_B1D, present = block(x_B1D, keys_BP[:, None], before)
            new.append(present)
        return self._logits(x_B1D[:, 0]), (new, keys_BP, position_B + 1, first_B)


TASKS = {'uniter': Uniter}
EXPLAINERS = {'gpt2': Gpt2}


@dataclasses.dataclass
class EvilOutput(ModelOutput):
    """logits: of the answers [B, A], or of the choices [B, C]. explanation_logits: [B, T, V], or None."""

    logits: torch.Tensor | None = None
    explanation_logits: torch.Tensor | None = None


@dataclasses.dataclass
class Explained:
    """answer: its text; of choices its number. index: of the answer or choice. explanation: its text, of `tokens`."""

    answer: str | int
    index: int
    probability: float
    explanation: str = ''
    tokens: list = dataclasses.field(default_factory=list)


class EvilModel(PreTrainedModel):
    """The pair: `task` answers, `expl` explains (None in a model that only answers).

    Attributes:
      processor: Processor, read from the folder that the model was loaded from.
    """

    config_class = EvilConfig
    base_model_prefix = 'model'

    def __init__(self, config):
        super().__init__(config)
        self.task = TASKS[config.task['name']](config.task)
        self.expl = EXPLAINERS[config.expl['name']](config.expl) if config.expl else None
        self.processor = None
        self.post_init()

    def _init_weights(self, module):
        """Every weight is in the file."""

    @classmethod
    def from_pretrained(cls, path, *args, **kwargs):
        """As every model of transformers, and the vocabularies with it."""
        found = super().from_pretrained(path, *args, **kwargs)
        where = {k: kwargs[k] for k in ('revision', 'token', 'cache_dir', 'local_files_only') if k in kwargs}
        model = found[0] if isinstance(found, tuple) else found
        model.processor = Processor.load(model.config, path, **where)
        return found

    def encode(self, text, features=None, boxes=None, size=None, confidence=None, names=None, **more):
        """A batch of one question. Batches of several: `model.processor.batch([model.processor(...), ...])`.

        Args:
          features, boxes, size, confidence, names: see processing_evil.Regions; None: no picture.
          **more: choices, objects, object_boxes, object_size: see Processor.__call__.
        """
        regions = None if features is None else Regions(features, boxes, size, confidence, names)
        row = self.processor(text, regions, **more)
        return {name: value[None].to(self.device) for name, value in row.items()}

    def forward(self, explanation=None, answer=None, **batch):
        """Answer logits, and with `explanation` (tokens [B, T], `processor.explanation`) those of its next tokens.

        Args:
          answer: [B] index of the answer that is explained; None: the most likely one.
        """
        logits, context = self.task(batch)
        if explanation is None or self.expl is None:
            return EvilOutput(logits)
        index_B = logits.argmax(-1) if answer is None else answer
        condition = self.processor.condition(batch, index_B)
        return EvilOutput(logits, self.expl(batch, context, *condition, explanation))

    @torch.no_grad()
    def explain(self, batch, answer=None, max_tokens=None):
        """The most likely answers, and what greedy search says why.

        Args:
          batch: of `encode` or `processor.batch`.
          answer: [B] index of another answer or choice to explain.
          max_tokens: most tokens of an explanation.

        Returns:
          Explained, one a row.
        """
        logits, context = self.task(batch)
        scores = logits.softmax(-1) if self.config.probability == 'softmax' else logits.sigmoid()
        index_B = logits.argmax(-1)
        texts = self.config.answers or range(logits.shape[-1])
        found = [Explained(texts[i], i, float(row[i])) for i, row in zip(index_B.tolist(), scores)]
        if self.expl is None:
            return found
        condition = self.processor.condition(batch, index_B if answer is None else torch.as_tensor(answer))
        steps = max_tokens or self.config.encoding['max_explanation']
        for row, tokens in zip(found, self._greedy(batch, context, condition, steps)):
            row.explanation, row.tokens = self.processor.pieces.decode(tokens), [t for t in tokens if t != self._end]
        return found

    @property
    def _end(self):
        return self.config.expl['e_rtnl']

    def _greedy(self, batch, context, condition, steps):
        """Tokens of each row, the end token included."""
        logits_BV, state = self.expl.start(batch, context, *condition, self.config.expl['b_rtnl'], steps)
        found, running_B = [[] for _ in logits_BV], torch.ones(len(logits_BV), dtype=torch.bool)
        for step in range(steps):
            token_B = logits_BV[:, : self.config.expl['tokens']].argmax(-1)  # type rows are no words
            for row, token in enumerate(token_B.tolist()):
                if running_B[row]:
                    found[row].append(token)
                    running_B[row] = token != self._end
            if not running_B.any() or step == steps - 1:
                return found
            logits_BV, state = self.expl.extend(state, token_B)
