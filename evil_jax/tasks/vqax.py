"""VQA-X: questions of VQA v2 with explanations."""

from evil_jax.tasks import vqav2


class Task(vqav2.Task):
    """Answers, loss and judgement are VQA v2's; only the explanations are more."""
