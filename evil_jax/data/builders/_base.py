"""What all TFDS builders share: the fields of an Example as TFDS features, file search, limits and dropping.

A builder is `data/builders/<name>.py` with a class `Builder`. It reads the user's raw files from `manual_dir`, writes
array_record (TensorFlow is never imported) and knows the splits train, dev and test; a split without files is left out.
"""

import dataclasses
import itertools
import json
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import tensorflow_datasets as tfds

from evil_jax.data import pictures
from evil_jax.records import Example

SPLITS = ('train', 'dev', 'test')
_SPLIT_OF_WORD = {'train': 'train', 'dev': 'dev', 'val': 'dev', 'valid': 'dev', 'validation': 'dev', 'test': 'test'}
_SPLIT_WORD = re.compile(r'(?<![a-z])(' + '|'.join(sorted(_SPLIT_OF_WORD, key=len, reverse=True)) + r')(?![a-z])')
_OPTIONAL = ('choices', 'label', 'answers', 'annotations', 'answer_type', 'question_type', 'objects')

Files = dict[str, pathlib.Path | tuple[pathlib.Path, ...] | None]


@dataclasses.dataclass(frozen=True)
class Options:
    """How raw files are read; the part of `config.data` of these names (config.py). A data set names what it heeds."""

    labels: str = 'gold'
    tag_base: int = 1
    dev_share: float = 0.1
    dev_seed: int = 0
    dev_ids: str = ''

    @classmethod
    def of(cls, config) -> 'Options':
        return cls(**{field.name: config.data[field.name] for field in dataclasses.fields(cls)})


DEFAULT = Options()


def split_of(name: str) -> str | None:
    """The split that a file name means: its first word among train, dev, val, valid, validation and test."""
    word = _SPLIT_WORD.search(name.lower())
    return _SPLIT_OF_WORD[word.group(1)] if word else None


def split_files(folder: pathlib.Path, patterns: tuple[str, ...], split_of=split_of) -> list[pathlib.Path]:
    """The files in `folder` that match a glob pattern and name a split, sorted."""
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    return sorted(path for path in paths if split_of(path.name) and path.is_file())


def find(folder: pathlib.Path, patterns: tuple[str, ...], split_of=split_of) -> dict[str, pathlib.Path]:
    """One file a split among those in `folder` that match a glob pattern and name a split.

    Args:
      split_of: the split that a file name means, or None, where the data set has words of its own.

    Raises:
      ValueError: two files for one split; both are named.
    """
    found = {}
    for path in split_files(folder, patterns, split_of):
        split = split_of(path.name)
        if split in found:
            raise ValueError(
                f'{folder}: both {found[split].name} and {path.name} could be the {split} split '
                f'({" or ".join(patterns)}); leave one of them there'
            )
        found[split] = path
    return found


def require(
    found: Mapping[str, object], folder: pathlib.Path, patterns: tuple[str, ...], words: Iterable[str] = _SPLIT_OF_WORD
) -> None:
    """Raises ValueError saying what was looked for, when no split was found at all; `words` name a split."""
    if not found:
        there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else None
        holds = 'does not exist' if there is None else f'holds {", ".join(there[:20]) or "nothing"}'
        raise ValueError(
            f'no raw files: looked in {folder} for {" or ".join(patterns)} with one of the words '
            f'{", ".join(words)} in the name; the folder {holds}. Set data.manual_dir'
        )


def features() -> tfds.features.FeaturesDict:
    """All fields of an Example. `fields` names the optional ones that are set, so that None is not an empty list."""
    texts = lambda: tfds.features.Sequence(tfds.features.Text())
    return tfds.features.FeaturesDict(
        {
            'id': tfds.features.Text(),
            'image_id': tfds.features.Text(),
            'text': tfds.features.Text(),
            'fields': texts(),
            'choices': texts(),
            'label': tfds.features.Text(),  # JSON: 1 or "neutral"
            'answers': texts(),
            # Doubles, byte for byte: TFDS would round a sequence of float64 to float32.
            'scores': tfds.features.Tensor(shape=(None,), dtype=np.float64, encoding='bytes'),
            'annotations': texts(),
            'answer_type': tfds.features.Text(),
            'question_type': tfds.features.Text(),
            'objects': texts(),
            'explanations': texts(),
            'extra': tfds.features.Text(),  # JSON
        }
    )


def encode(example: Example) -> dict[str, object]:
    """An Example as values of `features()`."""
    answers = example.answers or {}
    return {
        'id': example.id,
        'image_id': example.image_id,
        'text': example.text,
        'fields': [name for name in _OPTIONAL if getattr(example, name) is not None],
        'choices': example.choices or [],
        'label': json.dumps(example.label),
        'answers': list(answers),
        'scores': np.asarray(list(answers.values()), np.float64),
        'annotations': example.annotations or [],
        'answer_type': example.answer_type or '',
        'question_type': example.question_type or '',
        'objects': example.objects or [],
        'explanations': example.explanations,
        'extra': json.dumps(example.extra, ensure_ascii=False),
    }


