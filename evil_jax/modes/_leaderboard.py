"""Several systems on the same examples: who is better, and whether that is more than chance."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from evil_jax import records
from evil_jax.metrics import evil, significance


def write(config, workdir, sheets: Mapping[str, Mapping[str, Sequence[evil.Sheet]]], protocols: Sequence[str]) -> dict:
    """Compares every system with the first one, and writes `<workdir>/comparison.json`.

    Args:
      config: `evaluate.bootstrap`, `evaluate.trials` and `seed` are read.
      workdir: of the run.
      sheets: protocol -> system -> one sheet a run.
      protocols: in the order to show them.

    Returns:
      {protocol: rows of `significance.compare`, as plain data}.
    """
    found = {}
    for name in protocols:
        rows = significance.compare(
            sheets[name],
            bootstrap=config.evaluate.bootstrap,
            trials=config.evaluate.trials,
            seed=config.seed,
        )
        found[name] = [dataclasses.asdict(row) for row in rows]
    records.write_json(pathlib.Path(workdir) / 'comparison.json', {'schema': 1, **found})
    return found
