import json
import re

import pytest

from evil_jax.training import log


def test_one_line_a_record_and_null_for_what_is_no_number(tmp_path):
    journal = log.Log(tmp_path, steps=10, batch=4)
    journal.write(5, 'train', {'loss': 1.5, 'norm': float('nan')})
    journal.write(5, 'dev', {'s_t': 0.25})
    journal.advance(5)
    journal.close()
    text = (tmp_path / 'metrics.jsonl').read_text()
    assert json.loads(text.splitlines()[0]) == {'step': 5, 'split': 'train', 'loss': 1.5, 'norm': None}
    assert json.loads(text.splitlines()[1]) == {'step': 5, 'split': 'dev', 's_t': 0.25}
    assert list((tmp_path / 'tb').iterdir())


def test_a_resumed_run_doubles_nothing(tmp_path):
    path = tmp_path / 'metrics.jsonl'
    path.write_text(''.join(json.dumps({'step': s, 'split': 'train'}) + '\n' for s in (10, 20, 30)) + '{"step": 3')
    journal = log.Log(tmp_path, steps=40, start=20)
    journal.write(30, 'train', {})
    journal.close()
    assert [json.loads(line)['step'] for line in path.read_text().splitlines()] == [10, 20, 30]


def test_a_log_file_gets_lines_instead_of_a_bar(tmp_path, capsys):
    journal = log.Log(tmp_path, steps=40, batch=8)
    journal.show(10, loss=1.25)
    assert re.fullmatch(r'step 10/40: ex/s \d+, loss 1.25, 0 min left\n', capsys.readouterr().out)
    journal.restart_clock(11)
    journal.show(11, loss=1.25)
    journal.close()
    assert capsys.readouterr().out == 'step 11/40: loss 1.25\n', 'nothing can be said of the speed yet'


def test_only_one_process_writes(tmp_path):
    journal = log.Log(tmp_path, steps=10, active=False)
    journal.write(1, 'train', {'loss': 1.0})
    journal.advance(1)
    journal.show(1, loss=1.0)
    journal.say('nothing')
    journal.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('step', [0, 5])
def test_cutting_a_file_that_is_not_there(tmp_path, step):
    log.cut_after(tmp_path / 'metrics.jsonl', step)
    assert not list(tmp_path.iterdir())
