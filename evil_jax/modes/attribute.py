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

from evil_jax import compat, lookup
from evil_jax.attribution import methods, subjects
from evil_jax.data import load, transforms
from evil_jax.modes import _explained, _explainer, _faithfulness, _one_picture, _protocols, decode
from evil_jax.records import Example
from evil_jax.training import checkpoint, processes

_DECIDING = ('method', 'target', 'rules', 'start_layer', 'row_norm', 'steps', 'samples', 'noise')
_PROTOCOL = ('unit', 'removal', 'fill', 'fractions', 'top')


def check_files(config, workdir, earlier) -> None:
    """Raises ValueError, before anything is computed, where `run` would because of its settings."""
    del workdir, earlier
    if processes.count() > 1:
        raise ValueError(
            '--mode=attribute is the work of one process, on all of its devices: run it without --distributed'
        )
    for name in (config.attribute.method, *config.attribute.methods):
        if len(name) > 1:  # a tuple written as a string falls into characters
            _known(name)
    if isinstance(config.attribute.methods, str):
        raise ValueError(f'attribute.methods is {config.attribute.methods!r}, wanted a tuple: ("...",)')
    _explainer.settings(config)


def _known(name) -> None:
    there = {**methods.METHODS, **methods.PRESETS}
    if name not in there:
        raise ValueError(
            f'attribute.method is {name!r}.{lookup.nearest(name, there)} There are: {", ".join(methods.METHODS)}; '
            f'presets: {", ".join(methods.PRESETS)}'
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
    names = tuple(config.attribute.methods) or (config.attribute.method,)
    explainers = [_explainer.Explainer(decoder, config, name) for name in names]
    _supported(explainers[0], next(explainers[0].batches(examples, reader)), names)
    found, hidden = {}, not sys.stderr.isatty()
    for name, explainer in zip(names, explainers):
        done = []
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
        found, image_id = _one_picture.picture(config, 'attribute', 'image', 'image')
    if reads != 'pictures' and not section.text.strip():
        raise ValueError("there is no text: set --config.attribute.text='...'")
    example = Example(id='input', image_id=image_id, text=section.text.strip())
    if reads != 'pictures' and (long := transforms.length('text', example.text, task.assets)) > config.data.max_text:
        print(
            f'warning: the text has {long} word pieces, of which the model reads {config.data.max_text} (data.max_text)'
        )
    explainer = _explainer.Explainer(decoder, config, section.method)
    row = task.transform(example, found) | {'mask': np.bool_(True), 'row': np.int32(0)}
    row['wanted'] = np.int32(explainer.wanted(example))
    ways = decoder.mesh.shape['data'] * decoder.mesh.shape['fsdp']
    batch = {name: np.stack([value] * ways) for name, value in row.items()}  # every device gets a row
    batch['mask'][1:], batch['row'][1:] = False, -1
    _supported(explainer, batch, [section.method])
    (done,) = explainer.explain(params, [example], [batch])
    reader = _explained.Given(image_id, found)
    title = f'{config.model.task.name}: {example.text or image_id}'
    _explained.write(folder, config, decoder, {section.method: done}, reader, title)
    _explained.tell(done[0])
    return {'examples': 1.0}


def _evaluate(config, workdir, decoder, params, examples, reader, split, made_from) -> dict[str, float]:
    section = config.attribute
    explainer = _explainer.Explainer(decoder, config, section.method)
    if section.target in ('tokens', 'explanation'):
        raise ValueError(
            f'attribute.evaluate explains answers, but attribute.target is {section.target!r}: wanted predicted, gold, '
            'least or an answer'
        )
    sample = next(explainer.batches(examples, reader))
    names = tuple(section.methods) or _all(explainer, sample)
    _supported(explainer, sample, names)
    protocol = _protocols.make(section.evaluate, examples, config, decoder, sample, reader)
    leaves = checkpoint.leaves(checkpoint.plain(config))
    meta = {
        'split': split,
        'examples': len(examples),
        'model': made_from,
        'data': checkpoint.data_hash(config),
        'batch': decoder.batch if compat.has(config, 3) else 0,
        **{key: leaves[f'attribute.{key}'] for key in (*_DECIDING[1:], *_PROTOCOL)},
        'seed': config.seed,
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


def _all(explainer, batch) -> tuple[str, ...]:
    """Every method that the model supports, random first: what others are held against."""
    names = _support(explainer, batch)
    return tuple(sorted(names, key=lambda name: name != 'random'))


def _support(explainer, batch) -> tuple[str, ...]:
    found = []

    def look(params, batch):
        model = explainer.decoder.net.merge(params)
        found.extend(methods.supported(subjects.answer(model.task, batch)))

    jax.eval_shape(look, explainer.decoder.net.shapes, batch)
    return tuple(found)


def _supported(explainer, batch, names) -> None:
    """Raises ValueError naming the methods there are, where one does not go with the model."""
    there = _support(explainer, batch)
    for name in names:
        _known(name)
        method = methods.PRESETS[name][0] if name in methods.PRESETS else name
        if method not in there:
            raise ValueError(
                f'{name} does not go with {explainer.decoder.config.model.task.name}; it supports: {", ".join(there)}'
            )
