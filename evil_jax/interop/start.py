"""Parameters that a module begins with: somebody else's, by the table of the model's own file in this folder.

--config.model.task.init=torch:uniter-base.pt --config.model.expl.init=hf:gpt2
"""

import re
from collections.abc import Mapping

from evil_jax import lookup
from evil_jax.interop import weights


def load(kind: str, name: str, source: str, shapes: Mapping, assets, size: str = '') -> tuple[dict, str]:
    """Arrays for one module, and what was taken, in words.

    Args:
      kind: 'task' or 'expl'.
      name: of the model: `interop/<name>.py` reads its files.
      source: 'hf:PATH' or 'torch:PATH'.
      shapes: {our path with task/ or expl/: something with a shape}, of the whole model.
      assets: `data.tokenizers.Assets` of the data set, whose vocabularies have to be those of the file.
      size: key of the model's SIZES; with it the numbers of a config.json are compared.

    Returns:
      ({our path with task/ or expl/: float32 array}, words). Paths that are absent stay fresh. An array with fewer rows
      than the parameter has (the word table of GPT-2 without our markers) is its beginning; the rows behind stay fresh.

    Raises:
      ValueError: no such file, one of another model, size or vocabulary, or a model that no files are known of.
    """
    where = f'config.model.{kind}.init'
    spec = weights.spec(source)
    if spec is None:
        raise ValueError(f'{where} is {source!r}, wanted hf:FOLDER or torch:FILE')
    known = sorted({*lookup.defining('interop', 'load')}.intersection(lookup.defining('models', f'build_{kind}')))
    if name not in known:
        known = ', '.join(known)
        raise ValueError(f'{where} is {source}, but no published weights of {name} are known, only of: {known}')
    sizes = getattr(lookup.module('models', name), 'SIZES', {})
    wanted = {path.removeprefix(f'{kind}/'): leaf for path, leaf in shapes.items() if path.startswith(f'{kind}/')}
    theirs = lookup.module('interop', name)
    try:
        found = theirs.load(spec.path, wanted, assets, sizes.get(size))
        heads = [path for path in wanted.keys() - found.keys() if path.startswith(('head', 'answer'))]
        why = theirs.why_fresh(spec.path, wanted, assets) if heads and hasattr(theirs, 'why_fresh') else ''
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from error
    return {f'{kind}/{path}': array for path, array in found.items()}, _told(kind, spec, found, wanted, why)


def _told(kind, spec, found, wanted, why) -> str:
    told = f'{len(found)} of {len(wanted)} parameters of {kind} from {spec}'
    fresh = sorted({re.sub(r'/(kernel|bias|scale|embedding)$', '', path) for path in wanted.keys() - found.keys()})
    told += f'; fresh: {", ".join(fresh)}' if fresh else ''
    told += f' ({why})' if why else ''
    for path, array in found.items():
        rows = wanted[path].shape[0] if array.ndim else 0
        if array.ndim and len(array) < rows:
            told += f'; the first {len(array)} of {rows} rows of {path}'
    return told
