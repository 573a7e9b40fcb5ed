"""Two LSTMs, one above the other, as explanation module M_E. `model.expl.attend` says when they look at the picture.

word: FME (Wu and Mooney 2019), whose decoder is the Up-Down captioner (Anderson et al. 2018, section 3.2). At each word

    h1 = LSTM([mean of v; question; answer; word; h2 of the word before])
    a  = softmax_s(w . tanh(W_v v_s + W_h h1))
    h2 = LSTM([sum_s a_s v_s; h1]),   logits = W_p h2

answer: PJ-X (Park et al. 2018, section 3.2), which looks once, with the answer in mind. e is the answer's embedding:

    m_s = fuse(W v_s * W question)                  what the question finds
    a   = softmax_s(w . ReLU(W fuse(W m_s * e)))    where that speaks for the answer
    u   = join(W sum_s a_s v_s, W question, e)
    h1  = LSTM(tanh(word)),   h2 = LSTM(join(h1, W u)),   logits = W_p h2

with fuse(x) = sqrt(n) x' / |x'|, x' = sign(x) sqrt(|x|), n its width. (PJ-X has no factor sqrt(n); linear maps follow,
so it changes only where training starts and how fast.) join(x, y, ...) = fuse(x * y * ...), in size base, as published.
Ours, in size tiny: the factors beside their product, fuse(x * y * ...) + x + y + ... In a product the sign of what was
seen turns with every question and answer; with the factors beside it the decoder learns in hundreds of steps to say
where something is.

v are the vectors of M_T's memory, the question is its pooled vector. The published models have one embedding for each
answer; here an answer is the mean of its words', so that choices, which differ from example to example, can be
explained as well.

Initial weights: variances are kept (1 / inputs, words of variance 1), LSTMs as in nn/lstm.py.

Legend: B batch, S memory, T explanation tokens, E embedding, D width of an LSTM, M width of the memory, H attention,
J fused width, V vocabulary rows.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import nnx

from evil_jax import lookup
from evil_jax.nn import lstm, ops, topdown

VOCABULARY_MULTIPLE = 128  # as GPT-2's: the matrix unit's tile, and divisible by a mesh axis


@dataclasses.dataclass(frozen=True)
class Size:
    """Widths: embedding E of words and answers, width D of the LSTMs, hidden H of the attention, fused J of PJ-X.
    beside: PJ-X's factors stand beside their product."""

    embedding: int
    width: int
    hidden: int
    fused: int
    beside: bool = False


