"""--mode=attribute: where does a model look? Heat maps for a split or one input, or a protocol that compares methods.

    --mode=attribute --config=eug:shapes_ve                                      the answers of the test split
    ... --config.attribute.target=tokens                                         each token of the explanations, too
    ... --config.attribute.method=chefer2020_bert --config.attribute.target=gold
    ... --config.attribute.image=ID --config.attribute.text='is it red ?'        one question
    ... --config.attribute.methods="('generic', 'rollout', 'random')"             methods side by side
    ... --config.attribute.evaluate=perturbation                                 which method is faithful?
    --mode=attribute --config=vit:imagenet --config.model.task.init=hf:FOLDER --config.attribute.checkpoint=init \\
        --config.attribute.image=cat.png                                         a published classifier, no data set

Below `<workdir>/attribute/`: attributions.npz (all numbers), attributions.html (the first `page_examples`), overlays/
(a PNG an example); of several methods attributions-<method>.npz and methods.png; of one input in input/; of a protocol
in <protocol>/, see _faithfulness.py.
"""

import pathlib
import sys

import jax
import numpy as np
import tqdm

from evil_jax import compat
from evil_jax.attribution import methods, subjects
from evil_jax.data import load, words
from evil_jax.modes import _explained, _explainer, _faithfulness, _one_picture, _predictions, _protocols, decode
from evil_jax.records import Example
from evil_jax.training import checkpoint, processes

_DECIDING = ('target', 'rules', 'start_layer', 'row_norm', 'steps', 'samples', 'noise')
_DEFAULT = ('generic', 'raw_attention')  # of these the first that a model supports
_SHOWN = 200  # characters of what was cut


def check_files(config, workdir, earlier) -> None:
    """Raises ValueError, before anything is computed, where `run` would because of its settings."""
    del workdir, earlier
    section = config.attribute
    if processes.count() > 1:
        raise ValueError(
            '--mode=attribute is the work of one process, on all of its devices: run it without --distributed'
        )
    if isinstance(section.methods, str):
        raise ValueError(f'attribute.methods is {section.methods!r}, wanted a tuple: ("...",)')
    for name in (*([section.method] if section.method else []), *section.methods):
        methods.resolve(name, _explainer.settings(config))
    if section.evaluate and (section.image or section.text):
        raise ValueError(
            f'attribute.evaluate={section.evaluate} is about a split, but attribute.image or attribute.text names one '
            'input: leave one of them out'
        )
    if section.evaluate and section.method:
        raise ValueError(
            f'attribute.method is {section.method!r}, but attribute.evaluate compares those in attribute.methods (all '
            f"if it is empty): wanted --config.attribute.methods=\"('random', '{section.method}')\""
        )
    if section.evaluate == 'sanity' and section.target != 'predicted':
        raise ValueError(
            f'attribute.evaluate=sanity explains the predicted answer, attribute.target is {section.target!r}'
        )
    if section.target == 'gold' and (section.image or section.text):
        raise ValueError("attribute.target is 'gold', but of one input nobody says which answer is right: name one")
    if section.evaluate and section.target in _explainer.SAID:
        raise ValueError(
            f'attribute.evaluate explains answers, but attribute.target is {section.target!r}: wanted predicted, gold, '
            'least or an answer'
        )


def run(config, workdir) -> dict[str, float]:
    """Explains, writes numbers and pages, and prints where they are.

    Returns:
      examples: how many were explained; of a protocol a number for each method and metric.

    Raises:
      ValueError: no checkpoint, no data, a method that the model does not support, results of other settings there.
    """
    check_files(config, workdir, ())
    workdir, section = pathlib.Path(workdir), config.attribute
    config = config.copy_and_resolve_references()
    config.decode.update(batch=section.batch, checkpoint=section.checkpoint)
    if section.target == 'gold':
        config.decode.condition = 'gold'  # so that explanations are of the same answer
    decoder, params, made_from = _explained.open_model(config, workdir)
    if section.target in _explainer.SAID and not any(path.startswith('expl/') for path in decoder.net.shapes):
        raise ValueError(
            f'attribute.target is {section.target!r}, but this model only answers: wanted predicted, gold, least or an '
            'answer'
        )
    if section.image or section.text:
        return _one_input(config, workdir / 'attribute' / 'input', decoder, params)
    split = section.split or config.decode.split or config.data.test
    examples, reader = load.load_examples(config, split), load.open_inputs(config)
    if 0 < section.limit < len(examples):
        examples = decode.First(examples, section.limit)
    if section.evaluate:
        return _evaluate(config, workdir, decoder, params, examples, reader, split, made_from)
    return _pages(config, workdir / 'attribute', decoder, params, examples, reader, split)


def _pages(config, folder, decoder, params, examples, reader, split) -> dict[str, float]:
    sample = next(_explainer.Explainer(decoder, config, _DEFAULT[0]).batches(examples, reader))
    found, hidden = {}, not sys.stderr.isatty()
    for name in _names(config, decoder, sample):
        explainer, done = _explainer.Explainer(decoder, config, name), []
        with tqdm.tqdm(total=len(examples), unit='ex', desc=name, disable=hidden, dynamic_ncols=True) as bar:
            for rows in explainer.explain(params, examples, explainer.batches(examples, reader)):
                done += rows
                bar.update(len(rows))
        found[name] = done
    _explained.write(
        folder, config, decoder, found, reader, f'{config.model.task.name} on {config.data.builder}, {split}'
    )
    return {'examples': float(len(examples))}


