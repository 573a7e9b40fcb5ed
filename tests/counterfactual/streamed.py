"""Writes, answers and judges many edits, and prints the largest memory in MB after each step (for test_exchange.py)."""

import json
import pathlib
import resource
import sys

from evil_jax.counterfactual import exchange, judging, score
from evil_jax.counterfactual.edits import FAMILIES, Edit
from evil_jax.records import Example


def example(number: int) -> Example:
    """Three about each picture."""
    return Example(
        f'{number:08}', str(number // 3), f'What is dog number {number}?', annotations=['red'] * 8 + ['blue'] * 2
    )


def edits(example: Example) -> list[Edit]:
    text = example.text.replace('dog', 'wolf')
    return [
        Edit(
            f'{example.id}#{family}', example.id, example.image_id, family, example.text, text, (8, 11), (8, 12), 'dog',
            'wolf', 'dog', 'wolf', 'dog.n.01', 'wolf.n.01', 'lexicon', 1, 7, 'first', 0.33, frequency=(42, 3),
            lemma_rule='base', tagger='heuristic', role='head', asks='what', quality=0.5, preset='default',
        )
        for family in FAMILIES
    ]  # fmt: skip


class Examples:
    def get(self, identifier: str) -> Example:
        return example(int(identifier))


def main(folder: pathlib.Path, count: int) -> None:
    used = {}
    mark = lambda step: used.setdefault(step, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    asked = exchange.write(folder, map(example, range(count // len(FAMILIES))), edits)
    mark('write')
    with open(folder / 'answers', 'w') as file:
        for number, row in enumerate(asked.rows()):
            answer = ('red', 'blue', 'green')[number % 3]
            file.write(json.dumps({'id': row['id'], 'answer': answer}) + '\n')
    answers = exchange.read_answers(folder / 'answers', asked)
    mark('read')
    table = judging.judge(asked, answers, Examples())
    mark('judge')
    assert len(table) == count
    score.summary(table)
    mark('score')
    print(json.dumps(used))


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
