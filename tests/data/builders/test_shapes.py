import json

import pytest

from evil_jax.data import shapes
from evil_jax.data.builders import shapes_ve, shapes_vqa


@pytest.mark.parametrize('builder', [shapes_ve.Builder, shapes_vqa.Builder], ids=lambda b: b.form)
def test_examples_know_their_scene(builder, tmp_path):
    raw = tmp_path / 'raw'
    shapes.write_world(builder.form, raw, counts={'train': 12, 'dev': 0, 'test': 5}, seed=1)
    files = builder.files(raw)
    found = {split: list(builder.read(value)) for split, value in files.items()}
    assert {split: len(examples) for split, examples in found.items()} == {'train': 12, 'test': 5}
    rows = map(json.loads, (raw / 'scenes.jsonl').read_text().splitlines())
    scenes = {row['image_id']: row['scene'] for row in rows}
    for example in found['train'] + found['test']:
        assert (raw / 'images' / f'{example.image_id}.png').is_file()
        assert len(example.explanations) == 3
        assert example.extra['scene'] == scenes[example.image_id]
        assert {'objects', 'words'} <= set(example.extra)
    (raw / 'truth.jsonl').write_text('{"id": "other"}\n')
    with pytest.raises(ValueError, match=r"truth\.jsonl: has no row of '.*', which example '.*' needs"):
        list(builder.read(files['test']))
    (raw / 'truth.jsonl').write_text('{"id": "other"}\n{"x": 1}\n')
    with pytest.raises(ValueError, match=r"truth\.jsonl:2: has no 'id', only x"):
        list(builder.read(files['test']))
    (raw / 'scenes.jsonl').unlink()
    with pytest.raises(ValueError, match=r'has no scenes\.jsonl, so it is not the built-in world'):
        builder.files(raw)
