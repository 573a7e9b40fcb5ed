"""The vocabularies and answers of a build: made from the training texts, or copied from the user's files."""

import os
import shutil

from absl import logging

from evil_jax import compat, text
from evil_jax.data import answers as answers_lib
from evil_jax.data import objects, tags, tokenizers, transforms


def write(config, root, builder, training, class_names=(), labels=None) -> tokenizers.Assets:
    """Makes or copies the vocabularies.

    Args:
      training: a function that gives the training examples, or None without such a split.
      class_names: of the regions; words of the vocabularies where they are read.
      labels: the closed label set, if there is one.

    Where nobody reads or writes words (pictures alone; no explanations) a vocabulary of ours has characters only.
    """
    data, partial = config.data, root / '.assets.partial'
    shutil.rmtree(partial, ignore_errors=True)

    def texts(key, of):
        examples = training()
        if examples is None:
            raise ValueError(f"no train split to make a vocabulary from: data.{key} is 'build', name a file")
        return (t for example in examples for t in of(example))

    def read(key, of):
        """The same, and the names of objects that are read with them."""
        yield from texts(key, of)
        if data.objects == 'annotated':
            yield from texts(key, lambda example: objects.names(example, None, data.objects))
        elif data.objects:
            yield from class_names

    nothing = lambda key, of: ()
    read_texts = nothing if builder.inputs == 'pictures' else read
    written_texts = read if builder.inputs == 'regions' else nothing
    lowercase = compat.lowercase(config)
    if lowercase is False and compat.has(config, 5):
        logging.warning("config.data.lowercase is 'no': quirk 5 of config.compat, lower-casing, is off")
    if data.word_vocab == 'build':
        word = tokenizers.train_word(
            read_texts('word_vocab', transforms.read_texts),
            partial / 'word',
            lowercase=lowercase is not False,
        )
    else:
        word = tokenizers.WordTokenizer.load(data.word_vocab, lowercase=lowercase)
    if data.expl_vocab == 'build':
        expl = tokenizers.train_expl(written_texts('expl_vocab', _decoder_texts), partial / 'expl')
    else:
        expl = tokenizers.ExplTokenizer.load(data.expl_vocab)
    if data.choices:
        answers = ()
        if data.answers != 'build':
            raise ValueError(f'data.answers is {data.answers!r}: examples of {data.builder} have choices of their own')
    elif labels is not None:
        answers = labels if data.answers == 'build' else answers_lib.read(data.answers)
        if builder.classes is not None and answers != labels:
            raise ValueError(f'{data.answers}: the answers of {data.builder} are, in this order, {", ".join(labels)}')
    elif data.answers == 'build':
        examples = texts('answers', lambda e: [e])
        answers = answers_lib.build(examples, data.answers_min_count, text.vqa_normalise)
    else:
        answers = answers_lib.read(data.answers)
    assets = tokenizers.Assets(word, expl, answers)
    tokenizers.save_assets(partial, assets)
    shutil.rmtree(root / 'assets', ignore_errors=True)
    os.rename(partial, root / 'assets')
    return assets


def _decoder_texts(example):
    answers = [example.label] if isinstance(example.label, str) else list(example.answers or {})
    texts = [example.text, *answers, *(example.choices or []), *example.explanations]
    return [tags.written(text, example.objects) for text in texts]
