"""A model of evil_jax in PyTorch: it answers a question about the regions of a picture and explains the answer.

    from transformers import AutoModel
    model = AutoModel.from_pretrained(FOLDER, trust_remote_code=True)
    batch = model.encode('is the cat asleep?', features=..., boxes=..., size=(640, 480))
    model(**batch).logits           answer logits [B, A]
    model.explain(batch)            [Explained(answer='yes', probability=0.9, explanation='its eyes are closed', ...)]

Modules are named as in evil_jax. Evaluation only: there is no dropout here.

Legend: B batch, C choices, T explanation tokens, A answers, V vocabulary.
"""

import dataclasses

import torch
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from .answering_evil import MODELS as TASKS
from .configuration_evil import EvilConfig
from .explaining_evil import MODELS as EXPLAINERS
from .processing_evil import Processor, Regions


@dataclasses.dataclass
class EvilOutput(ModelOutput):
    """logits: of the answers [B, A], or of the choices [B, C]. explanation_logits: [B, T, V], or None."""

    logits: torch.Tensor | None = None
    explanation_logits: torch.Tensor | None = None


@dataclasses.dataclass
class Explained:
    """answer: its text; of choices its number. index: of the answer or choice. explanation: its text, of `tokens`."""

    answer: str | int
    index: int
    probability: float
    explanation: str = ''
    tokens: list = dataclasses.field(default_factory=list)


class EvilModel(PreTrainedModel):
    """The pair: `task` answers, `expl` explains (None in a model that only answers).

    Attributes:
      processor: Processor, read from the folder that the model was loaded from.
    """

    config_class = EvilConfig
    base_model_prefix = 'model'

    def __init__(self, config):
        super().__init__(config)
        self.task = TASKS[config.task['name']](config.task)
        self.expl = EXPLAINERS[config.expl['name']](config.expl) if config.expl else None
        self.processor = None
        self.post_init()

    def _init_weights(self, module):
        """Every weight is in the file."""

    @classmethod
    def from_pretrained(cls, path, *args, **kwargs):
        """As every model of transformers, and the vocabularies with it."""
        found = super().from_pretrained(path, *args, **kwargs)
        where = {k: kwargs[k] for k in ('revision', 'token', 'cache_dir', 'local_files_only') if k in kwargs}
        model = found[0] if isinstance(found, tuple) else found
        model.processor = Processor.load(model.config, path, **where)
        return found

    def encode(self, text, features=None, boxes=None, size=None, confidence=None, names=None, classes=None, **more):
        """A batch of one question. Batches of several: `model.processor.batch([model.processor(...), ...])`.

        Args:
          features, boxes, size, confidence, names, classes: see processing_evil.Regions; None: no picture.
          **more: choices, objects, object_boxes, object_size: see Processor.__call__.
        """
        regions = None if features is None else Regions(features, boxes, size, confidence, names, classes)
        row = self.processor(text, regions, **more)
        return {name: value[None].to(self.device) for name, value in row.items()}

    def forward(self, explanation=None, answer=None, **batch):
        """Answer logits, and with `explanation` (tokens [B, T], `processor.explanation`) those of its next tokens.

        Args:
          answer: [B] index of the answer that is explained; None: the most likely one.
        """
        logits, context = self.task(batch)
        if explanation is None or self.expl is None:
            return EvilOutput(logits)
        index_B = logits.argmax(-1) if answer is None else answer
        condition = self.processor.condition(batch, index_B)
        return EvilOutput(logits, self.expl(batch, context, *condition, explanation))

    @torch.no_grad()
    def explain(self, batch, answer=None, max_tokens=None):
        """The most likely answers, and what greedy search says why.

        Args:
          batch: of `encode` or `processor.batch`.
          answer: [B] index of another answer or choice to explain.
          max_tokens: most tokens of an explanation.

        Returns:
          Explained, one a row.
        """
        logits, context = self.task(batch)
        scores = logits.softmax(-1) if self.config.probability == 'softmax' else logits.sigmoid()
        index_B = logits.argmax(-1)
        texts = self.config.answers or range(logits.shape[-1])
        found = [Explained(texts[i], i, float(row[i])) for i, row in zip(index_B.tolist(), scores)]
        if self.expl is None:
            return found
        condition = self.processor.condition(batch, index_B if answer is None else torch.as_tensor(answer).to(index_B))
        steps = max_tokens or self.config.encoding['max_explanation']
        for row, tokens in zip(found, self._greedy(batch, context, condition, steps)):
            row.explanation, row.tokens = self.processor.pieces.decode(tokens), [t for t in tokens if t != self._end]
        return found

    @property
    def _end(self):
        return self.config.expl['e_rtnl']

    def _greedy(self, batch, context, condition, steps):
        """Tokens of each row, the end token included."""
        logits_BV, state = self.expl.start(batch, context, *condition, self.config.expl['b_rtnl'], steps)
        found, running_B = [[] for _ in logits_BV], torch.ones(len(logits_BV), dtype=torch.bool)
        for step in range(steps):
            token_B = logits_BV[:, : self.config.expl['tokens']].argmax(-1)  # type rows are no words
            for row, token in enumerate(token_B.tolist()):
                if running_B[row]:
                    found[row].append(token)
                    running_B[row] = token != self._end
            if not running_B.any() or step == steps - 1:
                return found
            logits_BV, state = self.expl.extend(state, token_B)
