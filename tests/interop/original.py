"""The forward pass of the published e-UG code, from texts and regions to explanations: PyTorch, in our own words.

Written after what is known of that code (its parts are named in interop/eug.py), one plain step after the other, with
nothing of evil_jax: no compacted rows, no cache, no masks but its own. Parameters are a state dict with its names.
"""

import json
import pathlib
import re
import unicodedata

import torch
import transformers
from torch.nn import functional

SPANS = ['qn', 'ans', 'rtnl', 'img', 'situ', 'verb', 'before', 'after', 'intent']
MARKERS = [f'<|{side}_{span}|>' for span in SPANS for side in 'be'] + [f'<|det{n}|>' for n in range(45)]
QUESTION, ANSWER, RATIONALE = 19, 23, 51  # most tokens of a piece
UNITER, GPT2 = 'encoder.model.uniter', 'decoder.model.transformer'


class WordPiece:
    """BERT's word pieces of lower-cased text; '[SEP]' stays what it is."""

    def __init__(self, vocabulary):
        self.ids = {token: n for n, token in enumerate(vocabulary)}

    def __call__(self, text):
        found = []
        for word in text.split():
            if word == '[SEP]':
                found.append(word)
                continue
            letters = unicodedata.normalize('NFD', word.lower())
            letters = ''.join(c for c in letters if unicodedata.category(c) != 'Mn')
            for part in re.findall(r'\w+|[^\w\s]', letters):
                found += self.pieces(part)
        return found

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            ends = (e for e in range(len(word), start, -1) if ('##' if start else '') + word[start:e] in self.ids)
            end = next(ends, None)
            if end is None:
                return ['[UNK]']
            found.append(('##' if start else '') + word[start:end])
            start = end
        return found

    def row(self, text, length):
        """(ids, types, mask) of `[CLS] text [SEP]`, cut and padded."""
        inner = self(text)[: length - 2]
        tokens = ['[CLS]', *inner, '[SEP]']
        first = tokens.index('[SEP]') + 1 if '[SEP]' in inner else len(tokens)
        kinds = [0] * first + [2] * (len(tokens) - first)
        padding = [0] * (length - len(tokens))
        return [self.ids[t] for t in tokens] + padding, kinds + padding, [1] * len(tokens) + padding


class Bpe:
    """GPT-2's tokens and e-UG's markers behind them."""

    def __init__(self, folder):
        self.tokens = transformers.GPT2Tokenizer.from_pretrained(folder)
        self.base = len(json.loads((pathlib.Path(folder) / 'vocab.json').read_text()))
        self.ids = {token: self.base + n for n, token in enumerate(MARKERS)}
        self.size = self.base + len(MARKERS)

    def piece(self, span, text, limit):
        """White space round a marker is dropped; too long a piece keeps its end."""
        ids = []
        for part in re.split(r'(<\|det\d+\|>)', text):
            if part in self.ids:
                ids.append(self.ids[part])
            elif part.strip():
                ids += self.tokens(part.strip())['input_ids']
        ids = [self.ids[f'<|b_{span}|>'], *ids, self.ids[f'<|e_{span}|>']]
        return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]

    def text(self, ids):
        """The generated text after its clean-up."""
        parts, run = [], []
        for i in [*ids, self.size]:
            if i < self.base:
                run.append(i)
                continue
            if run:
                parts.append(self.tokens.decode(run, clean_up_tokenization_spaces=False))
                run = []
            if i < self.size:
                parts.append(MARKERS[i - self.base])
        text = self.tokens.clean_up_tokenization(' '.join(parts))
        for marker in ('b_qn', 'e_qn', 'b_ans', 'e_ans', 'b_situ', 'e_situ', 'b_rtnl', 'endoftext'):
            text = text.replace(f'<|{marker}|>', ' ')
        for n in range(45):
            text = text.replace(f'<|det{n}|>', str(n))
        return text.split('<|e_rtnl|>')[0].strip()