def _one_input(config, folder, decoder, params) -> dict[str, float]:
    section, task = config.attribute, decoder.task
    if config.data.choices:
        raise ValueError(
            'attribute.image and attribute.text ask one question with nothing to choose from, but this model takes '
            f'one of {config.data.choices} choices of an example (data.choices): use a split'
        )
    found, image_id, reads = None, 'text', load.inputs(config)
    if reads == 'regions':
        found, image_id = _one_picture.regions(config, 'attribute', 'features', 'image')
    elif reads == 'pictures':
        if section.text or not section.image:
            raise ValueError('this model reads a picture and no text: set --config.attribute.image to a file, or to an '
                             'image id of the data folder, and leave attribute.text empty')  # fmt: skip
        found, image_id = _one_picture.picture(config, 'attribute', 'image', 'image')
    elif section.image:
        raise ValueError(f'attribute.image is {section.image!r}, but this model reads texts only: set attribute.text')
    if reads != 'pictures' and not section.text.strip():
        raise ValueError("there is no text: set --config.attribute.text='...'")
    example = Example(id=image_id, image_id=image_id, text=section.text.strip())
    if reads != 'pictures':
        _tell_cut(example.text, task, config.data.max_text)
    row = task.transform(example, found) | {'mask': np.bool_(True), 'row': np.int32(0)}
    row['wanted'] = np.int32(_explainer.wanted(section.target, example, task))
    ways = decoder.mesh.shape['data'] * decoder.mesh.shape['fsdp']
    batch = {name: np.stack([value] * ways) for name, value in row.items()}  # every device gets a row
    batch['mask'][1:], batch['row'][1:] = False, -1
    done = {}
    for name in _names(config, decoder, batch):
        (done[name],) = _explainer.Explainer(decoder, config, name).explain(params, [example], [batch])
    reader = _explained.Given(image_id, found)
    _explained.write(folder, config, decoder, done, reader, f'{config.model.task.name}: {example.text or image_id}')
    _explained.tell(next(iter(done.values()))[0])
    return {'examples': 1.0}


def _tell_cut(text, task, maximum):
    """Warns of words that are beyond the row."""
    word_Q, cut = words.pieces(text, task.assets.word, maximum, task.pairs)
    if cut:
        lost = ' '.join(word for i, word in enumerate(text.split()) if i not in word_Q)
        shown = lost if len(lost) <= _SHOWN else f'{lost[:_SHOWN]} ...'
        which = f'{cut} words at the ends of the two texts' if task.pairs else f'the last {cut} words'
        print(f'warning: {which} are not read (data.max_text is {maximum}): {shown}')


def _evaluate(config, workdir, decoder, params, examples, reader, split, made_from) -> dict[str, float]:
    section = config.attribute
    sample = next(_explainer.Explainer(decoder, config, _DEFAULT[0]).batches(examples, reader))
    names = _names(config, decoder, sample) if section.methods else _all(config, decoder, sample)
    protocol = _protocols.make(section.evaluate, examples, config, decoder, sample, reader)
    leaves = checkpoint.leaves(checkpoint.plain(config))
    meta = {
        'split': split,
        'examples': len(examples),
        'model': made_from,
        'data': checkpoint.data_hash(config),
        **({'batch': decoder.batch} if compat.has(config, 3) else {}),
        **{key: leaves[f'attribute.{key}'] for key in _DECIDING},
        'seed': config.seed,
        'config': _predictions.trained_with(leaves) | {'model.dtype': config.model.dtype},
        **protocol.deciding,
    }
    folder = workdir / 'attribute' / section.evaluate
    folder.mkdir(parents=True, exist_ok=True)
    with checkpoint.exclusive(folder, 'attribute'):
        document = _faithfulness.run(config, folder, protocol, names, decoder, params, examples, reader, meta)
    _faithfulness.show(document, protocol.MAIN)
    print(f'table and curves: {folder / "faithfulness.html"}')
    return {
        f'{method} {name}': metric['value']
        for method, one in document['methods'].items()
        for name, metric in one['metrics'].items()
        if metric['value'] is not None
    }


def _support(decoder, batch) -> tuple[str, ...]:
    found = []

    def look(params, batch):
        found.extend(methods.supported(subjects.answer(decoder.net.merge(params).task, batch)))

    jax.eval_shape(look, decoder.net.shapes, batch)
    return tuple(found)


def _all(config, decoder, batch) -> tuple[str, ...]:
    """Every method that the model supports and that knows the rule set, random first: others are held against it."""
    rules, names = config.attribute.rules, _support(decoder, batch)
    known = [name for name in names if not rules or rules in (methods.METHODS[name].rules or (rules,))]
    return tuple(sorted(known, key=lambda name: name != 'random'))


def _names(config, decoder, batch) -> tuple[str, ...]:
    """The methods that the config names, or the default one. ValueError where one does not go with the model."""
    section, there = config.attribute, _support(decoder, batch)
    names = tuple(section.methods) or ((section.method,) if section.method else ())
    for name in names:
        method, _ = methods.resolve(name)
        if method not in there:
            raise ValueError(f'{name} does not go with {config.model.task.name}; it supports: {", ".join(there)}')
    return names or tuple(name for name in _DEFAULT if name in there)[:1]
