"""evil_jax: vision-language models that explain their answers in words, and tests of those explanations."""

__version__ = '0.1.0'