def random_state(*, width, heads, layers, blocks, words, positions, types, answers, tokens, rows, seed):
    """A state dict with the names of the published code, buffers included; `rows`: positions of GPT-2."""
    generator = torch.Generator().manual_seed(seed)
    state = {}

    def add(name, *shape, inputs=None):
        noise = torch.randn(shape, generator=generator)
        if inputs:
            noise *= 1.5 * inputs**-0.5
        elif name.endswith('bias'):
            noise *= 0.1
        elif len(shape) == 1:
            noise = 1 + 0.1 * noise
        state[name] = noise

    def linear(name, inputs, outputs):
        add(f'{name}.weight', outputs, inputs, inputs=inputs)
        add(f'{name}.bias', outputs)

    def conv(name, inputs, outputs):
        add(f'{name}.weight', inputs, outputs, inputs=inputs)
        add(f'{name}.bias', outputs)

    def norm(name, size=width):
        add(f'{name}.weight', size)
        add(f'{name}.bias', size)

    for name, count in (('word', words), ('position', positions), ('token_type', types)):
        add(f'{UNITER}.embeddings.{name}_embeddings.weight', count, width)
    norm(f'{UNITER}.embeddings.LayerNorm')
    linear(f'{UNITER}.img_embeddings.img_linear', 2048, width)
    linear(f'{UNITER}.img_embeddings.pos_linear', 7, width)
    for name in ('img_layer_norm', 'pos_layer_norm', 'LayerNorm'):
        norm(f'{UNITER}.img_embeddings.{name}')
    for n in range(layers):
        layer = f'{UNITER}.encoder.layer.{n}'
        for name in ('query', 'key', 'value'):
            linear(f'{layer}.attention.self.{name}', width, width)
        linear(f'{layer}.attention.output.dense', width, width)
        norm(f'{layer}.attention.output.LayerNorm')
        linear(f'{layer}.intermediate.dense', width, 4 * width)
        linear(f'{layer}.output.dense', 4 * width, width)
        norm(f'{layer}.output.LayerNorm')
    linear(f'{UNITER}.pooler.dense', width, width)
    for head, outputs in (('logit_fc', answers), ('vcr_fc', 2)):
        linear(f'{head}.0', width, 2 * width)
        norm(f'{head}.2', 2 * width)
        linear(f'{head}.3', 2 * width, outputs)
    add(f'{GPT2}.wte.weight', tokens, width)
    add(f'{GPT2}.wpe.weight', rows, width)
    for n in range(blocks):
        block = f'{GPT2}.h.{n}'
        norm(f'{block}.ln_1')
        state[f'{block}.attn.bias'] = torch.tril(torch.ones(rows, rows, dtype=torch.uint8))[None, None]
        state[f'{block}.attn.masked_bias'] = torch.tensor(-1e4)
        conv(f'{block}.attn.c_attn', width, 3 * width)
        conv(f'{block}.attn.c_proj', width, width)
        norm(f'{block}.ln_2')
        conv(f'{block}.mlp.c_fc', width, 4 * width)
        conv(f'{block}.mlp.c_proj', 4 * width, width)
    norm(f'{GPT2}.ln_f')
    state['decoder.model.lm_head.weight'] = state[f'{GPT2}.wte.weight']
    return state


