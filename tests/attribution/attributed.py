"""Small nets of every kind that can be asked where they look, with random weights, and batches for them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from evil_jax.attribution import methods, subjects
from evil_jax.models import bert, gpt2, lstm_decoder, mcb, roberta, uniter, updown, vit
from evil_jax.models.context import Condition
from evil_jax.models.vlnle import Vlnle

# For programs that run once or twice: compiled in half the time.
quick_jit = functools.partial(jax.jit, compiler_options={'xla_cpu_use_fusion_emitters': False})
WORDS, ANSWERS, CHOICES = 30, 4, 3
ROWS, TOKENS, REGIONS, EXPLAINED = 3, 7, 4, 5
WIDTH = 16
_UNITER = uniter.Size(layers=1, width=WIDTH, heads=2, hidden=24, positions=TOKENS, std=0.3, word_std=1)
_BERT = dict(layers=2, width=WIDTH, heads=2, hidden=24, positions=TOKENS + 2, std=0.3, word_std=1)
_GPT2 = gpt2.Size(layers=1, width=WIDTH, heads=2, positions=40, std=0.3)
_MARKERS = gpt2.Markers(b_img=1, e_img=2, b_rtnl=3, types=(26, 27, 28, 29))
_MCB = mcb.Size(embedding=8, width=WIDTH, sketch=32, hidden=8, glimpses=2, places=True)
_UPDOWN = updown.Size(embedding=8, width=WIDTH, hidden=16, glimpses=2, locations=True, norms=True)
_LSTM = lstm_decoder.Size(embedding=8, width=WIDTH, hidden=8, fused=16, beside=True)

TASKS = {
    'uniter': lambda **k: uniter.Uniter(_UNITER, words=WORDS, answers=ANSWERS, **k),
    'uniter_choices': lambda **k: uniter.Uniter(_UNITER, words=WORDS, choices=CHOICES, types=3, **k),
    'uniter_quirks': lambda **k: uniter.Uniter(
        _UNITER, words=WORDS, answers=ANSWERS, pad_regions=True, read_padding=True, **k
    ),
    'bert': lambda **k: bert.Bert(bert.Size(**_BERT), words=WORDS, answers=ANSWERS, **k),
    'distilbert': lambda **k: bert.Bert(bert.Size(**_BERT, types=0, pool='relu'), words=WORDS, answers=ANSWERS, **k),
    'roberta': lambda **k: roberta.Roberta(bert.Size(**_BERT, types=1), words=WORDS, classes=ANSWERS, **k),
    'vit': lambda **k: vit.Vit(
        vit.Size(layers=2, width=WIDTH, heads=2, hidden=24, patch=4, pixels=12, std=0.3), answers=ANSWERS, **k
    ),
    'pjx': lambda **k: mcb.Pjx(_MCB, words=WORDS, answers=ANSWERS, **k),
    'pjx_choices': lambda **k: mcb.Pjx(_MCB, words=WORDS, choices=CHOICES, fusion='product', **k),
    'fme': lambda **k: updown.UpDown(_UPDOWN, words=WORDS, answers=ANSWERS, **k),
    'fme_choices': lambda **k: updown.UpDown(_UPDOWN, words=WORDS, choices=CHOICES, **k),
}
EXPLAINERS = {
    'gpt2': lambda **k: gpt2.Gpt2(_GPT2, rows=WORDS, markers=_MARKERS, **k),
    'gpt2_late': lambda **k: gpt2.Gpt2(_GPT2, rows=WORDS, markers=_MARKERS, late=True, **k),
    'gpt2_tags': lambda **k: gpt2.Gpt2(_GPT2, rows=WORDS, markers=_MARKERS, image='tags', **k),
    'gpt2_none': lambda **k: gpt2.Gpt2(_GPT2, rows=WORDS, markers=_MARKERS, image='none', **k),
    'each_word': lambda **k: lstm_decoder.EachWord(_LSTM, WIDTH, rows=WORDS, begin=3, **k),
    'once': lambda **k: lstm_decoder.Once(_LSTM, WIDTH, rows=WORDS, begin=3, **k),
}


@functools.cache
def make(task: str, expl: str = '', dtype='float32'):
    """(graph, parameters) of a task module, or of a pair; biases and norms are no zeros and ones."""

    def build():
        first = TASKS[task](dtype=jnp.dtype(dtype), rngs=nnx.Rngs(params=0))
        return Vlnle(first, EXPLAINERS[expl](dtype=jnp.dtype(dtype), rngs=nnx.Rngs(params=1))) if expl else first

    return filled(build)


def filled(build, std=0.5):
    """(graph, parameters) of a net with random numbers, which no program has to be compiled for. `std`: of words and
    biases; kernels keep the size of what they read, times twice that."""
    graph, shapes = nnx.split(nnx.eval_shape(build))
    r = np.random.default_rng(0)
    draw = {
        'scale': lambda s: 1 + 0.2 * std * r.normal(size=s), 'bias': lambda s: 0.2 * std * r.normal(size=s),
        'kernel': lambda s: 2 * std * r.normal(size=s) * s[0] ** -0.5, 'embedding': lambda s: std * r.normal(size=s),
        'hash': lambda s: r.integers(0, _MCB.sketch, s), 'sign': lambda s: r.choice([-1, 1], s),
    }  # fmt: skip
    fill = lambda path, x: np.asarray(draw[path[-1]](x.shape), x.dtype)
    flat = {path: leaf.replace(fill(path, leaf)) for path, leaf in nnx.to_flat_state(shapes)}
    return graph, nnx.from_flat_state(flat)


def batch(seed=0):
    """Everything that a net may read, of three examples of different lengths."""
    r = np.random.default_rng(seed)
    ids = lambda *shape: r.integers(4, 26, shape).astype(np.int32)
    number = np.array([REGIONS, 2, 3], np.int32)
    tags = lambda *shape: r.integers(-1, number.reshape(-1, *[1] * (len(shape) - 1)), shape).astype(np.int32)
    return {
        'text': ids(ROWS, TOKENS), 'text_type': r.integers(0, 2, (ROWS, TOKENS)).astype(np.int32),
        'text_length': np.array([5, TOKENS, 3], np.int32), 'text_tags': tags(ROWS, TOKENS),
        'choices': ids(ROWS, CHOICES, TOKENS), 'choices_tags': tags(ROWS, CHOICES, TOKENS),
        'choices_type': r.integers(0, 3, (ROWS, CHOICES, TOKENS)).astype(np.int32),
        'choices_length': r.integers(3, TOKENS + 1, (ROWS, CHOICES)).astype(np.int32),
        'features': r.normal(size=(ROWS, REGIONS, 2048)).astype(np.float32),
        'locations': r.random((ROWS, REGIONS, 7), np.float32), 'region_length': number,
        'images': r.uniform(-1, 1, (ROWS, 12, 12, 3)).astype(np.float32),
        'question': ids(ROWS, 4), 'question_length': np.array([4, 3, 2], np.int32),
        'objects': ids(ROWS, 3), 'objects_length': np.array([3, 1, 2], np.int32),
    }  # fmt: skip


_LENGTHS = {
    'text': 'text_length', 'text_type': 'text_length', 'text_tags': 'text_length', 'features': 'region_length',
    'locations': 'region_length', 'question': 'question_length', 'objects': 'objects_length',
}  # fmt: skip


def said(seed=0):
    """(condition, tokens, their numbers): the answer that is explained and what was said."""
    r = np.random.default_rng(seed)
    ids = lambda *shape: r.integers(4, 26, shape).astype(np.int32)
    condition = Condition(np.zeros(ROWS, np.int32), ids(ROWS, 3), np.array([3, 2, 2], np.int32))
    return condition, ids(ROWS, EXPLAINED), np.array([EXPLAINED, 3, 4], np.int32)


def alone(inputs, row):
    """One example without padding. (With choices its texts keep theirs: they have one length.)"""
    batch, one = inputs[0], {}
    for name, x in batch.items():
        length = _LENGTHS.get(name)
        one[name] = x[row : row + 1] if length is None else x[row : row + 1, : batch[length][row]]
    if len(inputs) == 1:
        return (one,)
    condition, tokens, length = inputs[1:]
    cut = condition.tokens_BT[row : row + 1, : condition.length_B[row]]
    mine = Condition(condition.answer_index_B[row : row + 1], cut, condition.length_B[row : row + 1])
    return one, mine, tokens[row : row + 1, : length[row]], length[row : row + 1]


def difference(batched, single, row, k=0):
    """Largest difference between a target of an example in a batch and the only one alone, relative; padding is to be
    0."""
    ours, theirs = np.asarray(batched.values_BKS)[row, k], np.asarray(single.values_BKS)[0, 0]
    of = lambda x, row, k: int(np.asarray(x)[(row, k)[: np.ndim(x)]])
    scale, worst = np.abs(theirs).max() or 1.0, 0.0  # GradCAM can be 0 everywhere
    for name, (start, length) in batched.spans.items():
        first, number = of(start, row, k), of(length, row, k)
        alone_first, alone_number = (of(x, 0, 0) for x in single.spans[name])
        assert number == alone_number, name
        worst = max(worst, np.abs(ours[first:][:number] - theirs[alone_first:][:number]).max(initial=0) / scale)
    # The rest: the same class token and markers, and zeros.
    return max(worst, np.abs(np.sort(np.abs(ours))[::-1][: len(theirs)] - np.sort(np.abs(theirs))[::-1]).max() / scale)


def subject_of(graph, params, inputs):
    """A subject of `(batch,)` or `(batch, condition, tokens, length)`."""
    model = nnx.merge(graph, params)
    return subjects.answer(model, *inputs) if len(inputs) == 1 else subjects.explanation(model, *inputs)


@functools.cache
def attribute(task, expl, asked, dtype='float32'):
    """Compiled `(inputs, targets_BK) -> {method: Relevance}`, and its `eval_shape`; `asked`: (method, Settings)..."""
    graph, params = make(task, expl, dtype)

    @jax.jit
    def run(params, inputs, targets_BK):
        subject = subject_of(graph, params, inputs)
        return {name: methods.relevance(subject, targets_BK, name, settings) for name, settings in asked}

    attributed = functools.partial(run, params)
    attributed.eval_shape = functools.partial(run.eval_shape, params)
    return attributed
