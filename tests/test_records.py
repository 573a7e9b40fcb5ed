"""Records and their files: what goes in comes out; what is wrong is named by file and line."""

import errno
import fcntl
import json
import os
import re
import subprocess
import sys

import pytest

from evil_jax import records
from evil_jax.records import Example, Prediction, Score


def test_round_trip(tmp_path):
    rows = [
        Example(
            '1', 'COCO_1', 'What is it?', answers={'dog': 0.9}, annotations=['dog'] * 10, explanations=['it barks']
        ),
        Example('2', 'x', 'ein Zitat: "ä"', choices=['a', 'a'], label=1, objects=['person'], extra={'k': [1, None]}),
    ]
    records.write_jsonl(tmp_path / 'e.jsonl', rows)
    assert records.read_jsonl(tmp_path / 'e.jsonl', Example) == rows
    assert 'label' not in json.loads((tmp_path / 'e.jsonl').read_text().splitlines()[0])
    said = [Prediction('1', 'dog', answer_scores={'dog': 0.5}, condition='gold', explanation='x', explanation_ids=[1])]
    records.write_jsonl(tmp_path / 'p.jsonl', said)
    assert records.read_jsonl(tmp_path / 'p.jsonl', Prediction) == said


def test_what_a_file_of_predictions_may_not_say(tmp_path):
    said = [Prediction('1', None, explanation='x'), Prediction('2', 'dog', explanation=None), Prediction('3', '')]
    records.write_jsonl(tmp_path / 'p.jsonl', said)
    assert records.read_jsonl(tmp_path / 'p.jsonl', Prediction) == said
    lines = [json.loads(line) for line in (tmp_path / 'p.jsonl').read_text().splitlines()]
    assert lines[0]['answer'] is None and lines[1]['explanation'] is None
    assert Prediction.from_json({'id': '4', 'answer': None}) == Prediction('4', None, explanation='')
    with pytest.raises(ValueError, match="field 'id' is None, wanted str"):
        Prediction.from_json({'id': None})
    with pytest.raises(ValueError, match="field 'text' is None, wanted str"):
        Example.from_json({'id': '1', 'image_id': '1', 'text': None})


@pytest.mark.parametrize(
    ('line', 'hint'),
    [
        ('{"id": "1"', 'p.jsonl:2: '),
        ('[1]', 'p.jsonl:2: wanted a JSON object, found list'),
        ('{"answer": "x"}', "p.jsonl:2: missing field 'id'"),
        ('{"id": "2", "answer": 3}', "p.jsonl:2: field 'answer' is 3"),
        ('{"id": "2", "answer": "a", "anwser": 1}', "p.jsonl:2: unknown field 'anwser'"),
        ('{"id": "2", "answer": "a", "condition": "x"}', "p.jsonl:2: condition of '2' is 'x'"),
        ('{"id": "1", "answer": "a"}', "repeats id '1' of record 1"),
    ],
)
def test_bad_line_is_named(tmp_path, line, hint):
    (tmp_path / 'p.jsonl').write_text('{"id": "1", "answer": "yes"}\n' + line + '\n')
    with pytest.raises(ValueError, match=re.escape(hint)):
        records.read_jsonl(tmp_path / 'p.jsonl', Prediction)


def test_write_is_atomic(tmp_path):
    path = tmp_path / 'a.json'
    records.write_json(path, {'x': 1})
    with pytest.raises(ValueError, match='nan'):
        records.write_json(path, {'x': float('nan')})
    assert json.loads(path.read_text()) == {'x': 1}
    assert [p.name for p in tmp_path.iterdir()] == ['a.json']


def test_files_that_appear_together_or_not_at_all(tmp_path):
    paths = [tmp_path / 'a', tmp_path / 'new' / 'b']
    with records.atomic_files(*paths) as (a, b):
        a.write(b'one')
        b.write(b'two')
        b.seek(0)
        assert b.read() == b'two' and not any(path.exists() for path in paths)
    with pytest.raises(KeyboardInterrupt), records.atomic_files(*paths) as (a, b):
        a.write(b'three')
        raise KeyboardInterrupt
    assert [path.read_text() for path in paths] == ['one', 'two']
    assert {path.name for path in tmp_path.rglob('*')} == {'a', 'new', 'b'}


def test_a_full_disk_leaves_nothing(tmp_path):
    code = (
        'import pathlib, resource, signal, sys; from evil_jax import records\n'
        'resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n'
        'with records.atomic_files(*sys.argv[1:]) as (a, b):\n'
        '    a.write(b"x"); b.write(b"y" * (1 << 16) + b"z")\n'
    )
    run = subprocess.run(
        [sys.executable, '-c', code, str(tmp_path / 'a'), str(tmp_path / 'b')], capture_output=True, text=True
    )
    assert run.returncode == 1 and f'{tmp_path}/a, {tmp_path}/b' in run.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    code = (
        'import os, sys; from evil_jax import records\n'
        'with records.atomic_files(*sys.argv[1:]) as (a, b):\n'
        '    a.write(b"x"); a.flush(); os._exit(9)\n'
    )
    for name in ('a.csv', '.a.csv.mine', '.a.csvv.12345678', 'b'):
        (tmp_path / name).write_text(name)
    subprocess.run([sys.executable, '-c', code, str(tmp_path / 'a.csv'), str(tmp_path / 'b')], check=False)
    assert len(list(tmp_path.iterdir())) == 6
    records.remove_leftovers(tmp_path / 'a.csv', tmp_path / 'b', tmp_path / 'nowhere' / 'c')
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: name for name in ('a.csv', '.a.csv.mine', '.a.csvv.12345678', 'b')
    }


def test_score_without_value_needs_a_reason():
    with pytest.raises(ValueError, match='needs a reason'):
        Score(None)
    assert Score(None, reason='no Java').to_json() == {'value': None, 'n': 0, 'signature': '', 'reason': 'no Java'}


def test_a_lock_keeps_others_out_until_its_end(tmp_path):
    path = tmp_path / 'new' / '.lock'
    with records.locked(path, 'somebody works here'):
        assert path.read_text() == str(os.getpid())
        with pytest.raises(ValueError, match=rf'somebody works here \(process {os.getpid()} holds .*\.lock'):
            with records.locked(path, 'somebody works here'):
                pass
    assert not list((tmp_path / 'new').iterdir())
    with pytest.raises(KeyboardInterrupt), records.locked(path, ''):
        raise KeyboardInterrupt
    with records.locked(path, ''):
        pass


def test_a_lock_dies_with_its_process(tmp_path):
    code = (
        'import os, sys; from evil_jax.records import locked; x = locked(sys.argv[1], ""); x.__enter__(); os._exit(9)'
    )
    path = tmp_path / '.lock'
    assert subprocess.run([sys.executable, '-c', code, str(path)]).returncode == 9
    assert path.exists()
    with records.locked(path, 'dead'):
        pass


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, 'Function not implemented')

    monkeypatch.setattr(fcntl, 'flock', refuse)
    with pytest.warns(UserWarning, match='has no locks'), records.locked(tmp_path / '.lock', ''):
        pass
