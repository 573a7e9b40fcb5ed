"""Relevance for batch after batch of a split, by one method: for the answer, or for each token of its explanation.

Legend: B batch, K targets, S positions, T explanation tokens with the begin marker.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from tokenizers import decoders

from evil_jax import lookup
from evil_jax.attribution import base as attribution_base
from evil_jax.attribution import methods, subjects
from evil_jax.data import pipeline
from evil_jax.records import Example, Prediction
from evil_jax.training import sharding

SAID = ('tokens', 'explanation')  # kinds that ask for more than the answer
KINDS = ('predicted', 'gold', 'least', *SAID)  # of attribute.target; else an answer in words, or '#' and its number
_WHOLE = -1  # target of `subjects.explanation`: all tokens
_SHOWN = 10  # answers in a message


@dataclasses.dataclass
class Target:
    """What a map explains.

    Attributes:
      kind: 'answer', 'token' or 'explanation'.
      text: the answer, the token as it is spelled, or the explanation.
      index: of the answer, or the token's position in its explanation, from 0; -1 for the whole explanation.
      values: relevance by name of the span ('text', 'regions', 'patches', 'question', 'answer', 'explanation'),
        float32 [number of its positions].
    """

    kind: str
    text: str
    index: int
    values: dict[str, np.ndarray]


@dataclasses.dataclass
class Attributed:
    """One example: what was said of it, and why.

    Attributes:
      row: its arrays as the model read them, without features.
    """

    example: Example
    prediction: Prediction
    targets: list[Target]
    row: dict[str, np.ndarray]


def settings(config) -> attribution_base.Settings:
    """What `config.attribute` tells the methods."""
    names = ('rules', 'start_layer', 'row_norm', 'steps', 'samples', 'noise', 'chunk')
    return attribution_base.Settings(**{name: config.attribute[name] for name in names}, seed=config.seed)


class Explainer:
    """Explains by one method. Make it once and use it often: it keeps the compiled functions.

    Args:
      decoder: `decode.Decoder`: the model, its task and mesh, and how explanations are generated.
      config: `attribute` is read.
      method: name of a method or preset.
    """

    def __init__(self, decoder, config, method: str):
        self.decoder, self.method, self.settings = decoder, method, settings(config)
        self.kind, self.chunk = config.attribute.target, config.attribute.chunk
        replicated = NamedSharding(decoder.mesh, PartitionSpec())  # every process can read all rows
        self._answers = jax.jit(self._answer_values, out_shardings=replicated)
        self._tokens = jax.jit(self._token_values, out_shardings=replicated)

    def relevance(self, model, batch):
        """Traced: (Relevance with K = 1 of the answer to be explained, what the model said).

        Args:
          model: the pair.
          batch: of the pipeline, with `wanted` int32 B (`wanted` of each example).

        Returns:
          Relevance, and a dict: 'logits' BA, 'index' B of the predicted answer, 'target' B of the explained one and its
          'probability' B.
        """
        logits_BA, _ = model.task(batch)
        index_B, probability_BA = self.decoder.task.predict(logits_BA)
        target_B = index_B
        if self.kind == 'gold' or (self.kind in SAID and self.decoder.gold):  # what the explanation is of
            target_B = jnp.where(batch['gold'] >= 0, batch['gold'], index_B)
        elif self.kind == 'least':
            target_B = logits_BA.argmin(-1)
        target_B = jnp.where(batch['wanted'] >= 0, batch['wanted'], target_B)
        found = methods.relevance(subjects.answer(model.task, batch), target_B[:, None], self.method, self.settings)
        said = jnp.take_along_axis(probability_BA, target_B[:, None], axis=1)[:, 0]
        return found, {'logits': logits_BA, 'index': index_B, 'target': target_B, 'probability': said}

    def _answer_values(self, params, batch):
        found, said = self.relevance(self.decoder.net.merge(params), batch)
        return found, said['target']

    def _token_values(self, params, batch, answer_B, tokens_BT, length_B, targets_BK):
        model = self.decoder.net.merge(params)
        condition = self.decoder.task.condition(batch, answer_B)
        subject = subjects.explanation(model, batch, condition, tokens_BT, length_B)
        return methods.relevance(subject, targets_BK, self.method, self.settings)

    def explain(self, params, examples: Sequence[Example], batches) -> Iterator[list[Attributed]]:
        """Explained examples, a list a batch.

        Args:
          params: {path: array}.
          examples: of the split, by the batch's `row`.
          batches: of `batches`.
        """
        for batch in batches:
            yield self._explain(params, examples, batch)

    def batches(self, examples, reader, start: int = 0) -> Iterator[dict[str, np.ndarray]]:
        """Batches of `attribute.batch` rows, rounded up to a multiple of the devices."""
        decoder = self.decoder
        encode = Wanting(pipeline.Encode(decoder.task, reader), self.kind, decoder.task)
        return pipeline.eval_batches(examples, encode, batch=decoder.batch, start=start, workers=decoder.workers)

    def _explain(self, params, examples, batch):
        decoder = self.decoder
        predicted = jax.device_get(decoder.predict(params, {k: v for k, v in batch.items() if k != 'wanted'}))
        with jax.set_mesh(decoder.mesh):
            placed = sharding.place(batch, decoder.mesh)
            found, target_B = jax.device_get(self._answers(params, placed))
            shown = self._explanations(params, placed, predicted, target_B)
        done = []
        for place in range(len(batch['row'])):
            if batch['row'][place] < 0:
                continue
            example = examples[int(batch['row'][place])]
            one = {name: value[place] for name, value in predicted.items()}
            index = int(target_B[place])
            answer = Target('answer', decoder.task.answer_text(index, example), index, spans(found, place, 0))
            row = {name: value[place] for name, value in batch.items() if name not in ('features', 'images')}
            done.append(Attributed(example, decoder.prediction(example, one), [answer, *shown(place)], row))
        return done

    def _explanations(self, params, placed, predicted, answer_B):
        """`place -> Targets` of the tokens of an explanation, or of all of it; none where only the answer is asked."""
        if self.kind not in SAID:
            return lambda place: []
        expl = self.decoder.task.assets.expl
        begin_B1 = np.full((len(answer_B), 1), expl.id('<|b_rtnl|>'), np.int32)
        tokens_BT = np.concatenate([begin_B1, predicted['tokens']], axis=1)
        end = expl.id('<|e_rtnl|>')
        words_B = predicted['length'] - (predicted['tokens'] == end).any(1)  # the end marker needs no reason
        call = lambda targets_BK: jax.device_get(
            self._tokens(params, placed, answer_B, tokens_BT, predicted['length'] + 1, targets_BK)
        )
        if self.kind == 'explanation':
            found = call(np.full((len(answer_B), 1), _WHOLE, np.int32))
            text = lambda place: expl.decode(predicted['tokens'][place][: predicted['length'][place]].tolist())
            return lambda place: [Target('explanation', text(place), -1, spans(found, place, 0))]
        most = int(words_B.max(initial=0))
        parts = []
        for first in range(0, most, self.chunk):  # a few tokens at a time: each holds gradients of all attention maps
            positions_K = np.minimum(first + 1 + np.arange(self.chunk), most)
            parts.append(call(np.tile(positions_K.astype(np.int32), (len(answer_B), 1))))

        def shown(place):
            texts = [spelled(expl, token) for token in predicted['tokens'][place][: words_B[place]].tolist()]
            return [
                Target('token', text, n, spans(parts[n // self.chunk], place, n % self.chunk))
                for n, text in enumerate(texts)
            ]

        return shown


class Wanting:
    """Encodes an example, and says which answer is to be explained. Picklable."""

    def __init__(self, encode, kind: str, task):
        self.encode, self.kind, self.task = encode, kind, task

    def __call__(self, example, rng):
        return self.encode(example, rng) | {'wanted': np.int32(wanted(self.kind, example, self.task))}


def wanted(kind: str, example: Example, task) -> int:
    """Index of the answer that `attribute.target` names; -1 where it is one of KINDS.

    Raises:
      ValueError: no such answer, or two of the same words.
    """
    if kind in KINDS:
        return -1
    there = task.answers or tuple(example.choices or ())
    number = kind.removeprefix('#')
    if kind.startswith('#') and number.isdecimal() and int(number) < len(there):
        return int(number)
    if (count := sum(answer == kind for answer in there)) == 1:
        return there.index(kind)
    some = ', '.join(there[:_SHOWN]) + (' ...' if there[_SHOWN:] else '')
    if count:
        numbers = ' or '.join(f'#{n}' for n, answer in enumerate(there) if answer == kind)
        raise ValueError(f'attribute.target is {kind!r}, which is the name of {count} answers: wanted {numbers}')
    raise ValueError(
        f'attribute.target is {kind!r}, wanted {", ".join(KINDS)}, or one of {len(there)} answers ({some}) or its '
        f'number (#0 to #{len(there) - 1}).{lookup.nearest(kind, (*KINDS, *there))}'
    )


def spelled(expl, token: int) -> str:
    """A token of the decoder as it is read, with its blank; a marker as it is spelled."""
    text = expl.tokens([token])[0]
    return text if text.startswith('<|') else decoders.ByteLevel().decode([text])


def spans(found: attribution_base.Relevance, place: int, k: int) -> dict[str, np.ndarray]:
    """The relevance of one example for one target, by span."""
    values_S = np.asarray(found.values_BKS[place, k], np.float32)
    of = lambda x: int(x[place, k] if x.ndim == 2 else x[place])  # choices have lengths of their own
    return {name: values_S[of(start) :][: of(length)] for name, (start, length) in found.spans.items()}
