"""The two tokenisers: WordPiece for the text that M_T reads, byte-level BPE with e-UG's 63 markers for what M_E writes.

Both read the published vocabulary files (BERT's vocab.txt; GPT-2's vocab.json + merges.txt, also under OpenAI's own
names encoder.json + vocab.bpe), can be trained on a small world's own texts, and are picklable, because the workers of
the input pipeline carry copies.
"""

import collections
import dataclasses
import hashlib
import json
import pathlib
import re
import string
from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from evil_jax import records
from evil_jax.text import TAG

PAD, UNK, CLS, SEP, MASK = '[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'
END_OF_TEXT = '<|endoftext|>'
DETECTIONS = 45
# The order fixes the ids (e-ViL facts 1.5): 50257 ... 50319 behind GPT-2's own vocabulary.
_SPANS = ('qn', 'ans', 'rtnl', 'img', 'situ', 'verb', 'before', 'after', 'intent')
SPECIALS = (
    *(f'<|{side}_{span}|>' for span in _SPANS for side in 'be'),
    *(f'<|det{n}|>' for n in range(DETECTIONS)),
)
TYPE_ROWS = 4  # image, question, answer, explanation: rows of the embedding table, not tokens

# Only person tags are looked for inside a text. The other markers are ours to place: a question that happens to contain
# '<|e_rtnl|>' is spelled out in bytes. White space around a tag is dropped, as transformers 3.0.0 did for e-UG.
_TAG = re.compile(r'\s*<\|det(\d|[1-3]\d|4[0-4])\|>\s*')
_SPECIAL = re.compile(r'\[[^\]]+\]')  # entries of a BERT vocabulary that are no words: [UNK], [unused1]
_TO_SPACE = re.compile(r'<\|(?:[be]_qn|[be]_ans|[be]_situ|b_rtnl|endoftext)\|>')
_CLEAN_UP = (
    (' .', '.'), (' ?', '?'), (' !', '!'), (' ,', ','), (" ' ", "'"),
    (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def _read_lines(path: pathlib.Path) -> list[str]:
    # Not splitlines(): vocabularies contain entries such as U+2028, which it takes for a line end.
    lines = [line.removesuffix('\r') for line in path.read_text(encoding='utf-8').split('\n')]
    while lines and not lines[-1]:
        lines.pop()
    return lines


class WordTokenizer:
    """BERT's WordPiece (Devlin et al. 2019).

    Attributes:
      vocabulary: entries, index = id.
      lowercase: lower-case and strip accents first. e-UG does so even with the cased vocabulary (facts 1.1), so that
        names and first words are other entries than those UNITER was pre-trained on: quirk 5 of compat.py.
      pad, unk, cls, sep: ids.
    """

    def __init__(self, vocabulary: Sequence[str], lowercase: bool = True, source: str = 'word vocabulary'):
        ids = {token: n for n, token in enumerate(vocabulary)}
        if len(ids) != len(vocabulary):
            seen = set()
            repeated = next(n for n, token in enumerate(vocabulary) if token in seen or seen.add(token))
            raise ValueError(f'{source}:{repeated + 1}: {vocabulary[repeated]!r} occurs twice, wanted distinct entries')
        for token in (PAD, UNK, CLS, SEP):
            if token not in ids:
                raise ValueError(f'{source}: no entry {token!r} among {len(ids)}; wanted a BERT vocab.txt')
        self.vocabulary, self.lowercase = tuple(vocabulary), lowercase
        self.pad, self.unk, self.cls, self.sep = (ids[token] for token in (PAD, UNK, CLS, SEP))
        self._tokenizer = tokenizers.Tokenizer(models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=100))
        self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    @classmethod
    def load(cls, path, lowercase: bool | None = None) -> 'WordTokenizer':
        """Reads a vocab.txt, or the one in a folder.

        Args:
          path: file or folder.
          lowercase: None takes `do_lower_case` of a tokenizer_config.json beside the file; where there is none, the
            vocabulary decides: cased text stays cased if an entry that is no special token has a capital letter A-Z.
        """
        path = pathlib.Path(path)
        path = path / 'vocab.txt' if path.is_dir() else path
        if not path.is_file():
            raise ValueError(f"{path} does not exist; wanted BERT's vocab.txt, or a folder that holds one")
        vocabulary = _read_lines(path)
        if lowercase is None:
            lowercase = _stated_case(path.parent / 'tokenizer_config.json')
        if lowercase is None:
            lowercase = not _cased(vocabulary)
        return cls(vocabulary, lowercase, str(path))

    def save(self, folder) -> None:
        """Writes vocab.txt and tokenizer_config.json, which transformers' BertTokenizer reads as well."""
        folder = pathlib.Path(folder)
        records.atomic_write(folder / 'vocab.txt', ''.join(token + '\n' for token in self.vocabulary))
        records.write_json(folder / 'tokenizer_config.json', {'do_lower_case': self.lowercase})

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Ids without [CLS] and [SEP]. A literal '[SEP]' in the text is punctuation and letters."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def spans(self, text: str) -> list[tuple[int, int]]:
        """What each id of `encode(text)` stands for: (start, end) in characters of the text."""
        return self._tokenizer.encode(text, add_special_tokens=False).offsets

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The entries' texts; a continuation starts with '##'."""
        return [self.vocabulary[i] for i in ids]


class ExplTokenizer:
    """GPT-2's byte-level BPE (Radford et al. 2019) followed by e-UG's 63 markers.

    Four further rows of the embedding table stand for the token types (`type_ids`): they are no tokens and never occur
    in a text.

    Attributes:
      size: tokens including the markers (50,320 with the real vocabulary).
      type_ids: rows of image, question, answer and explanation.
      rows: embedding rows in use, `size + 4`.
      end_of_text: id of '<|endoftext|>', which is also the padding.
    """

    def __init__(self, vocabulary: dict[str, int], merges: Sequence[tuple[str, str]], source: str = 'BPE vocabulary'):
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError(f'{source}: ids of {len(vocabulary)} entries are not 0 ... {len(vocabulary) - 1}')
        if END_OF_TEXT not in vocabulary:
            raise ValueError(f'{source}: no entry {END_OF_TEXT!r} among {len(vocabulary)}; wanted a GPT-2 vocabulary')
        for token in SPECIALS:
            if token in vocabulary:
                raise ValueError(f'{source}: {token!r} is an entry already (id {vocabulary[token]}); markers are added')
        missing = [c for c in pre_tokenizers.ByteLevel.alphabet() if c not in vocabulary]
        if missing:
            raise ValueError(f'{source}: {len(missing)} of 256 byte entries are missing, for example {missing[0]!r}')
        for number, (left, right) in enumerate(merges, 1):
            for part in (left, right, left + right):
                if part not in vocabulary:
                    raise ValueError(f'{source}: merge {number} ({left!r} + {right!r}) needs {part!r}, which has no id')
        self.vocabulary, self.merges = dict(vocabulary), tuple(merges)
        self._tokenizer = tokenizers.Tokenizer(models.BPE(self.vocabulary, list(self.merges)))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._bytes_decoder = decoders.ByteLevel()
        self._texts = [token for token, _ in sorted(vocabulary.items(), key=lambda item: item[1])]
        self._base = len(vocabulary)
        self._ids = {token: self._base + n for n, token in enumerate(SPECIALS)} | {END_OF_TEXT: vocabulary[END_OF_TEXT]}
        self.size = self._base + len(SPECIALS)
        self.type_ids = tuple(range(self.size, self.size + TYPE_ROWS))
        self.rows = self.size + TYPE_ROWS
        self.end_of_text = vocabulary[END_OF_TEXT]

    @classmethod
    def load(cls, folder) -> 'ExplTokenizer':
        """Reads vocab.json + merges.txt, or encoder.json + vocab.bpe, from a folder."""
        folder = pathlib.Path(folder)
        for names in (('vocab.json', 'merges.txt'), ('encoder.json', 'vocab.bpe')):
            vocabulary, merges = (folder / name for name in names)
            if vocabulary.is_file() and merges.is_file():
                return cls(_read_vocabulary(vocabulary), _read_merges(merges), str(vocabulary))
        raise ValueError(f'{folder} holds neither vocab.json + merges.txt nor encoder.json + vocab.bpe')

    def save(self, folder) -> None:
        """Writes vocab.json and merges.txt, without the markers: transformers' GPT2Tokenizer reads them as well."""
        folder = pathlib.Path(folder)
        vocabulary = {token: n for n, token in enumerate(self._texts)}
        records.atomic_write(folder / 'vocab.json', json.dumps(vocabulary, ensure_ascii=False))
        merges = ''.join(f'{left} {right}\n' for left, right in self.merges)
        records.atomic_write(folder / 'merges.txt', '#version: 0.2\n' + merges)

    def __len__(self) -> int:
        return self.size

    def id(self, token: str) -> int:
        """Id of a marker such as '<|b_rtnl|>', or of '<|endoftext|>'."""
        if token not in self._ids:
            raise ValueError(f'{token!r} is no marker; there are {END_OF_TEXT}, {SPECIALS[0]} ... {SPECIALS[-1]}')
        return self._ids[token]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without markers and without a leading space; '<|det0|>' ... '<|det44|>' are one token each."""
        parts = _TAG.split(text.strip())
        ids = self._spell(parts[0])
        for tag, part in zip(parts[1::2], parts[2::2]):
            ids.append(self._ids[f'<|det{tag}|>'])
            ids += self._spell(part)
        return ids

    def _spell(self, text):
        return self._tokenizer.encode(text, add_special_tokens=False).ids if text else []

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The entries' texts in the byte alphabet ('Ġ' is a leading space); markers as they are spelled."""
        return [self._token(i) for i in ids]

    def _token(self, i):
        if not 0 <= i < self.size:
            raise ValueError(f'token id {i} is outside the vocabulary of {self.size}')
        return self._texts[i] if i < self._base else SPECIALS[i - self._base]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of generated tokens, with e-UG's post-processing (facts 1.6).

        Question, answer and situation markers, '<|b_rtnl|>' and '<|endoftext|>' become a space, '<|detN|>' becomes 'N';
        the text ends at the first '<|e_rtnl|>'. Other markers stay, and double spaces inside are not collapsed.

        Raises:
          ValueError: an id outside the vocabulary (type rows are outside).
        """
        parts, run = [], []
        for i in ids:
            token = self._token(int(i))
            if i < self._base:
                run.append(token)
                continue
            if run:
                parts.append(self._bytes_decoder.decode(run))
                run = []
            parts.append(token)
        if run:
            parts.append(self._bytes_decoder.decode(run))
        text = ' '.join(parts)
        for before, after in _CLEAN_UP:
            text = text.replace(before, after)
        text = text.partition('<|e_rtnl|>')[0]
        text = TAG.sub(r'\1', _TO_SPACE.sub(' ', text))
        return text.strip()

    def piece(self, span: str, text: str, maximum: int) -> tuple[list[int], bool]:
        """One part of the decoder's prompt: `<|b_span|> text <|e_span|>`.

        Args:
          span: 'qn', 'ans' or 'rtnl'.
          text: its words; the first is encoded without a leading space.
          maximum: most tokens, markers included.

        Returns:
          ids, and whether the text was too long: it then loses its last tokens, never its end marker.
        """
        if maximum < 2:
            raise ValueError(f'a piece of at most {maximum} tokens cannot hold its two markers')
        ids = [self.id(f'<|b_{span}|>'), *self.encode(text), self.id(f'<|e_{span}|>')]
        if len(ids) <= maximum:
            return ids, False
        return [*ids[: maximum - 1], ids[-1]], True


@dataclasses.dataclass(frozen=True)
class Assets:
    """What a data set's texts and answers are written in; every checkpoint has a copy.

    Attributes:
      word: tokeniser of M_T.
      expl: tokeniser of M_E.
      answers: answer vocabulary or class names, index = label = output of the answer head.
      lowercase: the setting of `word`.
    """

    word: WordTokenizer
    expl: ExplTokenizer
    answers: tuple[str, ...]

    @property
    def lowercase(self) -> bool:
        return self.word.lowercase

    def hashes(self) -> dict[str, str]:
        """sha256 of the content of `word`, `expl` and `answers`, first 16 hex digits each: two are the same to a model
        exactly if these are. File formats do not matter."""
        contents = {
            'word': [self.word.vocabulary, self.lowercase],
            'expl': [sorted(self.expl.vocabulary.items(), key=lambda item: item[1]), self.expl.merges],
            'answers': self.answers,
        }
        return {n: hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16] for n, content in contents.items()}


def load_assets(folder) -> Assets:
    """Reads word/, expl/ and answers.json below `folder`. Raises ValueError naming what is missing or malformed."""
    folder = pathlib.Path(folder)
    for name in ('word', 'expl', 'answers.json'):
        if not (folder / name).exists():
            raise ValueError(f'{folder} has no {name}; wanted the assets/ folder that --mode=build or train writes')
    path = folder / 'answers.json'
    answers = _read_json(path, list)
    seen = {}
    for index, answer in enumerate(answers):
        if not isinstance(answer, str) or answer in seen:
            found = f'repeats answer {seen[answer]}' if isinstance(answer, str) else 'is not a string'
            raise ValueError(f'{path}: answer {index} ({answer!r}) {found}; wanted a list of distinct strings')
        seen[answer] = index
    return Assets(WordTokenizer.load(folder / 'word'), ExplTokenizer.load(folder / 'expl'), tuple(answers))


def save_assets(folder, assets: Assets) -> None:
    """Writes what `load_assets` reads."""
    folder = pathlib.Path(folder)
    assets.word.save(folder / 'word')
    assets.expl.save(folder / 'expl')
    records.write_json(folder / 'answers.json', list(assets.answers))


def train_word(texts: Iterable[str], path, lowercase: bool = True, size: int = 30_000) -> WordTokenizer:
    """Makes a WordPiece vocabulary of whole words for a small world, and writes it to the folder `path`.

    Entries: the special tokens, every printable ASCII character and every character of the texts, each also as a
    continuation (so that a word never seen is spelled, not unknown), then words, the most frequent first.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    splitter = pre_tokenizers.BertPreTokenizer()
    counts = collections.Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    characters = set(string.digits + string.ascii_letters + string.punctuation).union(*counts)
    if lowercase:
        characters -= set(string.ascii_uppercase)
    characters = sorted(characters)
    words = sorted((w for w in counts if len(w) > 1), key=lambda w: (-counts[w], w))
    entries = [PAD, UNK, CLS, SEP, MASK, *characters, *('##' + c for c in characters)]
    tokenizer = WordTokenizer([*entries, *words[: max(size - len(entries), 0)]], lowercase)
    tokenizer.save(path)
    return tokenizer


def train_expl(texts: Iterable[str], path, size: int = 2_048) -> ExplTokenizer:
    """Trains a byte-level BPE on a small world's texts, and writes it to the folder `path`.

    The vocabulary starts with the 256 bytes, so that every text can be written, and ends with '<|endoftext|>', as
    GPT-2's does.
    """
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    # Tags are no text. Most words follow another one: each text is also seen behind a space.
    parts = (part for text in texts for part in _TAG.split(text.strip())[::2])
    tokenizer.train_from_iterator((t for part in parts for t in (part, ' ' + part)), trainer)
    model = json.loads(tokenizer.to_str())['model']
    vocabulary = model['vocab'] | {END_OF_TEXT: len(model['vocab'])}
    trained = ExplTokenizer(vocabulary, [tuple(merge) for merge in model['merges']])
    trained.save(path)
    return trained


def _read_json(path, wanted):
    try:
        value = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(value, wanted):
        raise ValueError(f'{path}: found a JSON {type(value).__name__}, wanted a {wanted.__name__}')
    return value


def _stated_case(path) -> bool | None:
    """`do_lower_case` of a tokenizer_config.json; None where it does not say."""
    value = _read_json(path, dict).get('do_lower_case') if path.is_file() else None
    if value is not None and not isinstance(value, bool):
        raise ValueError(f'{path}: do_lower_case is {value!r}, wanted true or false')
    return value


def _cased(vocabulary: Sequence[str]) -> bool:
    capitals = set(string.ascii_uppercase)
    return any(not capitals.isdisjoint(entry) and not _SPECIAL.fullmatch(entry) for entry in vocabulary)


def _read_vocabulary(path):
    vocabulary = _read_json(path, dict)
    for token, i in vocabulary.items():
        if not isinstance(i, int):
            raise ValueError(f'{path}: entry {token!r} has id {i!r}, wanted an integer')
    return vocabulary


def _read_merges(path):
    merges = []
    for number, line in enumerate(_read_lines(path), 1):
        if number == 1 and line.startswith('#version'):
            continue
        parts = line.split(' ')
        if len(parts) != 2 or not all(parts):
            raise ValueError(f'{path}:{number}: found {line!r}, wanted two entries separated by one space')
        merges.append((parts[0], parts[1]))
    return merges
