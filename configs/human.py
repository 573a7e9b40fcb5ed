"""What do people say of the explanations? The e-ViL human evaluation, for anybody's systems: a file of predictions, a
file of references, a folder of pictures; no model, no accelerator.

    python -m evil_jax.main --mode=human --config=human:vqax --workdir=runs/study \\
        --config.evaluate.predictions=predictions.jsonl --config.evaluate.references=references.jsonl \\
        --config.data.images=PICTURES                                # draws the sample, into runs/study/human/
    python -m evil_jax.main --mode=human --config=human:vqax --workdir=runs/study --config.human.step=serve
    python -m evil_jax.main --mode=human --config=human:vqax --workdir=runs/study --config.human.step=score
    python -m evil_jax.main --mode=human --config=human:vqax --config.human.step=power     # how many people it takes

The argument is the data set. More systems: --config.evaluate.systems="('theirs=theirs.jsonl',)". Instead of our server:
--config.human.step=export --config.human.to=mturk (label_studio, potato), and what comes back is named in
--config.human.ratings for the step score. Needs `pip install 'evil_jax[human]'`. A rater takes about a quarter of an
hour for a page of ten; the paper asked three of them for each page, for 300 examples of each system.
"""

from evil_jax import config as config_lib


def get_config(arg=None):
    """Argument: data set."""
    return config_lib.without_model(arg, data='vqax')[1]
