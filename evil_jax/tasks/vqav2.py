"""Open questions (VQA v2): an answer out of a vocabulary, with ten annotators' soft scores."""

from evil_jax.records import Example
from evil_jax.tasks import base


class Task(base.Task):
    """One sigmoid an answer: binary cross-entropy on soft scores, mean over the answers times their number (facts 1.4).

    `judge` is the soft score; the official leave-one-out accuracy is metrics/vqa.py.
    """

    def answer_vocabulary(self, assets) -> tuple[str, ...]:
        if assets is None:
            return ()
        if not assets.answers:
            raise ValueError('the answer vocabulary (answers.json of the data set) is empty')
        return tuple(assets.answers)

    def targets(self, example: Example) -> dict[int, float]:
        """Answers outside the vocabulary are left out, and nothing takes their place."""
        return {
            self._index[answer]: score for answer, score in (example.answers or {}).items() if answer in self._index
        }

    def loss(self, answer_logits_BA, batch):
        import jax.numpy as jnp  # see base.Task.condition

        from evil_jax.nn import losses

        row_B1 = jnp.arange(answer_logits_BA.shape[0])[:, None]
        zeros_BA = jnp.zeros(answer_logits_BA.shape, jnp.float32)
        # Unused slots add a score of 0 to answer 0.
        targets_BA = zeros_BA.at[row_B1, batch['answer_ids']].add(batch['answer_scores'])
        return losses.soft_target_bce(answer_logits_BA, targets_BA)

    def predict(self, answer_logits_BA):
        import jax  # see base.Task.condition

        return answer_logits_BA.argmax(-1), jax.nn.sigmoid(answer_logits_BA.astype('float32'))

    def judge(self, answer: str, example: Example) -> float:
        """Soft score of the answer, 0 if no annotator gave it."""
        if example.answers is None:
            raise ValueError(f'example {example.id!r} has no answers to judge by')
        return float(example.answers.get(answer, 0.0))
