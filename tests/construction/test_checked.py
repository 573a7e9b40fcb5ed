import json

import pytest

from evil_jax.construction import checked


def test_the_sample_of_do_et_al_is_read_as_it_is(shared):
    found = checked.read(shared / 'data' / 'esnlive' / 'do2020_gt_labels.csv')
    assert len(found.verdicts) == 349 and (found.blank, found.repeated) == (0, 1)
    assert found.verdicts['7631372276.jpg#4r2e'] == checked.Verdict('entailment', '')


def test_json_lines_and_csv_say_the_same(tmp_path):
    rows = [('1#c', 'Neutral ', 'LOW'), ('2#c', '', 'high'), ('3#c', '', ''), ('4,"#c', 'entailment', '')]
    lines, table = tmp_path / 'a.jsonl', tmp_path / 'a.csv'
    keyed = [dict(zip(('pairID', 'label', 'quality'), row)) for row in rows]
    lines.write_text('\n'.join(map(json.dumps, keyed)))
    table.write_text(
        'note,quality,pairID,label\n' + ''.join(f'x,{q},"{i.replace(chr(34), chr(34) * 2)}",{w}\n' for i, w, q in rows)
    )
    assert checked.read(lines) == checked.read(table)
    assert checked.read(lines).verdicts == {
        '1#c': checked.Verdict('neutral', 'low'),
        '2#c': checked.Verdict('', 'high'),
        '4,"#c': checked.Verdict('entailment', ''),
    }
    assert checked.read(lines).blank == 1


def test_the_explanation_that_was_checked_is_read_as_a_spreadsheet_leaves_it(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('pairID,explanation,label,quality\n1,"\'=a\nb ",,low\n2,,neutral,\n')
    found = checked.read(path).verdicts
    assert [verdict.explanation for verdict in found.values()] == ['=a b', '']


@pytest.mark.parametrize(
    'content, message',
    [
        ('', r'a\.csv: is empty, wanted a first line with pairID and label'),
        ('pairID,quality\n1,low\n', r"a\.csv:1: has no 'label', only pairID, quality"),
        ('pairID;label\n1;neutral\n', r"a\.csv:1: has no 'pairID', only pairID;label"),
        ('pairID,label,label\n', r'a\.csv:1: a column appears twice'),
        (
            'pairID,label\n1,neutrall\n',
            r"a\.csv:2: label is 'neutrall', wanted contradiction, neutral, entailment or no",
        ),
        ('pairID,label,quality\n1,neutral,bad\n', r"a\.csv:2: quality is 'bad', wanted low, medium, high or nothing"),
        ('pairID,label\n1,\n2,\n', r'a\.csv: no label or quality is filled in \(2 blank rows\)'),
        ('pairID,label\n1,neutral\n\n1,entailment\n', r"a\.csv:4: says something else of pairID '1' than .*a\.csv:2"),
        ('{"pairID": "1"}\n', r"a\.csv:1: has no 'label', only pairID"),
        ('{"pairID": "1", "label": 1}\n', r'a\.csv:1: label is 1, wanted text'),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, content, message):
    path = tmp_path / 'a.csv'
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        checked.read(path)
