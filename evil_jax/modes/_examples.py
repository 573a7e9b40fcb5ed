"""The examples that predictions are about: of files that the user names, or of the data folder."""

import pathlib

from evil_jax import records
from evil_jax.data import load, references
from evil_jax.modes import _systems
from evil_jax.modes._scoring import OPEN
from evil_jax.tasks import base as tasks
from evil_jax.tasks._fields import FieldTask


def read(config, workdir):
    """The examples, and who judges answers to them: of `evaluate.references`, else of a split of the data folder.

    Args:
      config: `evaluate`, `decode`, `data`, `compat`.
      workdir: its predictions, which may be of the first few examples only.

    Returns:
      (source in words, examples, task, training examples or None, marks for signatures).

    Raises:
      ValueError: missing or malformed files, no data folder.
    """
    options = config.evaluate
    if options.references:
        paths = _systems.paths(options.references)
        found = references.read(paths, config.data.builder, labels=config.data.labels, tag_base=config.data.tag_base)
        marks = references.marks(paths, config.data.labels)
        marks['references'] = '+'.join(records.file_hash(path) for path in paths)
        _warn_of_other_data(found, config)
        return options.references, found, FieldTask(found), None, marks
    split = options.split or config.decode.split or config.data.test
    try:
        found = load.load_examples(config, split)
    except ValueError as error:
        if (pathlib.Path(config.data.dir) / 'build.json').exists():
            raise
        raise ValueError(f'{error}; or name files of gold explanations in evaluate.references') from error
    # A run that decoded the first few examples only is scored on those.
    some = config.decode.limit if not options.predictions and (workdir / 'predictions.jsonl').is_file() else 0
    found = [found[i] for i in range(min(some or len(found), len(found)))]
    task, marks = tasks.make_task(config, None), load.marks(config, split)
    return f'{split} split of {config.data.dir}', found, task, _training_examples(config), marks


def _training_examples(config):
    """The training split, or None where the data set was built without one."""
    try:
        examples = load.load_examples(config, config.data.train)
    except ValueError:
        # The split under evaluation has just been opened, so what is missing is this split only.
        return None
    return (examples[i] for i in range(len(examples)))


def _warn_of_other_data(examples, config) -> None:
    """Tells where references are of another kind than those of the data set: protocols and published numbers differ."""
    is_open = any(e.answers is not None for e in examples)
    closed = any(e.label is not None for e in examples)
    if (is_open or closed) and is_open != (config.data.builder in OPEN):
        found, known = ('open answers', 'none') if is_open else ('classes or choices', 'open ones')
        print(
            f'warning: the references have {found}, and {config.data.builder} has {known}: is the data set of '
            '--config=score:... right?'
        )
