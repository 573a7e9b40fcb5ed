"""One of several classes is right: what visual entailment and plain classification have in common."""

from evil_jax.tasks import base


class SoftmaxTask(base.Task):
    """Classes compete: softmax cross-entropy, and the likeliest is the answer."""

    def loss(self, answer_logits_BA, batch):
        from evil_jax.nn import losses  # imports JAX: see base.Task.condition

        return losses.softmax_cross_entropy(answer_logits_BA, batch['gold'])

    def predict(self, answer_logits_BA):
        import jax  # see base.Task.condition

        return answer_logits_BA.argmax(-1), jax.nn.softmax(answer_logits_BA.astype('float32'), axis=-1)
