"""What a run tells: metrics.jsonl (one JSON object a line), TensorBoard, and a progress bar at a terminal."""

import contextlib
import json
import math
import pathlib
import sys
import time

import tqdm

from evil_jax import records


@contextlib.contextmanager
def _without(package: str):
    """Lets `package` be absent for those who import it where it is there."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None
    try:
        yield
    finally:
        del sys.modules[package]


# tensorboardX imports PyTorch wherever that is installed, which takes seconds, for tensors that it never gets here.
with _without('torch'):
    from tensorboardX import SummaryWriter


class Log:
    """Writes the metrics of one run. Only the first process of several writes.

    Args:
      workdir: gets metrics.jsonl and tb/.
      steps: where the run ends.
      start: step that the run continues from; what an interrupted run logged beyond it is cut.
      batch: examples a step, for examples/s.
      active: False makes every method do nothing.
    """

    def __init__(self, workdir, *, steps: int, start: int = 0, batch: int = 1, active: bool = True):
        self.active = active
        if not active:
            return
        workdir = pathlib.Path(workdir)
        path = workdir / 'metrics.jsonl'
        cut_after(path, start)
        self._path = path
        self._board = SummaryWriter(str(workdir / 'tb'), purge_step=start + 1 if start else None)
        self._bar = tqdm.tqdm(
            total=steps, initial=start, unit='step', dynamic_ncols=True, disable=not sys.stderr.isatty(), desc='train'
        )
        self._batch, self._shown, self._start, self._clock = batch, start, start, time.perf_counter()

    def write(self, step: int, split: str, values: dict[str, float]) -> None:
        """One line, `{"step": 10, "split": "train", "loss": 1.5, ...}`; a value that is not finite becomes null."""
        if not self.active:
            return
        row = {'step': step, 'split': split}
        row |= {name: float(v) if v is not None and math.isfinite(v) else None for name, v in values.items()}
        with open(self._path, 'a', encoding='utf-8') as file:
            file.write(json.dumps(row) + '\n')
        for name, value in row.items():
            if isinstance(value, float):
                self._board.add_scalar(f'{split}/{name}', value, step)

    def advance(self, step: int) -> None:
        """Moves the progress bar, which shows the time that is left."""
        if self.active:
            self._bar.update(step - self._shown)
            self._shown = step

    def show(self, step: int, **values) -> None:
        """Shows examples/s and the given values beside the progress bar; in a log file, a line with the time left."""
        if not self.active:
            return
        rate = self.rate(step)
        texts = {'ex/s': f'{rate:.0f}'} if rate else {}  # not known yet right after the clock was started
        texts |= {name: f'{value:.3g}' for name, value in values.items()}
        if not self._bar.disable:
            self._bar.set_postfix(texts, refresh=False)
            return
        shown = [f'{name} {value}' for name, value in texts.items()]
        if rate:
            shown.append(f'{(self._bar.total - step) * self._batch / rate / 60:.0f} min left')
        print(f'step {step}/{self._bar.total}: {", ".join(shown)}', flush=True)

    def say(self, text: str) -> None:
        """A line for the user, above the progress bar."""
        if self.active:
            tqdm.tqdm.write(text)

    def restart_clock(self, step: int) -> None:
        """Starts timing anew, after compilation or an evaluation."""
        if self.active:
            self._start, self._clock = step, time.perf_counter()

    def rate(self, step: int) -> float:
        """Examples a second since the clock was started; 0 before the first step after that."""
        if not self.active:
            return 0.0
        return (step - self._start) * self._batch / max(time.perf_counter() - self._clock, 1e-9)

    def close(self) -> None:
        if self.active:
            self._bar.close()
            self._board.close()


def cut_after(path, step: int) -> None:
    """Removes the lines of later steps, and a last line that a kill left unfinished."""
    path = pathlib.Path(path)
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding='utf-8').splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row['step'] <= step:
            kept.append(line + '\n')
    records.atomic_write(path, ''.join(kept))
