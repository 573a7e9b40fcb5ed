import collections
import gzip
import json

import pytest

from evil_jax.data.sources import esnli, esnli_lines, flickr30k, snli

SNLI = {
    'annotator_labels': ['neutral'], 'captionID': '33.jpg#4', 'gold_label': 'neutral', 'pairID': '33.jpg#4r1n',
    'sentence1': 'A dog runs .', 'sentence2': 'It is "late".',
}  # fmt: skip


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_forms_of_snli(tmp_path):
    forms = {
        'a.jsonl': json.dumps(SNLI),
        'b.jsonl': gzip.compress(json.dumps(SNLI | {'Flickr30K_ID': '33'}).encode()),
        'c.jsonl': json.dumps(SNLI | {'Flickr30kID': '33.jpg', 'pairID': 'other'}),
        'd.jsonl': json.dumps(SNLI | {'Flickr30K_ID': 33}),
        'e.txt': '\t'.join(list(SNLI)[1:]) + '\r\n' + '\t'.join(list(SNLI.values())[1:]) + '\r\n',
    }
    for name, text in forms.items():
        path = write(tmp_path / name, text)
        (row,) = snli.read(path)
        line = 2 if name == 'e.txt' else 1
        pair_id = 'other' if name == 'c.jsonl' else '33.jpg#4r1n'
        wanted = (pair_id, 'neutral', 'A dog runs .', 'It is "late".', '33', '33.jpg#4', f'{path}:{line}')
        assert row == snli.Row(*wanted)
        assert not row.genome
    (row,) = snli.read(write(tmp_path / 'g', json.dumps(SNLI | {'pairID': 'vg_len9r1n', 'gold_label': '-'})))
    assert row.genome
    assert row.image_id == ''
    assert row.label == snli.UNLABELLED


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (json.dumps(SNLI | {'gold_label': 'maybe'}), "file:1: gold_label is 'maybe', wanted one of contradiction"),
        (json.dumps(SNLI | {'pairID': '33#4'}), "file:1: pairID '33#4' names no picture"),
        (json.dumps(SNLI | {'sentence2': ' '}), 'file:1: sentence2 is empty'),
        (json.dumps(SNLI) + '\n{"pairID": "1"}', "file:2: has no 'sentence2'"),
        ('gold_label\tpairID\n', 'file:1: is neither JSON lines nor a table .* no captionID'),
        ('\t'.join(SNLI) + '\nneutral\n', 'file:2: has 1 cells, wanted 6'),
        ('', 'file: is empty'),
    ],
)
def test_malformed_snli(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        list(snli.read(write(tmp_path / 'file', text)))


ESNLI = (
    'pairID,WorkerId,gold_label,Sentence1,Sentence2,Explanation_1,Sentence1_marked_1,Sentence2_marked_1,'
    'Sentence1_Highlighted_1,Sentence2_Highlighted_1,Explanation_2,Explanation_3\n'
    '1.jpg#0r1n,A1,neutral,"A dog, and a cat.",It sleeps.,"It need\nnot sleep.","A *dog,* and *a cat*.",It *sleeps.*,'
    '1,2,,A third one.\n'
    '2.jpg#0r1e,A1,entailment,A.,B.,,A.,B.,,,,\n'
)


def test_esnli(tmp_path):
    path = write(tmp_path / 'e.csv', ESNLI)
    first, second = esnli.read(path)
    assert first == esnli.Row(
        '1.jpg#0r1n', 'neutral', 'A dog, and a cat.', 'It sleeps.', ['It need\nnot sleep.', 'A third one.'],
        (['dog,', 'a', 'cat'], ['sleeps.']), f'{path}:2',
    )  # fmt: skip
    assert (second.explanations, second.marked, second.where) == ([], ([], []), f'{path}:4')


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('Explanation_1,', 'Reason,', 'e.csv:1: has no column Explanation_1; it has: pairID'),
        ('neutral', 'none', "e.csv:2: gold_label is 'none'"),
        (',,,,\n', ',,,\n', 'e.csv:4: has 11 cells, wanted 12'),
        ('2.jpg#0r1e', '', 'e.csv:4: pairID is empty'),
    ],
)
def test_malformed_esnli(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        list(esnli.read(write(tmp_path / 'e.csv', ESNLI.replace(old, new))))


def lines_of(folder, **changed):
    texts = {
        'esnli_s1': 'A dog . \nA cat . \n', 'esnli_s2': 'It runs . \nIt sleeps . \n',
        'esnli_labels': 'neutral\nentailment', 'esnli_preproc1_expl_1': 'it need not .\n\n',
        'esnli_preproc1_expl_3': 'why ?\nso .',
    }  # fmt: skip
    for name, text in (texts | changed).items():
        if text is not None:
            write(folder / f'{name}.dev', text)
    return folder / 'esnli_s1.dev'


def test_lines_of_esnli(tmp_path):
    path = lines_of(tmp_path)
    assert [(r.id, r.label, r.premise, r.hypothesis, r.explanations) for r in esnli_lines.read(path)] == [
        ('esnli.dev:1', 'neutral', 'A dog .', 'It runs .', ['it need not .', 'why ?']),
        ('esnli.dev:2', 'entailment', 'A cat .', 'It sleeps .', ['so .']),
    ]
    assert len(esnli_lines.files(path)) == 5


def test_misaligned_lines_name_both_files_and_numbers(tmp_path):
    path = lines_of(tmp_path, esnli_preproc1_expl_3='one\ntwo\nthree\nfour\n')
    with pytest.raises(ValueError, match=r'esnli_s1.dev has 2 lines, and .*esnli_preproc1_expl_3.dev has 4: line n'):
        list(esnli_lines.read(path))
    with pytest.raises(ValueError, match=r'esnli_labels.dev has 1 lines, and .*esnli_s1.dev has 2'):
        list(esnli_lines.read(lines_of(tmp_path, esnli_labels='neutral', esnli_preproc1_expl_3='a\nb')))
    with pytest.raises(ValueError, match=r"esnli_labels.dev:2: the label is 'so'"):
        list(esnli_lines.read(lines_of(tmp_path, esnli_labels='neutral\nso')))
    (tmp_path / 'esnli_s2.dev').unlink()
    with pytest.raises(ValueError, match=r'esnli_s2.dev: there is no such file, which belongs to'):
        list(esnli_lines.read(path))


def test_published_lines_and_lists(shared):
    folder = shared / 'data' / 'snli'
    counts = collections.Counter(row.label for row in esnli_lines.read(folder / 'esnli_s1.dev'))
    assert counts == {'entailment': 3_329, 'contradiction': 3_278, 'neutral': 3_235}
    assert len(flickr30k.image_ids(folder / 'flickr30k_train_val.lst')) == 30_783
    assert flickr30k.image_ids(folder / 'flickr30k_test.lst')[0] == '1016887272'


TOKEN = '10.jpg#1\tTwo, "men" | talk .\n10.jpg#0\tA man .\n9.jpg#0\tA dog .\n'
WANTED = {'10': ['A man .', 'Two, "men" | talk .'], '9': ['A dog .']}


@pytest.mark.parametrize(
    'text',
    [
        TOKEN,
        # One published line lacks its second bar.
        'image_name| comment_number| comment\n10.jpg| 1| Two, "men" | talk .\n10.jpg| 0| A man .\n9.jpg| 0   A dog .\n',
        'raw,filename,split\n"[""A man ."", ""Two, \\""men\\"" | talk .""]",10.jpg,train\n"[""A dog .""]",9.jpg,test\n',
        'image,caption\n10.jpg,A man .\n10.jpg,"Two, ""men"" | talk ."\n9.jpg,A dog .\n',
        json.dumps(
            {
                'images': [
                    {'filename': f'{name}.jpg', 'sentences': [{'raw': text} for text in texts]}
                    for name, texts in WANTED.items()
                ]
            }
        ),
    ],
    ids=['token', 'bars', 'raw', 'caption', 'json'],
)
def test_forms_of_captions(tmp_path, text):
    assert flickr30k.captions(write(tmp_path / 'captions', text)) == WANTED


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (TOKEN.replace('#1', '#0'), 'captions:2: picture 10 has caption 0 twice'),
        (TOKEN.replace('#1', '#2'), r'captions: picture 10 has captions 0, 2, wanted all from 0 on'),
        (TOKEN.replace('A dog .', ''), 'captions:3: caption 0 of picture 9 is empty'),
        (TOKEN.replace('9.jpg#0\t', '9.jpg#0 '), r"captions:3: is '9.jpg#0 A dog .', wanted 'NUMBER.jpg#0<tab>text'"),
        ('a,b\n1,2\n', 'captions:1: no captions of Flickr30k: .*found a, b'),
        ('', 'captions: has no captions'),
        ('filename,raw\n1.jpg,no list\n', 'captions:2: raw: not JSON'),
    ],
)
def test_malformed_captions(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        flickr30k.captions(write(tmp_path / 'captions', text))


def test_lists_of_pictures(tmp_path):
    assert flickr30k.image_ids(write(tmp_path / 'l', 'a/1.jpg\r\n\n2')) == ['1', '2']
    with pytest.raises(ValueError, match="l:3: picture '1' was already in line 1"):
        flickr30k.image_ids(write(tmp_path / 'l', '1\n2\n1.jpg\n'))
    with pytest.raises(ValueError, match='l: has no pictures'):
        flickr30k.image_ids(write(tmp_path / 'l', '\n'))
