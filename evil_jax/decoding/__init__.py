"""Turning an explanation module's logits into tokens: greedy, sampling, beam search over prefill/extend."""
