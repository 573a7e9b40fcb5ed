"""--mode=export: a checkpoint as a folder of Hugging Face's kind, for PyTorch users and model hubs.

    --mode=export --workdir=runs/eug --config.export.dir=eug-vqax
    AutoModel.from_pretrained('eug-vqax', trust_remote_code=True)      # neither JAX nor evil_jax is needed

`--config.export.checkpoint` is what decode.checkpoint can be, `hf:FOLDER` of another export too; with
`--config.export.task_checkpoint` M_T comes from there. Where neither is set, those of decode are taken; with the first
alone both modules come from it, with the second alone M_E comes from decode.checkpoint. The scores of the model card
are those of the work folder, if they are this checkpoint's. Such a folder serves as decode.checkpoint, model.task.init
and model.expl.init: 'hf:FOLDER'.
"""

import json
import pathlib

import jax
from flax import nnx

import evil_jax
from evil_jax import records
from evil_jax.interop import bert, describe, export, gpt2, weights
from evil_jax.models import vlnle
from evil_jax.modes import _pairing, _predictions, decode
from evil_jax.pages import model_card
from evil_jax.tasks import vqav2
from evil_jax.training import checkpoint, processes

# Settings that say where something ran or lay: no part of what is passed on.
_LOCAL = (*checkpoint.FREE, *checkpoint.INIT, 'data.dev_ids')


def check_files(config, workdir, earlier) -> None:
    """Raises ValueError, before anything is computed, where `run` would because of the processes or the folder."""
    del earlier
    if processes.count() > 1:
        raise ValueError('--mode=export is the work of one process: run it without --distributed')
    export.check_target(_folder(config, workdir))


def _folder(config, workdir) -> pathlib.Path:
    return pathlib.Path(config.export.dir or pathlib.Path(workdir) / 'export')


def run(config, workdir) -> dict[str, float]:
    """Writes `export.dir` (default `<workdir>/export`).

    Returns:
      parameters: how many numbers there are.

    Raises:
      ValueError: no checkpoint, one of other settings, a model without a PyTorch class, or a folder that holds
        something else. Nothing is written then.
    """
    check_files(config, workdir, ())
    workdir, folder = pathlib.Path(workdir), _folder(config, workdir)
    config = config.copy_and_resolve_references()
    if config.export.checkpoint or config.export.task_checkpoint:
        which = config.export.checkpoint or config.decode.checkpoint
        config.decode.update(checkpoint=which, task_checkpoint=config.export.task_checkpoint)
    found = decode.find_checkpoint(workdir, config.decode.checkpoint)
    decoder, params = decode.load_trained(config, workdir, found)
    scores, scored = _scores(workdir, config, found)
    origin = _origin(config, found) | ({'scored': scored} if scored else {})
    pack(folder, config, decoder.task, jax.device_get(params), origin, scores)
    print(f"exported: {folder}; AutoModel.from_pretrained('{folder}', trust_remote_code=True)")
    return {'parameters': float(sum(x.size for x in params.values()))}


def pack(folder, config, task, params, origin, scores=None) -> None:
    """Writes a model that is in memory.

    Args:
      folder: see `export.write`.
      config: of the model.
      task: with the vocabularies.
      params: {our path: array}; without any of M_E the model only answers.
      origin: 'trained' (settings by key), 'data' (hash or None), 'step' (or None); where M_T is of another run
        'task_run', the same three; and where there are scores 'scored': 'split', 'examples' (how many) and 'decode'
        (settings) of the predictions.
      scores: content of a scores.json.
    """
    assets = task.assets
    if not any(path.startswith('expl/') for path in params):
        config = config.copy_and_resolve_references()
        config.model.expl.name = ''
    model = nnx.eval_shape(lambda: vlnle.build(config, assets, jax.random.key(0)))
    document = {
        **describe.describe(config, model, params, assets),
        'probability': 'sigmoid' if isinstance(task, vqav2.Task) else 'softmax',
        'version': evil_jax.__version__,
        **origin,
    }
    scores = scores and json.loads(export.text(scores))  # in the order of the file, which the next export reads
    texts = {'README.md': model_card.readme(document, scores), 'LICENSE.md': model_card.licence(document)}
    if scores:
        texts[export.SCORES] = export.text(scores)
    export.write(folder, document, params, assets, texts, list(_alone(config, model, params, assets)))


def _origin(config, found) -> dict[str, object]:
    """Where the model comes from: the same after it has been exported and read again."""
    run, of_task = _runs(config, found)
    if other := _pairing.find_task(config):
        theirs, of_theirs = _runs(config, other)
        of_task = of_theirs or theirs
    return run | ({'task_run': of_task} if of_task and of_task != run else {})


def _runs(config, found) -> tuple[dict, dict | None]:
    """The run that a checkpoint is of, and that of its M_T, where this is another one."""
    if export.is_export(found):
        before = export.read(found).config
        return {name: before.get(name) for name in ('trained', 'data', 'step')}, before.get('task_run')
    if found.is_file():  # of the published e-UG code
        settings, data, step = checkpoint.plain(config), None, None
    else:
        origin = checkpoint.read_origin(found)
        settings, data, step = origin['config'], origin['data'], checkpoint.read_meta(found)['step']
    trained = {k: v for k, v in checkpoint.settings(settings).items() if not checkpoint.below(k, _LOCAL)}
    return {'trained': trained, 'data': data, 'step': step}, None


def _scores(workdir, config, found) -> tuple[dict | None, dict | None]:
    """scores.json of the work folder, if it is about this checkpoint, and what was scored; else of the export that it
    comes from."""
    path, meta, predictions = (workdir / name for name in (export.SCORES, 'predictions.meta.json', 'predictions.jsonl'))
    inherited, scored, other = None, None, _pairing.find_task(config)
    if export.is_export(found) and not other:
        before = export.read(found)
        inherited, scored = before.scores(), before.config.get('scored')
    if not (path.is_file() and meta.is_file() and predictions.is_file()):
        return inherited, scored
    scores, made = export.read_scores(path), weights.read_json(meta)
    wanted = {'checkpoint': _predictions.identity(found), 'task_checkpoint': other and _predictions.identity(other)}
    mark = f'predictions:{records.file_hash(predictions)}'
    if {key: made.get(key) for key in wanted} == wanted and mark in export.text(scores):
        return scores, {key: made[key] for key in ('split', 'examples', 'decode') if key in made}
    print(f'{path} is not about this checkpoint: the model card has no scores' if inherited is None else
          f'{path} is not about this checkpoint: the model card has those of {found}')  # fmt: skip
    return inherited, scored


def _alone(config, model, params, assets):
    """The modules that transformers has classes for: (sub-folder, config.json, arrays)."""
    of = lambda module: {p.removeprefix(f'{module}/'): x for p, x in params.items() if p.startswith(f'{module}/')}
    if config.model.expl.name == 'gpt2':
        rows = model.expl.rows
        yield 'expl', gpt2.hf_config(model.expl.size, rows, assets.expl.end_of_text), gpt2.save(of('expl'), rows)
    if config.model.task.name == 'bert':
        choices = model.task.choices
        settings = bert.hf_config(model.task.size, len(assets.word), 1 if choices else len(assets.answers))
        if choices:
            settings['architectures'] = [
                settings['architectures'][0].replace('SequenceClassification', 'MultipleChoice')
            ]
        else:
            settings['id2label'] = {str(n): answer for n, answer in enumerate(assets.answers)}
            settings['label2id'] = {answer: n for n, answer in enumerate(assets.answers)}
        yield 'task', settings, bert.save(of('task'), 'bert.' if model.task.size.types else 'distilbert.')
