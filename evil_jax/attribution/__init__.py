"""Where a model looks: relevance of words, regions and patches for an answer or a word of an explanation."""