def decode(row: Mapping[str, object]) -> Example:
    """The Example that `encode` was given, from what a TFDS data source yields."""
    present = {name.decode() for name in row['fields']}
    texts = lambda name: [text.decode() for text in row[name]]
    values = {
        'choices': lambda: texts('choices'),
        'label': lambda: json.loads(row['label']),
        'answers': lambda: dict(zip(texts('answers'), row['scores'].tolist())),
        'annotations': lambda: texts('annotations'),
        'answer_type': lambda: row['answer_type'].decode(),
        'question_type': lambda: row['question_type'].decode(),
        'objects': lambda: texts('objects'),
    }
    return Example(
        id=row['id'].decode(),
        image_id=row['image_id'].decode(),
        text=row['text'].decode(),
        explanations=texts('explanations'),
        extra=json.loads(row['extra']),
        **{name: values[name]() for name in _OPTIONAL if name in present},
    )


class ExampleBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """A data set of Examples, in the order of its raw files.

    Args:
      limit: at most this many examples a split; 0 = all.
      options: how the raw files are read.
      keep: examples for which it is false are left out (before the limit counts).
      **kwargs: those of TFDS builders: `data_dir`, ...
    """

    VERSION = tfds.core.Version('1.0.0')
    RELEASE_NOTES = {'1.0.0': 'All fields of an Example.'}
    MANUAL_DOWNLOAD_INSTRUCTIONS = 'Put the raw files, as they were published, into manual_dir.'

    # Set by each data set.
    description: str
    classes: tuple[str, ...] | None = None  # closed label set, index = label id; None: open answers
    inputs: str = 'regions'  # what a model reads beside or in place of the text: regions, pictures or text alone
    pairs: bool = False  # whether an example's text is two texts (words.joined)
    form: str | None = None  # of the built-in world, if it writes the raw files
    heeds: tuple[str, ...] = ()  # names of the Options that matter

    def __init__(
        self,
        *,
        limit: int = 0,
        options: Options = DEFAULT,
        keep: Callable[[Example], bool] | None = None,
        **kwargs,
    ):
        self._limit, self._options, self._keep = limit, options, keep
        kwargs.setdefault('file_format', 'array_record')
        super().__init__(**kwargs)

    @classmethod
    def files(cls, folder, options: Options = DEFAULT) -> dict[str, Files]:
        """The raw files of each split that exists in `folder`. ValueError, saying what was looked for, if none does."""
        raise NotImplementedError

    @classmethod
    def read(cls, files: Files, options: Options = DEFAULT) -> Iterator[Example]:
        """The examples of one split, from one value of `files()`."""
        raise NotImplementedError

    @classmethod
    def sources(cls, folder, options: Options = DEFAULT) -> list[pathlib.Path]:
        """Every raw file that the data set is made from; of a folder of small files none."""
        found = {p for files in cls.files(folder, options).values() for value in files.values() for p in paths(value)}
        return sorted(path for path in found if not path.is_dir())

    @classmethod
    def write_raw(cls, folder) -> None:
        """Writes the raw files, where a data set comes with an installed package and they are not there yet."""

    @classmethod
    def labels(cls, files: Mapping[str, Files], options: Options = DEFAULT) -> tuple[str, ...] | None:
        """The closed label set; `files` as `files()` gives them, for a data set whose raw files name its classes."""
        return cls.classes

    @classmethod
    def pictures(cls, folder) -> pathlib.Path | None:
        """The folder of pictures among the raw files, if there is one."""
        path = pathlib.Path(folder) / 'images'
        return path if path.is_dir() else None

    @classmethod
    def reader(cls, folder):
        """The reader of the pictures among the raw files (data/pictures.py), of a data set whose `inputs` they are.

        Raises:
          ValueError: there are none.
        """
        path = cls.pictures(folder)
        if path is None:
            raise ValueError(f'no pictures: {folder} has no folder of them. Set data.manual_dir or data.images')
        return pictures.Pictures(path)

    @classmethod
    def marks(cls, files: Files, options: Options = DEFAULT) -> dict[str, str]:
        """Of one split: what beside the name of the data set decides what is right, for the signature of scores."""
        return {}

    @classmethod
    def remarks(cls, files: Mapping[str, Files], options: Options = DEFAULT) -> list[str]:
        """What a user should know before the build, a line each; `files` as `files()` gives them."""
        return [
            f'data.{name} is {getattr(options, name)!r}, which makes no difference here'
            for name in cls.unheeded(files, options)
            if getattr(options, name) != getattr(DEFAULT, name)
        ]

    @classmethod
    def unheeded(cls, files: Mapping[str, Files], options: Options) -> list[str]:
        """Names of the Options that do not matter, whatever their value."""
        return [field.name for field in dataclasses.fields(Options) if field.name not in cls.heeds]

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self, description=self.description, features=features(), disable_shuffling=True
        )

    def _split_generators(self, dl_manager):
        folder = dl_manager.manual_dir
        return {split: self._examples(files) for split, files in self.files(folder, self._options).items()}

    def _examples(self, files):
        for position, example in enumerate(self.stream(files)):
            yield position, encode(example)

    def stream(self, files: Files) -> Iterator[Example]:
        """The examples of one split after dropping and limiting."""
        kept = (example for example in self.read(files, self._options) if self._keep is None or self._keep(example))
        return itertools.islice(kept, self._limit or None)

    def _generate_examples(self, **kwargs):
        raise NotImplementedError('the generators of _split_generators are used')


def paths(value) -> tuple[pathlib.Path, ...]:
    """The files in one value of `Files`."""
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)
