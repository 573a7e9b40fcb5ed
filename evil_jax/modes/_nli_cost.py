"""How many pairs of texts a second the NLI model scores, beside transformers with PyTorch, in one run.

    python -m evil_jax.main --mode=benchmark --config=esnlive_construction --config.benchmark.of=nli
    ... --config.construct.nli.model=FOLDER --config.benchmark.rows=2000

Both read the same folder and the same generated pairs, from texts to probabilities, with as many threads. Transformers
runs twice: in the order of the file, 32 pairs a batch, as most people do, and sorted by length, which is its best. All
take turns, and the better of their turns counts; what is compiled or warmed up once is in none of them, since the
working size is millions of pairs, but is told. Without a folder one is made: RoBERTa of the paper's base size (with
shrink=True a tiny one) with random weights and a byte-level vocabulary of the texts.
"""

import functools
import importlib.util
import json
import os
import pathlib
import time

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from evil_jax import records
from evil_jax.construction.pairs import CLASSES
from evil_jax.data.shapes import examples as shapes
from evil_jax.modes import _terminal

_COLUMNS = ('NLI model, who runs it', 'batches', 'pairs/s', 'ours / theirs', 'largest difference', 'before the first')
_BATCH = 32  # pairs, of theirs
_TURNS = 3
_SPECIAL = ('<s>', '<pad>', '</s>', '<unk>', '<mask>')
_VOCABULARY = 2_000


def run(config, workdir) -> dict[str, float]:
    """Prints the table.

    Args:
      config: `construct.nli` names the model, `benchmark.rows` how many pairs (0: 512).
      workdir: where a model is made if none is named; a tiny one if `model.task.size` is tiny, as shrink=True makes it.

    Returns:
      {'pairs_per_second', 'ratio' (ours / the best of theirs), 'ratio_file_order', 'difference' (the largest)}; without
      PyTorch and transformers the first alone.
    """
    from evil_jax.interop import classifier  # JAX, of which other benchmarks have no need

    size = 'tiny' if config.model.task.size == 'tiny' else 'base'
    pairs, nli = texts(config.benchmark.rows or 512, config.seed), config.construct.nli
    folder = pathlib.Path(nli.model) if nli.model else make_folder(workdir / 'nli', size, pairs, config.seed)
    sides = {'ours': functools.partial(classifier.open_classifier, folder, dtype=nli.dtype, tokens=nli.tokens)}
    absent = [name for name in ('torch', 'transformers') if not importlib.util.find_spec(name)]
    if absent:
        print(f'not installed, so ours runs alone: {", ".join(absent)}')
    else:
        theirs = lambda ordered: _theirs(folder, nli.dtype, score['ours'].stated, ordered)
        sides |= {'file order': lambda: theirs(False), 'sorted': lambda: theirs(True)}
    score, first, best, found = {}, {}, {}, {}
    for side, make in sides.items():
        start = time.perf_counter()
        score[side] = make()
        found[side] = score[side](pairs)
        first[side] = time.perf_counter() - start
    for turn in range(_TURNS):
        for side in sides if turn % 2 == 0 else reversed(sides):
            start = time.perf_counter()
            score[side](pairs)
            best[side] = min(best.get(side, np.inf), time.perf_counter() - start)
    rows = []
    for side in sides:
        name = f'{folder.name}, {nli.dtype}, ' + ('evil_jax' if side == 'ours' else 'transformers')
        ratio = '' if side == 'ours' else f'{best[side] / best["ours"]:.2f}'
        difference = '' if side == 'ours' else f'{np.abs(found[side] - found["ours"]).max():.1e}'
        batches = 'sorted, equal tokens' if side == 'ours' else f'{side}, {_BATCH} pairs'
        speed = f'{len(pairs) / best[side]:.1f}'
        rows.append((name, batches, speed, ratio, difference, f'{first[side] - best[side]:.1f} s'))
    _terminal.show(f'{len(pairs):,} pairs, {_threads()} threads, best of {_TURNS} turns', _COLUMNS, rows)
    result = {'pairs_per_second': len(pairs) / best['ours']}
    if not absent:
        result['ratio'] = min(best['sorted'], best['file order']) / best['ours']
        result['ratio_file_order'] = best['file order'] / best['ours']
        result['difference'] = float(max(np.abs(found[side] - found['ours']).max() for side in sides))
    return result


def texts(count: int, seed: int) -> list[tuple[str, str]]:
    """Generated pairs of about the lengths of SNLI's: premises of one or two statements, hypotheses of one."""
    made = [item for _, items, _ in shapes.generate('shapes_ve', 'test', count, [seed]) for item in items]
    premises = [' and '.join(item.explanations[: 1 + n % 2]) for n, item in enumerate(made)]
    return [(premise, item.text) for premise, item in zip(premises, made)][:count]


def make_folder(folder: pathlib.Path, size: str, pairs, seed: int) -> pathlib.Path:
    """A Hugging Face folder of a RoBERTa with random weights and a head of three classes."""
    import jax
    from flax import nnx

    from evil_jax.interop import _folder, roberta, weights
    from evil_jax.models import roberta as net

    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY, initial_alphabet=alphabet, special_tokens=list(_SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator((text for pair in pairs for text in pair), trainer)
    words = json.loads(tokenizer.to_str())['model']
    model = net.Roberta(net.SIZES[size], words=len(words['vocab']), classes=3, rngs=nnx.Rngs(seed))
    arrays = {path: np.asarray(jax.device_get(x)) for path, x in _folder.flat(model).items()}
    stated = roberta.hf_config(net.SIZES[size], len(words['vocab']), 3)
    stated['id2label'] = {str(n): label for n, label in enumerate(CLASSES)}
    stated['label2id'] = {label: n for n, label in enumerate(CLASSES)}
    folder.mkdir(parents=True, exist_ok=True)
    weights.write(folder / 'model.safetensors', roberta.save(arrays))
    records.write_json(folder / 'config.json', stated)
    records.write_json(folder / 'vocab.json', words['vocab'])
    merges = '\n'.join(' '.join(pair) for pair in words['merges'])
    records.atomic_write(folder / 'merges.txt', f'#version: 0.2\n{merges}\n'.encode())
    longest = net.SIZES[size].positions - 2
    records.write_json(
        folder / 'tokenizer_config.json', {'tokenizer_class': 'RobertaTokenizer', 'model_max_length': longest}
    )
    return folder


def _theirs(folder, dtype, stated, ordered):
    """pairs -> probabilities in the order of CLASSES, by transformers. `stated`: classes by the model's outputs."""
    import jax
    import torch
    import transformers

    torch.set_num_threads(_threads())
    device = 'cuda' if torch.cuda.is_available() and jax.default_backend() == 'gpu' else 'cpu'  # where ours is
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=getattr(torch, dtype))
    model = model.eval().to(device)
    columns = [stated.index(label) for label in CLASSES]

    def score(pairs):
        numbers = list(range(len(pairs)))
        if ordered:
            length = [len(ids) for ids in tokenizer(*map(list, zip(*pairs)), truncation=True)['input_ids']]
            numbers.sort(key=lambda n: -length[n])
        found = np.zeros((len(pairs), len(CLASSES)), np.float32)
        with torch.inference_mode():
            for start in range(0, len(numbers), _BATCH):
                rows = numbers[start : start + _BATCH]
                premises, hypotheses = map(list, zip(*(pairs[n] for n in rows)))
                batch = tokenizer(premises, hypotheses, truncation=True, padding=True, return_tensors='pt').to(device)
                found[rows] = model(**batch).logits.float().softmax(-1).cpu().numpy()
        return found[:, columns]

    return score


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
