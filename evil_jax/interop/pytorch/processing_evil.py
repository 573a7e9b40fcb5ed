"""From a question and the regions of a picture to tensors, and from tokens back to words.

Exactly what evil_jax does in training. Needs numpy, torch and tokenizers.

Legend: Q question tokens, R regions, F region width 2048, T decoder tokens, C choices.
"""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import tokenizers
import torch
from tokenizers import decoders, models, normalizers, pre_tokenizers
from transformers.utils import cached_file

WIDTH = 2048
OVERLAP = 0.5  # least intersection over union of an object's box and the region that shows it
MARKERS = (
    *(f'<|{side}_{span}|>' for span in ('qn', 'ans', 'rtnl', 'img', 'situ', 'verb', 'before', 'after', 'intent')
      for side in 'be'),
    *(f'<|det{n}|>' for n in range(45)),
)  # fmt: skip
END_OF_TEXT = '<|endoftext|>'
NAMES = (
    'Casey', 'Riley', 'Jessie', 'Jackie', 'Avery', 'Jaime', 'Peyton', 'Kerry', 'Jody', 'Kendall', 'Peyton', 'Skyler',
    'Frankie', 'Pat', 'Quinn',
)  # fmt: skip
_TAG = re.compile(r'<\|det(\d+)\|>')
_KNOWN_TAG = re.compile(r'\s*<\|det(\d|[1-3]\d|4[0-4])\|>\s*')
_TO_SPACE = re.compile(r'<\|(?:[be]_qn|[be]_ans|[be]_situ|b_rtnl|endoftext)\|>')
_CLEAN_UP = (
    (' .', '.'), (' ?', '?'), (' !', '!'), (' ,', ','), (" ' ", "'"),
    (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


class Words:
    """BERT's WordPiece, for the answering half."""

    def __init__(self, entries, lowercase):
        self.ids = {entry: n for n, entry in enumerate(entries)}
        self.pad, self.cls, self.sep = (self.ids[name] for name in ('[PAD]', '[CLS]', '[SEP]'))
        wordpiece = models.WordPiece(self.ids, unk_token='[UNK]', max_input_chars_per_word=100)
        self._tokenizer = tokenizers.Tokenizer(wordpiece)
        self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def encode(self, text):
        """Ids without [CLS] and [SEP]."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids


class Pieces:
    """GPT-2's byte-level BPE with 63 markers behind it, for the explaining half."""

    def __init__(self, vocabulary, merges):
        self.base, self.end_of_text = len(vocabulary), vocabulary[END_OF_TEXT]
        self.ids = {marker: self.base + n for n, marker in enumerate(MARKERS)}
        self._texts = sorted(vocabulary, key=vocabulary.get)
        self._tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._decoder = decoders.ByteLevel()

    def encode(self, text):
        """Ids of a text without markers; `<|det0|>` ... `<|det44|>` are one token each, other markers mere text."""
        spell = lambda part: self._tokenizer.encode(part, add_special_tokens=False).ids if part else []
        parts = _KNOWN_TAG.split(text.strip())
        ids = spell(parts[0])
        for tag, part in zip(parts[1::2], parts[2::2]):
            ids += [self.ids[f'<|det{tag}|>'], *spell(part)]
        return ids

    def piece(self, span, text, maximum):
        """`<|b_span|> text <|e_span|>`; a text that is too long loses its last tokens."""
        ids = [self.ids[f'<|b_{span}|>'], *self.encode(text), self.ids[f'<|e_{span}|>']]
        return ids if len(ids) <= maximum else [*ids[: maximum - 1], ids[-1]]

    def decode(self, ids):
        """Words of generated tokens: markers become blanks, `<|detN|>` becomes N, the end marker ends them."""
        parts, run = [], []
        for i in ids:
            if i < self.base:
                run.append(self._texts[i])
                continue
            parts += [self._decoder.decode(run)] if run else []
            parts.append(MARKERS[i - self.base])
            run = []
        text = ' '.join(parts + ([self._decoder.decode(run)] if run else []))
        for before, after in _CLEAN_UP:
            text = text.replace(before, after)
        return _TAG.sub(r'\1', _TO_SPACE.sub(' ', text.partition('<|e_rtnl|>')[0])).strip()


@dataclasses.dataclass
class Regions:
    """What a detector found in a picture, n regions.

    Attributes:
      features: [n, 2048]; they are rounded to float16, as evil_jax stores them.
      boxes: [n, 4]: x1, y1, x2, y2 in pixels.
      size: (width, height) of the picture in pixels; (1, 1) where boxes are relative to it.
      confidence: [n]; where there are too many regions the most confident stay. None: the first.
      names: n names of objects, for models that read them; '' where it is not known what a region shows.
      classes: n numbers of these objects; of equally confident ones the lower is read first. None: the first.
    """

    features: np.ndarray
    boxes: np.ndarray
    size: tuple
    confidence: np.ndarray | None = None
    names: list | None = None
    classes: list | None = None

    def __post_init__(self):
        self.features = np.asarray(self.features).astype(np.float16)
        self.boxes = np.asarray(self.boxes, np.float32)
        n = len(self.boxes)
        self.confidence = np.ones(n, np.float32) if self.confidence is None else np.asarray(self.confidence, np.float32)
        shapes = self.features.shape, self.boxes.shape, self.confidence.shape
        if shapes != ((n, WIDTH), (n, 4), (n,)):
            raise ValueError(
                f'features, boxes, confidence have shapes {shapes}, wanted [n, {WIDTH}], [n, 4], [n] of the same n'
            )
        for what in ('names', 'classes'):
            if (given := getattr(self, what)) is not None and len(given) != n:
                raise ValueError(f'{len(given)} {what} of {n} regions')

    def __len__(self):
        return len(self.boxes)

    def best(self, n):
        """The n most confident regions, in their order. Cells of a grid are worth the same: none is left out."""
        if len(self) <= n:
            return self
        if self.grid:
            raise ValueError(f'a grid of {len(self)} cells, but this model reads at most {n} regions')
        rows = np.sort(np.argsort(-self.confidence, kind='stable')[:n])
        some = lambda given: None if given is None else [given[row] for row in rows]
        return Regions(
            self.features[rows],
            self.boxes[rows],
            self.size,
            self.confidence[rows],
            some(self.names),
            some(self.classes),
        )

    @property
    def grid(self):
        """Whether these are the cells of a grid: boxes of one size that fill the picture, all of the confidence 1."""
        if len(self) < 2 or self.size is None or not (self.confidence == 1).all():
            return False
        sides = (self.boxes[:, 2:] - self.boxes[:, :2]) / self.size
        if not (sides > 0).all():
            return False
        cells = np.rint(1 / sides[0])  # columns, rows
        places = np.rint(self.boxes[:, :2] / self.size * cells)
        return np.abs(sides * cells - 1).max() < 0.01 and cells.prod() == len(self) == len(np.unique(places, axis=0))

    def objects(self):
        """Names of what is there but 'person', each once, the most confident first; of synonyms the first."""
        if self.names is None and len(self):
            raise ValueError('this model reads names of objects: give the names of the regions')
        order = lambda n: (-float(self.confidence[n]), self.classes[n] if self.classes is not None else n)
        names = (self.names[n].partition(',')[0].strip() for n in sorted(range(len(self)), key=order))
        return [name for name in dict.fromkeys(names) if name not in ('', 'person')]

    def locations(self, convention):
        """Seven numbers a region: relative corners, width, height, area (uniter), or as two data sets of e-ViL have
        them: width and height swapped (evil_lmdb), pixels with y first (evil_vqax)."""
        x1, y1, x2, y2 = self.boxes.T
        if convention == 'evil_vqax':
            if self.size is not None and tuple(self.size) == (1, 1):
                raise ValueError('this model reads boxes in pixels: give those, and the size of the picture')
            w, h = x2 - x1, y2 - y1
            return np.stack([y1, x1, y2, x2, w, h, w * h], axis=1)
        width, height = map(np.float32, self.size)
        x1, y1, x2, y2 = x1 / width, y1 / height, x2 / width, y2 / height
        w, h = x2 - x1, y2 - y1
        return np.stack([x1, y1, x2, y2, *((w, h) if convention == 'uniter' else (h, w)), w * h], axis=1)

    def showing(self, boxes, size):
        """For each object's box (pixels of a picture of this size) the region that overlaps it most, or -1."""
        a = (np.asarray(boxes, np.float64) / np.tile(np.float64(size), 2))[:, None]
        b = (self.boxes.astype(np.float64) / np.tile(np.float64(self.size), 2))[None]
        if not len(self):
            return np.full(len(a), -1)
        both = np.maximum(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0).prod(-1)
        area = lambda x: np.maximum(x[..., 2:] - x[..., :2], 0).prod(-1)
        either = area(a) + area(b) - both
        overlap = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
        return np.where(overlap.max(1) >= OVERLAP, overlap.argmax(1), -1)


def fitting(names, encode, room):
    """Tokens of as many whole names as there is room for."""
    for count in range(len(names), 0, -1):
        if len(ids := encode(' '.join(names[:count]))) <= room:
            return ids
    return []


def padded(ids, maximum, pad):
    """int64 [maximum]: ids, then `pad`."""
    return np.asarray([*ids, *[pad] * (maximum - len(ids))], np.int64)


class Processor:
    """Turns questions and regions into tensors.

    Args:
      encoding, answers: of the model's configuration.
      words: Words. pieces: Pieces.
    """

    def __init__(self, encoding, answers, words, pieces):
        self.encoding, self.answers, self.words, self.pieces = encoding, answers, words, pieces
        table = [self._piece('answer', 'ans', answer, encoding['max_answer']) for answer in (*answers, '')]
        self._table = {name: np.stack([row[name] for row in table]) for name in table[0]}  # the last one: no answer

    @classmethod
    def load(cls, config, path, **where):
        """Reads the vocabularies from the sub-folders `task` and `expl` of an export, on disk or on the Hub."""
        find = lambda folder, name: Path(cached_file(path, name, subfolder=folder, **where))
        read = lambda folder, name: find(folder, name).read_text(encoding='utf-8')
        lines = lambda text: text.removesuffix('\n').split('\n')
        lowercase = json.loads(read('task', 'tokenizer_config.json'))['do_lower_case']
        merges = [tuple(line.split(' ')) for line in lines(read('expl', 'merges.txt'))[1:]]
        words = Words(lines(read('task', 'vocab.txt')), lowercase)
        return cls(config.encoding, config.answers, words, Pieces(json.loads(read('expl', 'vocab.json')), merges))

    def __call__(self, text, regions=None, *, choices=None, objects=None, object_boxes=None, object_size=None):
        """One row of a batch: dict of tensors.

        Args:
          text: question or statement. `<|detN|>` stands for object N, counted from 1.
          regions: Regions, or None: no picture.
          choices: the answers to choose from, for a model that has choices.
          objects: names of the objects that tags mean; a model that reads annotated objects reads them.
          object_boxes, object_size: [objects, 4] in pixels of a picture of this (width, height): link tags to regions.
        """
        e = self.encoding
        wanted, found = e['choices'], len(choices or ())
        if found != wanted:
            raise ValueError(f'{found} choices, this model wants {wanted}')
        names = self._names(regions, objects)
        regions = None if regions is None else regions.best(e['max_regions'])
        written = (lambda words: self._written(words, objects)) if wanted else lambda words: words
        row = self._picture(regions) | self._piece('question', 'qn', written(text), e['max_question'])
        if wanted:
            linked = np.zeros(0, np.int64)
            if e['tag_regions'] and e['regions'] == 'detected' and regions is not None and object_boxes is not None:
                linked = regions.showing(object_boxes, object_size)
            row |= self._tagged(text, choices, objects or (), linked, names)
            answers = [self._piece('answers', 'ans', written(choice), e['max_answer']) for choice in choices]
            row |= {name: np.stack([answer[name] for answer in answers]) for name in answers[0]}
        else:
            ids = [self.words.cls, *self.words.encode(text)[: e['max_text'] - 2], self.words.sep]
            row |= self._row('text', ids, [0] * len(ids), names)
        if e['objects']:
            marker, room = self.pieces.ids, e['max_objects'] - 2
            ids = [marker['<|b_img|>'], *fitting(names, self.pieces.encode, room), marker['<|e_img|>']]
            row |= {
                'objects': padded(ids, e['max_objects'], self.pieces.end_of_text),
                'objects_length': np.int64(len(ids)),
            }
        return {name: torch.as_tensor(value) for name, value in row.items()}

    def batch(self, rows):
        """Rows on top of each other."""
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    def condition(self, batch, index):
        """Tokens [B, T] and lengths [B] of `<|b_ans|> answer <|e_ans|>`; index [B]: of the answer or choice."""
        if self.encoding['choices']:
            rows = torch.arange(len(index), device=index.device)
            return batch['answers'][rows, index], batch['answers_length'][rows, index]
        table = {name: torch.as_tensor(value, device=index.device) for name, value in self._table.items()}
        return table['answer'][index], table['answer_length'][index]

    def explanation(self, text):
        """Tokens [1, T] of a given explanation, to be scored."""
        return torch.as_tensor([self.pieces.piece('rtnl', text, self.encoding['max_explanation'])])

    def _piece(self, name, span, text, maximum):
        ids = self.pieces.piece(span, text, maximum)
        return {name: padded(ids, maximum, self.pieces.end_of_text), f'{name}_length': np.int64(len(ids))}

    def _names(self, regions, objects):
        """Of the objects that follow a text."""
        how = self.encoding['objects']
        if how == 'annotated':
            if objects is None:
                raise ValueError('this model reads names of objects: give objects')
            return [name for name in dict.fromkeys(objects) if name.strip() and name != 'person']
        return regions.objects() if how and regions is not None else []

    def _row(self, name, ids, kinds, names, tags=None):
        maximum = self.encoding['max_text']
        if more := fitting(names, self.words.encode, maximum - len(ids) - 1):
            ids, kinds = [*ids, *more, self.words.sep], [*kinds, *[1] * (len(more) + 1)]
        row = {
            name: padded(ids, maximum, self.words.pad),
            f'{name}_type': padded(kinds, maximum, 0),
            f'{name}_length': np.int64(len(ids)),
        }
        return row if tags is None else row | {f'{name}_tags': padded(tags, maximum, -1)}

    def _picture(self, regions):
        e = self.encoding
        features = np.zeros((e['max_regions'], WIDTH), np.float16)
        places = np.zeros((e['max_regions'], 7), np.float32)
        length = 0 if regions is None else len(regions)
        if length and e['regions'] == 'detected':
            features[:length], places[:length] = regions.features, regions.locations(e['locations'])
        return {'features': features, 'locations': places, 'region_length': np.int64(length)}

    def _written(self, text, objects):
        """What the decoder reads: a tag beyond its tokens becomes the object's name."""
        name = lambda m: objects[int(m[1]) - 1] if 45 <= int(m[1]) <= len(objects or ()) else m[0]
        return _TAG.sub(name, text)

    def _read(self, text, objects, linked):
        """What the encoder reads: ids, and for each the region that it stands for, or -1."""
        ids, regions = [], []
        for n, part in enumerate(_TAG.split(text)):
            number = int(part) if n % 2 else 0
            if n % 2:
                part = self._name(number, objects)
            new = self.words.encode(part) if part else []
            ids += new
            regions += [int(linked[number - 1]) if 1 <= number <= len(linked) else -1] * len(new)
        return ids, regions

    def _name(self, number, objects):
        if self.encoding['tags'] == 'det' or not 1 <= number <= len(objects):
            return f'<|det{number}|>'
        kind = objects[number - 1]
        return NAMES[list(objects[: number - 1]).count('person') % len(NAMES)] if kind == 'person' else kind

    def _tagged(self, text, choices, objects, linked, names):
        """The question alone, and each pair `[CLS] question [SEP] choice [SEP]`, the choice of type 2."""
        maximum, cls, sep = self.encoding['max_text'], self.words.cls, self.words.sep
        ids, tags = self._read(text, objects, linked)
        alone = [cls, *ids[: maximum - 2], sep]
        row = self._row('text', alone, [0] * len(alone), names, [-1, *tags[: maximum - 2], -1])
        kept = maximum - (2 if self.encoding['cut_pairs'] else 4)
        first, first_tags, pairs = ids[:kept], tags[:kept], []
        room = max(maximum - 3 - len(first), 0)
        for choice in choices:
            ids, tags = (part[:room] for part in self._read(choice, objects, linked))
            pair = [cls, *first, sep, *ids, sep][:maximum]
            kinds = [0] * (len(first) + 2) + [2] * (len(ids) + 1)
            if len(first) + len(ids) + 3 > maximum:  # the question alone fills the row
                kinds = [0] * maximum
            pairs.append(self._row('choices', pair, kinds, names, [-1, *first_tags, -1, *tags, -1][:maximum]))
        return row | {name: np.stack([pair[name] for pair in pairs]) for name in pairs[0]}
