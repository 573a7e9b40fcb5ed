"""Sources of e-SNLI-VE as they are published, small, in which a test plants errors before they are merged."""

import csv
import json

from evil_jax.construction import merge, pairs

CLASSES = pairs.CLASSES
PICTURES = [str(100 + i) for i in range(10)]  # 2 of test, then 2 of dev, of the end of trainval; 105 is in no list
TEST, TRAINVAL = PICTURES[:2], [*PICTURES[2:5], *PICTURES[6:]]
SPLIT = dict.fromkeys(TEST, 'test') | dict.fromkeys(TRAINVAL[:5], 'train') | dict.fromkeys(TRAINVAL[5:], 'dev')


def snli_row(picture, caption, label, **changed):
    pair_id = f'{picture}.jpg#{caption}r1{label[0]}'
    return {
        'gold_label': label, 'pairID': pair_id, 'captionID': f'{picture}.jpg#{caption}',
        'sentence1': f'Caption {caption} of {picture}.', 'sentence2': f'Claim {label} of {picture} and {caption}.',
    } | changed  # fmt: skip


def esnli_row(row, **changed):
    return {
        'pairID': row['pairID'], 'gold_label': row['gold_label'], 'Sentence1': row['sentence1'],
        'Sentence2': row['sentence2'], 'Explanation_1': f'Why {row["pairID"]}.', 'Explanation_2': '',
        'Sentence1_marked_1': row['sentence1'].replace('Caption', '*Caption*'), 'Sentence2_marked_1': row['sentence2'],
    } | changed  # fmt: skip


class World:
    """Files as published, to be changed before they are merged."""

    def __init__(self, folder):
        self.folder = folder
        self.rows = [snli_row(picture, i, label) for picture in PICTURES for i in range(2) for label in CLASSES]
        self.explained = [esnli_row(row) for row in self.rows]
        self.captions = {picture: [f'Caption {i} of {picture} .' for i in range(5)] for picture in PICTURES}
        self.lists = {'trainval': TRAINVAL, 'test': TEST}
        self.told = []

    def sources(self, **changed):
        # SNLI's own splits are not those of the pictures.
        half, files = len(self.rows) // 2, {'pairs': [], 'explanations': []}
        for name, rows in (('snli_1.0_dev.jsonl', self.rows[:half]), ('snli_1.0_train.jsonl', self.rows[half:])):
            files['pairs'].append(self.write(name, ''.join(json.dumps(row) + '\n' for row in rows)))
        for name, rows in (('esnli_train_1.csv', self.explained[::2]), ('esnli_dev.csv', self.explained[1::2])):
            path = self.folder / name
            with open(path, 'w', encoding='utf-8', newline='') as file:
                table = csv.DictWriter(file, list(self.explained[0]))
                table.writeheader()
                table.writerows(rows)
            files['explanations'].append(path)
        token = (f'{p}.jpg#{i}\t{text}\n' for p, texts in self.captions.items() for i, text in enumerate(texts))
        lists = (f'{name}={self.write(f"{name}.lst", chr(10).join(part))}' for name, part in self.lists.items())
        files['splits'] = merge.parse_splits(','.join(lists))
        return merge.Sources(captions=self.write('captions.token', ''.join(token)), **files | changed)

    def merge(self, sources=None, **settings):
        settings = {'dev_images': 2, 'allow': ('duplicates',), 'max_mismatch': 0.2} | settings
        return merge.merge(sources or self.sources(), self.folder / 'out', tell=self.told.append, **settings)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding='utf-8')
        return self.folder / name

    def merged(self):
        return {pair.id: pair for pair in pairs.read(self.folder / 'out' / 'merged.jsonl')}

    def dropped(self):
        return [json.loads(line) for line in open(self.folder / 'out' / 'dropped.jsonl', encoding='utf-8')]