class Original:
    """The net on a batch of texts and regions. `vcr`: each question has its own choices."""

    def __init__(self, state, words: WordPiece, bpe: Bpe, *, heads, text_length, vcr=False):
        self.state, self.words, self.bpe = state, words, bpe
        self.heads, self.text_length, self.vcr = heads, text_length, vcr

    def linear(self, name, x):
        return functional.linear(x, self.state[f'{name}.weight'], self.state[f'{name}.bias'])

    def conv(self, name, x):
        return x @ self.state[f'{name}.weight'] + self.state[f'{name}.bias']

    def norm(self, name, x, eps):
        return functional.layer_norm(x, x.shape[-1:], self.state[f'{name}.weight'], self.state[f'{name}.bias'], eps)

    def row(self, name, ids):
        return self.state[f'{name}.weight'][ids]

    def attend(self, q, k, v, mask):
        """`mask` is added to the scores."""
        cut = lambda x: x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = cut(q), cut(k), cut(v)
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(-2)

    def encode(self, texts, features, places):
        """(pooled [n, D], output [n, text_length + regions, D]); every region counts, padding or not."""
        rows = [self.words.row(text, self.text_length) for text in texts]
        ids, kinds, mask = (torch.tensor(column) for column in zip(*rows))
        e, i = f'{UNITER}.embeddings', f'{UNITER}.img_embeddings'
        text = self.row(f'{e}.word_embeddings', ids) + self.row(f'{e}.token_type_embeddings', kinds)
        text = text + self.row(f'{e}.position_embeddings', torch.arange(self.text_length))
        text = self.norm(f'{e}.LayerNorm', text, 1e-12)
        image = self.norm(f'{i}.img_layer_norm', self.linear(f'{i}.img_linear', features), 1e-12)
        image = image + self.norm(f'{i}.pos_layer_norm', self.linear(f'{i}.pos_linear', places), 1e-12)
        image = self.norm(f'{i}.LayerNorm', image + self.row(f'{e}.token_type_embeddings', 1), 1e-12)
        x = torch.cat([text, image], 1)
        mask = torch.cat([mask, torch.ones(features.shape[:2], dtype=torch.long)], 1)
        mask = (1.0 - mask[:, None, None]) * -10000.0
        n = 0
        while f'{UNITER}.encoder.layer.{n}.output.dense.bias' in self.state:
            layer = f'{UNITER}.encoder.layer.{n}'
            q, k, v = (self.linear(f'{layer}.attention.self.{name}', x) for name in ('query', 'key', 'value'))
            y = self.linear(f'{layer}.attention.output.dense', self.attend(q, k, v, mask))
            x = self.norm(f'{layer}.attention.output.LayerNorm', y + x, 1e-12)
            y = functional.gelu(self.linear(f'{layer}.intermediate.dense', x))
            x = self.norm(f'{layer}.output.LayerNorm', self.linear(f'{layer}.output.dense', y) + x, 1e-12)
            n += 1
        return self.linear(f'{UNITER}.pooler.dense', x[:, 0]).tanh(), x

    def head(self, name, activation, pooled):
        x = activation(self.linear(f'{name}.0', pooled))
        return self.linear(f'{name}.3', self.norm(f'{name}.2', x, 1e-12))

    def answer(self, texts, regions, choices=None):
        """(logits, visual [n, R, D]): A logits a question; for VCR two for each pair, false and true, [n, C, 2].

        Args:
          regions: (features [r, 2048], places [r, 7]) of each question's picture.
        """
        most = max(len(features) for features, _ in regions)
        padded = lambda x: functional.pad(torch.as_tensor(x).float(), (0, 0, 0, most - len(x)))
        features, places = (torch.stack([padded(r[n]) for r in regions]) for n in range(2))
        if not self.vcr:
            pooled, visual = self.encode(texts, features, places)
            return self.head('logit_fc', functional.gelu, pooled), visual
        pairs = [f'{text} [SEP] {choice}' for text, row in zip(texts, choices) for choice in row]
        count = len(choices[0])
        pooled, _ = self.encode(pairs, features.repeat_interleave(count, 0), places.repeat_interleave(count, 0))
        logits = self.head('vcr_fc', functional.relu, pooled)
        return logits.unflatten(0, (-1, count)), self.encode(texts, features, places)[1]

    def prompt(self, question, answer, rationale, size):
        """(ids, types) of one row; the image piece has as many tokens as there are visual vectors."""
        bpe = self.bpe
        filler = bpe.tokens('u')['input_ids'][0]
        image = [bpe.ids['<|b_img|>'], *[filler] * (size - 2), bpe.ids['<|e_img|>']]
        pieces = [image, bpe.piece('qn', question, QUESTION), bpe.piece('ans', answer, ANSWER)]
        pieces.append(bpe.piece('rtnl', rationale, RATIONALE))
        return [i for piece in pieces for i in piece], [n for n, piece in enumerate(pieces) for _ in piece]

    def decode(self, ids, kinds, visual):
        """Next-token logits of one row [P, V]."""
        x = self.row(f'{GPT2}.wte', ids)
        x[1 : len(visual) + 1] = visual
        x = x + self.row(f'{GPT2}.wpe', torch.arange(len(ids))) + self.row(f'{GPT2}.wte', kinds)
        x, n = x[None], 0
        mask = torch.full((len(ids), len(ids)), -1e4).triu(1)
        while f'{GPT2}.h.{n}.ln_1.weight' in self.state:
            block = f'{GPT2}.h.{n}'
            q, k, v = self.conv(f'{block}.attn.c_attn', self.norm(f'{block}.ln_1', x, 1e-5)).chunk(3, -1)
            x = x + self.conv(f'{block}.attn.c_proj', self.attend(q, k, v, mask))
            y = self.conv(f'{block}.mlp.c_fc', self.norm(f'{block}.ln_2', x, 1e-5))
            x = x + self.conv(f'{block}.mlp.c_proj', functional.gelu(y, approximate='tanh'))
            n += 1
        return functional.linear(self.norm(f'{GPT2}.ln_f', x, 1e-5)[0], self.state['decoder.model.lm_head.weight'])

    def loss(self, rows, visual):
        """Mean over the tokens behind `<|b_rtnl|>` of all rows; rows: (question, answer, rationale)."""
        losses = []
        for row, seen in zip(rows, visual):
            ids, kinds = map(torch.tensor, self.prompt(*row, len(seen)))
            first = (ids == self.bpe.ids['<|b_rtnl|>']).nonzero()[0, 0]
            logits = self.decode(ids, kinds, seen)
            losses.append(functional.cross_entropy(logits[first:-1], ids[first + 1 :], reduction='none'))
        return torch.cat(losses).mean()

    def generate(self, question, answer, visual, steps=51):
        """(tokens up to the end of the explanation, text); the likeliest token each time, always all steps."""
        ids, kinds = self.prompt(question, answer, '', len(visual))
        ids, kinds = ids[:-1], kinds[:-1]
        start = len(ids)
        for _ in range(steps):
            ids.append(int(self.decode(torch.tensor(ids), torch.tensor(kinds), visual)[-1].argmax()))
            kinds.append(3)
        new, end = ids[start:], self.bpe.ids['<|e_rtnl|>']
        return new[: new.index(end)] if end in new else new, self.bpe.text(new)