class _Decoder(ops.Op):
    """What both styles share: words, output layer, teacher forcing by `__call__`, generation by `prefill`, `extend`.

    A style has `look(...)`, arrays [B, ...] that stay the same for all words, `run` over a row and `step` for one word.

    Args:
      rows: of the vocabulary; the table has padding beyond, which is never generated.
      begin: id of `<|b_rtnl|>`.
    """

    def __init__(self, size: Size, memory: int, *, rows, begin, dropout=0.0, dtype=jnp.float32, rngs: nnx.Rngs):
        padded = -(-rows // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
        self.word = ops.Embedding(padded, size.embedding, std=1.0, dtype=dtype, rngs=rngs)
        self.out = ops.Linear(size.width, padded, std=size.width**-0.5, dtype=dtype, rngs=rngs)
        self.size, self.memory, self.rows, self.begin = size, memory, rows, begin
        self.dropout, self.dtype = dropout, dtype

    def look(self, context, answer_BE, key=None) -> dict:
        """What is known before the first word."""
        raise NotImplementedError

    def run(self, seen, words_BTE, key=None):
        """Upper states_BTD after each word."""
        raise NotImplementedError

    def step(self, seen, word_BE, state):
        """State after one more word; `state` is ((h1, c1), (h2, c2))."""
        raise NotImplementedError

    def start(self, rows: int):
        return self.lower.start(rows), self.upper.start(rows)

    def inputs(self, condition, tokens_BT):
        """Its own vectors, of the answer's words BAE and of the explanation's BTE; see `read`."""
        return self.word(condition.tokens_BT), self.word(tokens_BT)

    def begin_with(self, context, condition, key=None, words_BAE=None):
        for name, width in (('memory', context.memory_BSD.shape[-1]), ('pooled', context.pooled_BD.shape[-1])):
            if width != self.memory:
                raise ValueError(f'the {name} of the context is {width} wide, the decoder was made for {self.memory}')
        if not context.memory_BSD.shape[1]:  # a task module that hands over its pooled vector only
            empty = jnp.zeros((len(context.length_B), 1, self.memory), context.memory_BSD.dtype)
            context = dataclasses.replace(context, memory_BSD=empty)
        return self.look(context, self.answered(condition, words_BAE), key)

    def answered(self, condition, words_BAE=None):
        """The answer as one vector, BE; `words_BAE`: its words' vectors, None = as they are."""
        words_BAE = self.word(condition.tokens_BT) if words_BAE is None else words_BAE
        return topdown.mean(words_BAE, condition.length_B).astype(self.dtype)

    def logits(self, state):
        """Logits [..., V], float32. Padding rows can never be chosen."""
        logits = self.out(state).astype(jnp.float32)
        return jnp.where(jnp.arange(logits.shape[-1]) < self.rows, logits, -1e9)

    def chosen(self, states_BTD, tokens_BT):
        """Of each state the logit of one token, BT: the others are not computed."""
        kernel_DV, bias_V = self.out.kernel[...].astype(self.dtype), self.out.bias[...].astype(self.dtype)
        products_BTD = self.op.product(states_BTD.astype(self.dtype), jnp.moveaxis(kernel_DV[:, tokens_BT], 0, -1))
        return (products_BTD.sum(-1) + bias_V[tokens_BT]).astype(jnp.float32)

    def read(self, context, condition, tokens_BT, *, key=None, inputs=None):
        """States_BTD after each token; `inputs`: other vectors for the words, as `inputs` gives them."""
        answer_BAE, words_BTE = self.inputs(condition, tokens_BT) if inputs is None else inputs
        seen = self.begin_with(context, condition, ops.fold(key, 0), answer_BAE)
        words_BTE = ops.dropout(words_BTE, self.dropout, ops.fold(key, 1))
        return ops.dropout(self.run(seen, words_BTE, ops.fold(key, 2)), self.dropout, ops.fold(key, 3))

    def gaze(self, context, condition, tokens_BT):
        """Attention over the memory as each token is read, BTS, float32."""
        raise NotImplementedError

    def __call__(self, batch, context, condition, tokens_BT, *, key=None):
        """Logits_BTV: [:, t] predicts tokens[:, t + 1]. The question is read from the context, so `batch` is not."""
        return self.logits(self.read(context, condition, tokens_BT, key=key))

    def prefill(self, batch, context, condition, max_tokens: int):
        """Looks at picture, question and answer, and reads `<|b_rtnl|>`.

        Args:
          max_tokens: not needed: states do not grow.

        Returns:
          (logits_BV of the first token, cache). cache['length'] int32 B is the position that the first token takes: 1.
        """
        rows = len(context.length_B)
        seen = self.begin_with(context, condition)
        cache = {'seen': seen, 'state': self.start(rows), 'length': jnp.ones(rows, jnp.int32)}
        return self.extend(cache, jnp.full(rows, self.begin), None)

    def extend(self, cache, token_B, position_B):
        """Adds one token a row: (logits_BV of the next token, cache). Positions are not needed."""
        state = self.step(cache['seen'], self.word(token_B), cache['state'])
        return self.logits(state[1][0]), {**cache, 'state': state}


class EachWord(_Decoder):
    """FME's: attention at each word."""

    def __init__(self, size: Size, memory: int, *, dtype=jnp.float32, rngs: nnx.Rngs, **shared):
        super().__init__(size, memory, dtype=dtype, rngs=rngs, **shared)
        linear = lambda i, o: ops.Linear(i, o, std=i**-0.5, dtype=dtype, rngs=rngs)
        self.first_word = 2 * memory + size.embedding
        self.lower = lstm.Lstm(self.first_word + size.embedding + size.width, size.width, dtype=dtype, rngs=rngs)
        self.upper = lstm.Lstm(memory + size.width, size.width, dtype=dtype, rngs=rngs)
        self.key, self.query = linear(memory, size.hidden), linear(size.width, size.hidden)
        self.score = linear(size.hidden, 1)

    def look(self, context, answer_BE, key=None):
        memory_BSM = ops.dropout(context.memory_BSD.astype(self.dtype), self.dropout, ops.fold(key, 0))
        mean_BM = topdown.mean(memory_BSM, context.length_B).astype(self.dtype)
        question_BM = context.pooled_BD.astype(self.dtype)
        return {
            'memory': memory_BSM,
            'length': context.length_B,
            'keys': self.key(memory_BSM),
            'fixed': self.lower.part(jnp.concatenate([mean_BM, question_BM, answer_BE], axis=-1)),
        }

    def attend(self, seen, h_BD):
        """(attended_BM, weights_BS)."""
        joint_BSH = self.op.tanh(self.op.add(seen['keys'], self.query(h_BD)[:, None]))
        weights_BS = topdown.weights(self.op, self.score(joint_BSH)[..., 0], seen['length'])
        return self.op.pool(weights_BS.astype(self.dtype), seen['memory']), weights_BS

    def _advance(self, seen, projected_BG, state):
        lower, (h2_BD, c2_BD) = state
        before_BG = self.lower.part(h2_BD, self.first_word + self.size.embedding)
        sums_BG = self.op.add(self.op.add(seen['fixed'], projected_BG), before_BG)
        lower = self.lower.advance(sums_BG, lower)
        attended_BM, weights_BS = self.attend(seen, lower[0])
        upper = self.upper.step(jnp.concatenate([attended_BM, lower[0].astype(self.dtype)], axis=-1), (h2_BD, c2_BD))
        return (lower, upper), weights_BS

    def _scan(self, seen, words_BTE, keep):
        """What `keep(state, weights_BS)` says after each word, BT..."""
        projected_BTG = self.lower.part(words_BTE, self.first_word)

        def body(state, projected_BG):
            state, weights_BS = self._advance(seen, projected_BG, state)
            return state, keep(state, weights_BS)

        _, kept = jax.lax.scan(body, self.start(len(words_BTE)), projected_BTG.swapaxes(0, 1))
        return kept.swapaxes(0, 1)

    def run(self, seen, words_BTE, key=None):
        return self._scan(seen, words_BTE, lambda state, weights_BS: state[1][0])

    def gaze(self, context, condition, tokens_BT):
        seen = self.begin_with(context, condition)
        return self._scan(seen, self.word(tokens_BT), lambda state, weights_BS: weights_BS)

    def step(self, seen, word_BE, state):
        return self._advance(seen, self.lower.part(word_BE, self.first_word), state)[0]


class Once(_Decoder):
    """PJ-X's: attention once, for the answer."""

    def __init__(self, size: Size, memory: int, *, dtype=jnp.float32, rngs: nnx.Rngs, **shared):
        super().__init__(size, memory, dtype=dtype, rngs=rngs, **shared)
        linear = lambda i, o: ops.Linear(i, o, std=i**-0.5, dtype=dtype, rngs=rngs)
        j = size.fused
        self.image, self.question = linear(memory, j), linear(memory, j)
        self.answer, self.found = linear(size.embedding, j), linear(j, j)
        self.hidden, self.score = linear(j, size.hidden), linear(size.hidden, 1)
        self.attended, self.asked, self.visual = linear(memory, j), linear(memory, j), linear(j, size.width)
        self.lower = lstm.Lstm(size.embedding, size.width, dtype=dtype, rngs=rngs)
        self.upper = lstm.Lstm(size.width, size.width, dtype=dtype, rngs=rngs)

    def fuse(self, first, *others, key=None):
        product = first
        for other in others:
            product = self.op.product(product, other)
        fused = self.op.unit(self.op.signed_root(product)) * product.shape[-1] ** 0.5
        return ops.dropout(fused, self.dropout, key)

    def join(self, *factors, key=None):
        """Their fusion, in some sizes with themselves beside it."""
        joined = self.fuse(*factors, key=key)
        for factor in factors if self.size.beside else ():
            joined = self.op.add(joined, factor)
        return joined

    def attend(self, context, answer_BJ, key=None):
        """(attended_BM, weights_BS)."""
        memory_BSM, question_BM = (x.astype(self.dtype) for x in (context.memory_BSD, context.pooled_BD))
        found_BSJ = self.fuse(self.image(memory_BSM), self.question(question_BM)[:, None], key=ops.fold(key, 0))
        joint_BSJ = self.fuse(self.found(found_BSJ), answer_BJ[:, None], key=ops.fold(key, 1))
        scores_BS = self.score(self.op.relu(self.hidden(joint_BSJ)))[..., 0]
        weights_BS = topdown.weights(self.op, scores_BS, context.length_B)
        return self.op.pool(weights_BS.astype(self.dtype), memory_BSM), weights_BS

    def look(self, context, answer_BE, key=None):
        answer_BJ = self.answer(self.op.tanh(answer_BE))
        attended_BM, _ = self.attend(context, answer_BJ, ops.fold(key, 0))
        asked_BJ = self.asked(context.pooled_BD)
        visual_BJ = self.join(self.attended(attended_BM), asked_BJ, answer_BJ, key=ops.fold(key, 1))
        return {'visual': self.visual(visual_BJ)}

    def gaze(self, context, condition, tokens_BT):
        """The same for all tokens."""
        _, weights_BS = self.attend(context, self.answer(self.op.tanh(self.answered(condition))))
        return jnp.broadcast_to(weights_BS[:, None], (*tokens_BT.shape, weights_BS.shape[-1]))

    def run(self, seen, words_BTE, key=None):
        length_B = jnp.full(len(words_BTE), words_BTE.shape[1])
        lower_BTD, _ = self.lower(self.op.tanh(words_BTE), length_B)
        joined_BTD = self.join(lower_BTD, seen['visual'][:, None], key=key)
        return self.upper(joined_BTD, length_B)[0]

    def step(self, seen, word_BE, state):
        lower = self.lower.step(self.op.tanh(word_BE), state[0])
        return lower, self.upper.step(self.join(lower[0].astype(self.dtype), seen['visual']), state[1])


STYLES = {'word': EachWord, 'answer': Once}
SIZES = {
    # PJ-X's widths (facts of its released configuration); Up-Down's captioner has LSTMs of 1,000, attention of 512.
    'base': Size(embedding=300, width=1024, hidden=512, fused=2048),
    'tiny': Size(embedding=64, width=128, hidden=64, fused=128, beside=True),  # ours, for laptops
}
READS = ('model.expl.attend',)


def build_expl(config, assets, *, memory_width: int, rngs: nnx.Rngs) -> _Decoder:
    """M_E of a config; `assets` gives the vocabulary."""
    style = lookup.entry(STYLES, config.model.expl.attend, 'config.model.expl.attend')
    return style(
        lookup.entry(SIZES, config.model.expl.size, 'config.model.expl.size'),
        memory_width,
        rows=assets.expl.size,
        begin=assets.expl.id('<|b_rtnl|>'),
        dropout=config.model.dropout,
        dtype=jnp.dtype(config.model.dtype),
        rngs=rngs,
    )
