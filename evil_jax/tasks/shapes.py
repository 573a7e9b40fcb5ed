"""The built-in world: entailment, questions and choices about scenes whose explanations can be checked."""

from evil_jax.data import shapes
from evil_jax.tasks import base, esnlive, vcr, vqav2


class _Checked(base.Task):
    def explanation_truth(self, prediction, example) -> bool | None:
        """Whether the explanation is true of the scene and justifies the gold answer; None without a scene."""
        scene = example.extra.get('scene')
        return None if scene is None else bool(shapes.explanation_is_true(scene, example, prediction.explanation))


class Entailment(_Checked, esnlive.Task):
    """shapes_ve."""


class Questions(_Checked, vqav2.Task):
    """shapes_vqa."""


class Choices(_Checked, vcr.Task):
    """shapes_vcr."""


_FORMS = {'shapes_ve': Entailment, 'shapes_vqa': Questions, 'shapes_vcr': Choices}


def Task(config, assets=None) -> base.Task:
    """The form of the world that `config.data.builder` names."""
    if config.data.builder not in _FORMS:
        raise ValueError(f'task shapes is for data.builder {" or ".join(_FORMS)}, found {config.data.builder!r}')
    return _FORMS[config.data.builder](config, assets)
