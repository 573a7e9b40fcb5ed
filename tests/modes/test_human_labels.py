"""--mode=human of a study that asks for labels: export, and score of the files that come back."""

import json

import pytest

from evil_jax import config as config_lib
from evil_jax.construction import relabel
from evil_jax.human import label_form, labelling, labels
from evil_jax.human.labelling import Asked
from evil_jax.modes import human


def test_labels_are_scored_and_the_construction_reads_them(tmp_path, capsys):
    folder = tmp_path / 'human'
    folder.mkdir()
    asked = [Asked(f'{i}.jpg#0r0n', str(i), 'A dog is running in the snow.', 'neutral') for i in range(3)]
    study = labelling.make(asked, folder, trusted=[Asked('k', 'k', 'A bird flies.', 'entailment')], page_items=4)
    [page] = study.pages
    rows = []
    for rater, choice in (('a', '0'), ('b', '0'), ('c', '1')):
        fields = {f'c{k}': [str(item.gold) if item.trusted else choice] for k, item in enumerate(study.of(page), 1)}
        fields |= {f'{k}-x': ['because of it'] for k in range(1, 5)}
        answers = label_form.parse(fields, study, page)
        rows += label_form.rows(study, page, answers, rater=rater, assignment=rater)
    labels.write(tmp_path / 'in.csv', tmp_path / 'in.jsonl', rows)
    config = config_lib.base()
    config.human.update(step='score', ratings=str(tmp_path / 'in.csv'))
    config.evaluate.bootstrap = 20
    numbers = human.run(config, tmp_path)
    assert (numbers['items'], numbers['changed'], numbers['no_majority']) == (3, 3, 0)
    assert '9 of 12 labels count; left out: 3 trusted item' in capsys.readouterr().out
    assert json.loads((folder / 'results.json').read_text())['table'] == {'neutral': {'entailment': 3}}
    votes = relabel.read(folder / 'labels.csv').votes
    assert votes == relabel.read(folder / 'labels.jsonl').votes and len(votes) == 3
    assert [vote.label for vote in votes[asked[0].id]] == ['entailment', 'entailment', 'neutral']
    config.human.step = 'power'
    with pytest.raises(ValueError, match=r'asks for labels; human.step=power is about ratings'):
        human.run(config, tmp_path)
    config.human.step = 'score'
    other = [Asked('other', '9', 'A dog is running in the snow.', 'neutral')]
    labelling.make(other, tmp_path / 'b' / 'human')
    with pytest.raises(ValueError, match=r'nothing of what .* asks is labelled there'):
        human.run(config, tmp_path / 'b')
