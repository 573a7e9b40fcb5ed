"""--mode=sweep: a run for each combination of `sweep.grid`, scored on the development split; the best is named.

    python -m evil_jax.main --config=eug:vqax --mode=sweep --workdir=runs/rates \\
        --config.sweep.grid="(('optim.lr', (1e-5, 2e-5, 5e-5)), ('seed', (0, 1, 2)))" --config.sweep.over="('seed',)"

    <workdir>/lr-1e-05,seed-0/   a run as --mode=train,decode,evaluate leaves it
    <workdir>/sweep.json         overrides, scores, seconds and steps of every point, and means (modes/_trials.py)
    <workdir>/sweep.html         the same for people (pages/sweep.py)
    <workdir>/best.json          the winning overrides, also as flags

The same command goes on after an interruption: what is finished stays, a point that was interrupted continues from its
checkpoint. More values of a key may be added later. As in Kayser et al. 2021 (5.2) the harmonic mean of NGRAMScore and
BERTScore (s_e_auto) chooses where `evaluate.metrics` has what it needs; elsewhere what chooses the best checkpoint.
"""

import gc
import pathlib
import time

import jax

from evil_jax import lookup, records
from evil_jax.data import load
from evil_jax.modes import _grid, _scoring, _terminal, _trials, build, decode, evaluate, train
from evil_jax.pages import sweep as page
from evil_jax.records import Prediction
from evil_jax.tasks import base as tasks
from evil_jax.tasks._fields import gold_answer
from evil_jax.training import checkpoint, processes

TOGETHER = True  # every process of several runs this mode


def check_files(config, workdir, earlier) -> None:
    """Raises ValueError where the grid makes no sense, `workdir` holds another sweep, or a point could not be trained
    whatever the data are: none of them is needed."""
    grid = _grid.read(config)
    _begin(config, pathlib.Path(workdir), grid, _grid.points(config, grid), earlier)


def _begin(config, workdir, grid, points, earlier=()) -> _trials.Document:
    """The document to go on with. The points that are not finished are checked before the first of them is trained."""
    document = _trials.begin(workdir / _trials.NAME, config, grid, points)
    for point, row in zip(points, document['points']):
        if not _is_over(row, workdir / point.name):
            try:
                train.check_files(point.config, workdir / point.name, earlier)
            except ValueError as error:
                raise ValueError(f'the point {point.name} of the sweep: {error}') from error
    return document


def run(config, workdir) -> dict:
    """Trains, decodes and scores every point that is not finished yet; data sets that are missing are built.

    A point that fails is told and left behind. One whose loss was not finite is not tried again unless its folder is
    deleted, as it would end in the same way; one that failed for another reason is. With several processes only the
    first kind can be left behind, as all of them notice it after the same step: any other error ends the sweep.

    Returns:
      The content of sweep.json: `best` has the overrides with the highest score, as a mean over `sweep.over`.

    Raises:
      ValueError: a grid that makes no sense, another sweep in `workdir` (the differences are named), or no point with a
        score.
      SystemExit: after SIGTERM or SIGINT during training, as from --mode=train.
    """
    workdir = pathlib.Path(workdir)
    grid = _grid.read(config)
    points = _grid.points(config, grid)
    with checkpoint.exclusive(workdir, 'sweep'):
        path = workdir / _trials.NAME
        document = processes.first(lambda: _begin(config, workdir, grid, points))
        _build(points, config)
        document['select'] = processes.first(lambda: which_score(points[0].config, config.sweep.select))
        _check_data(document, points, workdir)
        document = _Sweep(workdir, document, points).run()
        processes.alone(lambda: _tell(workdir, document, config))
    if document['best'] is None:
        reasons = dict.fromkeys(p['reason'] for p in document['points'] if 'reason' in p)
        why = '; '.join(reasons) or f'there is no {document["select"]} in any scores.json'
        raise ValueError(f'{path}: no point of the sweep has a score: {why}')
    return document


def which_score(config, wanted: str) -> str:
    """Name of the score that chooses. Which there are shows when gold answers and explanations are scored.

    Args:
      config: of a point; of its split the first `train.eval_examples` examples are read.
      wanted: of `sweep.select`.

    Raises:
      ValueError: there is no such score; the nearest is named.
    """
    examples = load.load_examples(config, config.decode.split)
    examples = [examples[i] for i in range(min(config.train.eval_examples, len(examples)))]
    task = tasks.make_task(config, None)
    gold = [Prediction(e.id, gold_answer(e) or '', explanation=(e.explanations or [''])[0]) for e in examples]
    scores = _scoring.score_predictions(gold, examples, task, config, config.evaluate.metrics)
    names = _scoring.main_scores(scores)
    if not wanted:
        return 's_e_auto' if 's_e_auto' in names else train.which_score(examples, task, config)
    if wanted not in names:
        raise ValueError(
            f'config.sweep.select is {wanted!r}.{lookup.nearest(wanted, names)} There are: {", ".join(names)}'
        )
    return wanted


