"""Visual commonsense (VCR): a question about a picture whose answer is one of the example's own choices."""

import numpy as np

from evil_jax import lookup
from evil_jax.data import objects, tags, transforms
from evil_jax.records import Example
from evil_jax.tasks import base


class Task(base.Task):
    """Picks one of the choices.

    With train.choice_loss='bce' each choice is judged true or false by itself, binary cross-entropy summed over the
    choices, as the published e-UG does (facts 1.4); with 'softmax' they compete, as in BERT for multiple choice. The
    likeliest choice is the answer. There is no answer vocabulary: `answers` is empty, indices count the choices of
    an example, and choices of the same words are told apart by them.
    """

    def __init__(self, config, assets=None):
        self.choices = config.data.choices
        if self.choices < 2:
            raise ValueError(f'data.choices is {self.choices}, task {config.data.task} wants at least 2')
        self.choice_loss = config.train.choice_loss
        super().__init__(config, assets)
        if self.encoding.max_text < 5:
            raise ValueError(
                f'data.max_text is {self.encoding.max_text}, wanted at least 5: three markers, question and choice'
            )

    def answer_vocabulary(self, assets) -> tuple[str, ...]:
        if assets is not None and assets.answers:
            raise ValueError(
                f'the answers of the data set are {list(assets.answers)[:5]}, wanted none: its examples have choices'
            )
        return ()

    def targets(self, example: Example) -> dict[int, float]:
        return {} if example.label is None else {self._label(example): 1.0}

    def transform(self, example: Example, regions, rng: np.random.Generator | None = None) -> dict[str, np.ndarray]:
        self._check(example)
        assets, encoding = self.assets, self.encoding
        names = objects.names(example, regions, encoding.objects)
        regions = transforms.fitting(regions, encoding, example.image_id)  # once, for the tags and for the row
        piece = lambda name, span, words, maximum: transforms.piece(
            name, span, tags.written(words, example.objects), assets.expl, maximum
        )
        answers = [piece('answers', 'ans', choice, encoding.max_answer) for choice in example.choices]
        return {
            **transforms.tagged(example, regions, assets.word, encoding, names),
            **transforms.regions(regions, encoding, example.image_id),
            **(transforms.objects(names, assets.expl, encoding.max_objects) if encoding.objects else {}),
            **piece('question', 'qn', example.text, encoding.max_question),
            **{name: np.stack([answer[name] for answer in answers]) for name in answers[0]},
            **transforms.explanation(example, assets.expl, encoding, rng),
            **transforms.targets(self.targets(example)),
        }

    def condition(self, batch, answer_index_B):
        import jax.numpy as jnp  # see base.Task.condition

        from evil_jax.models.context import Condition

        chosen_B1 = jnp.maximum(answer_index_B, 0)[:, None]
        tokens_BT = jnp.take_along_axis(batch['answers'], chosen_B1[..., None], axis=1)[:, 0]
        length_B = jnp.take_along_axis(batch['answers_length'], chosen_B1, axis=1)[:, 0]
        none = super().condition(batch, jnp.full_like(answer_index_B, -1))
        some_B = answer_index_B >= 0
        return Condition(
            answer_index_B=answer_index_B,
            tokens_BT=jnp.where(some_B[:, None], tokens_BT, none.tokens_BT),
            length_B=jnp.where(some_B, length_B, none.length_B),
        )

    def loss(self, answer_logits_BA, batch):
        import jax  # see base.Task.condition
        import jax.numpy as jnp

        from evil_jax.nn import losses

        gold_B = batch['gold']
        if self.choice_loss == 'softmax':
            return losses.softmax_cross_entropy(answer_logits_BA, gold_B)
        loss_B = losses.soft_target_bce(answer_logits_BA, jax.nn.one_hot(gold_B, answer_logits_BA.shape[-1]))
        return jnp.where(gold_B >= 0, loss_B, 0.0)

    def predict(self, answer_logits_BA):
        import jax  # see base.Task.condition

        return answer_logits_BA.argmax(-1), jax.nn.softmax(answer_logits_BA.astype('float32'), axis=-1)

    def judge(self, answer: str, example: Example) -> float:
        """1 for the words of the right choice, else 0."""
        if example.label is None:
            raise ValueError(f'example {example.id!r} has no label to judge by')
        return float(answer == example.choices[self._label(example)])

    def answer_text(self, index: int, example: Example) -> str:
        self._check(example)
        return example.choices[index] if index >= 0 else ''

    def answer_index(self, answer: str, example: Example) -> int:
        """The first choice of these words. Raises ValueError naming the nearest one."""
        self._check(example)
        if answer not in example.choices:
            raise ValueError(
                f'{answer!r} is not one of the {self.choices} choices of example {example.id!r}.'
                f'{lookup.nearest(answer, example.choices)}'
            )
        return example.choices.index(answer)

    def _label(self, example):
        self._check(example)
        label = example.label
        if type(label) is not int or not 0 <= label < self.choices:
            raise ValueError(f'example {example.id!r} has label {label!r}, wanted 0 ... {self.choices - 1}')
        return label

    def _check(self, example):
        if len(example.choices or ()) != self.choices:
            found = len(example.choices or ()) or 'no'
            raise ValueError(f'example {example.id!r} has {found} choices, wanted {self.choices} (data.choices)')
