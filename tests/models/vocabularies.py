"""Vocabularies of no words: enough to build a model with."""

import types


class Vocabulary:
    size, rows, type_ids = 46, 50, (46, 47, 48, 49)

    def __len__(self):
        return 40

    def id(self, token):
        return 1


ASSETS = types.SimpleNamespace(word=Vocabulary(), expl=Vocabulary(), answers=('yes', 'no'))