class _Sweep:
    """The points in order, and what is written after each of them."""

    def __init__(self, workdir, document, points):
        self.workdir, self.document, self.points = workdir, document, points

    def run(self) -> _trials.Document:
        for number, (point, row) in enumerate(zip(self.points, self.document['points']), 1):
            what = f'{number} of {len(self.points)}: {point.name}'
            folder = self.workdir / point.name
            # Decided by one process: another may not see yet what that one wrote.
            if processes.first(lambda row=row, folder=folder: _is_over(row, folder)):
                print(f'-- {what}: {row["status"]}', flush=True)
                continue
            print(f'-- {what}', flush=True)
            self._try(point, row, folder)
            gc.collect()
            jax.clear_caches()  # the next point has functions of its own: theirs would pile up
        self._write()
        return self.document

    def _try(self, point, row, folder) -> None:
        row.pop('reason', None)
        start, before = time.monotonic(), row['seconds']
        row['status'] = 'interrupted'  # until the contrary is known
        try:
            found = _one(point.config, folder)
            row.update(found, status='done', data=processes.first(lambda: checkpoint.data_hash(point.config)))
        except train.Diverged as error:
            row.update(status='diverged', reason=str(error))
        except (ValueError, jax.errors.JaxRuntimeError) as error:
            # What one process alone stumbles over would leave the others waiting for it.
            if processes.count() > 1 or not (isinstance(error, ValueError) or _is_out_of_memory(error)):
                raise
            row.update(status='failed', reason=str(error))
        finally:
            row['seconds'] = round(before + time.monotonic() - start, 1)
            if processes.index() == 0:  # no meeting here: the others may be gone
                self._write_files()
        if 'reason' in row:
            print(f'warning: {point.name} {row["status"]}: {row["reason"]}', flush=True)

    def _write(self) -> None:
        processes.alone(self._write_files)
        self.document = _trials.summarise(self.document)

    def _write_files(self) -> None:
        document = _trials.summarise(self.document)
        _trials.write(self.workdir / _trials.NAME, document)
        page.write_page(self.workdir / 'sweep.html', title=self.workdir.name, document=document)


def _one(config, folder) -> dict:
    """Scores and steps of one run, which leaves in its folder what the modes leave there by themselves."""
    trained = train.run(config, folder)
    decoded = decode.run(config, folder)
    scores = processes.first(lambda: evaluate.run(config, folder))

    def write():
        for mode, numbers in {'train': trained, 'decode': decoded, 'evaluate': scores}.items():
            records.write_json(folder / f'{mode}.json', numbers)

    processes.alone(write)
    return {'scores': scores, 'steps': int(trained['step']), 'best_step': int(trained['best_step'])}


def _is_over(row, folder) -> bool:
    return row['status'] == 'done' or (row['status'] == 'diverged' and folder.is_dir())


def _is_out_of_memory(error) -> bool:
    return 'RESOURCE_EXHAUSTED' in str(error)


def _build(points, config) -> None:
    """Builds what is not there yet."""
    folders = {point.config.data.dir: point.config for point in points}
    if len(folders) > 1 or config.data.dir not in folders:
        print(f'note: the grid changes what is built; the data sets are {", ".join(folders)}', flush=True)

    def work():
        for folder, one in folders.items():
            if not (pathlib.Path(folder) / 'build.json').is_file():
                print(f'-- building {folder}', flush=True)
                build.run(one, None)

    processes.alone(work)


def _check_data(document, points, workdir) -> None:
    """Raises ValueError where a finished point was trained on another data set than the next ones would be."""
    now = {
        point.config.data.dir: processes.first(lambda point=point: checkpoint.data_hash(point.config))
        for point in {p.config.data.dir: p for p in points}.values()
    }
    if changed := [p['name'] for p in document['points'] if p.get('data', now[p['data_dir']]) != now[p['data_dir']]]:
        raise ValueError(
            f'{workdir}: {len(changed)} points, such as {changed[0]}, were trained on another data set than '
            f'{", ".join(now)} hold now. Take a new --workdir or that data set'
        )


def _tell(workdir, document, config) -> None:
    """The tables at the terminal, and best.json."""
    for table in page.tables(document):
        _terminal.show(*table)
    best, select = document['best'], document['select']
    if best:
        records.write_json(workdir / 'best.json', {'select': select, 'split': document['split'], **best})
        print(f'best by {select} on {document["split"]}: {page.told(best)}')
        if best['flags']:  # none where the whole grid is repetitions
            print(f'  {best["flags"]}')
    if document['split'] == config.data.test:
        print('note: the points were compared on the test split: what was chosen by it cannot be tested with it')
    if document['failed']:
        print(f'warning: {document["failed"]} of {len(document["points"])} points have no score, see {_trials.NAME}')
    print(f'sweep: {workdir / "sweep.html"}')
