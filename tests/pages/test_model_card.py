"""The model card: what is in it, and that no text of a run is syntax there."""

import yaml

from evil_jax.pages import model_card

STRANGE = 'a "b": {c}\n---\n[d] \\ `e` <script> \x00 \x85 \u2028 \U0001f600 #f'


def document(**more):
    trained = {'data.builder': 'shapes_ve', 'model.dtype': 'float32', 'optim.lr': 1e-3}
    return {
        'task': {'name': 'uniter'}, 'expl': {'name': 'gpt2'}, 'encoding': {'choices': 0}, 'trained': trained, 'step': 7,
    } | more  # fmt: skip


def scores(**more):
    score = {'value': 0.90833, 'n': 120, 'signature': 'metric:s_t|bs:1000', 'ci95': [0.85, 0.96]}
    absent = {'value': None, 'n': 0, 'signature': 'metric:meteor', 'reason': 'no Java'}
    return {'schema': 1, 'evil': {'all': {'s_t': score | more, 'meteor': absent}, 'class=neutral': {'s_t': score}}}


def front(text):
    start, matter, body = text.split('---\n', 2)
    assert start == ''
    return yaml.safe_load(matter), body


def test_scores_settings_and_licence_are_in_it():
    matter, body = front(model_card.readme(document(), scores()))
    assert matter['license'] == 'apache-2.0'
    assert matter['library_name'] == 'transformers'
    results = matter['model-index'][0]['results']
    assert [m['value'] for r in results for m in r['metrics']] == [0.90833]  # of all examples
    assert '| evil | all | s&#95;t | 0.9083 | 0.8500 to 0.9600 | 120 |' in body
    assert 'metric:s_t|bs:1000' in body
    assert 'class=neutral' in body
    assert 'meteor' not in body
    assert 'optim.lr = 0.001' in body
    assert 'step = 7' in body


def test_what_was_scored_is_said():
    decode = {'method': 'beam', 'condition': 'gold', 'beams': 4}
    found = {'split': 'dev_x', 'examples': 120, 'decode': decode}
    matter, body = front(model_card.readme(document(scored=found), scores()))
    assert matter['model-index'][0]['results'][0]['dataset']['split'] == 'dev_x'
    assert 'Split dev&#95;x, 120 examples. Decoded with beams = 4, condition = "gold", method = "beam".' in body
    _, body = front(model_card.readme(document(scored=found), None))
    assert 'Split' not in body


def test_a_card_without_scores_says_so():
    matter, body = front(model_card.readme(document(), None))
    assert 'model-index' not in matter
    assert 'no scores of this checkpoint' in body


def test_real_data_has_terms_of_its_own():
    real = document(trained={'data.builder': 'vqax'})
    matter, _ = front(model_card.readme(real, None))
    assert matter['license'] == 'other'
    assert matter['license_link'] == 'LICENSE.md'
    assert 'COCO pictures' in model_card.licence(real)
    assert 'COCO' not in model_card.licence(document())


def test_a_pair_of_two_runs_is_told():
    other = {'trained': {'data.builder': 'vqax', 'model.dtype': 'bfloat16', 'optim.lr': 0.5}, 'step': 3, 'data': 'abc'}
    pair = document(task_run=other)
    matter, body = front(model_card.readme(pair, None))
    explaining, answering = body.split('The half that answers, which comes from another run:')
    assert 'The half that explains:' in explaining and 'optim.lr = 0.001' in explaining and 'step = 7' in explaining
    assert all(line in answering for line in ('optim.lr = 0.5', 'step = 3', 'data = "abc"', 'scored in bfloat16'))
    assert body.count('```') == 6  # three blocks
    assert matter['license'] == 'other' and matter['tags'][-2:] == ['shapes_ve', 'vqax']
    assert 'COCO pictures' in model_card.licence(pair) and 'shapes&#95;ve and VQA-X' in model_card.licence(pair)
    assert 'half that' not in model_card.readme(document(), None)


def test_texts_are_not_syntax():
    assert yaml.safe_load('key: ' + model_card.yaml({'x': [STRANGE, 1, None, True]})) == {
        'key': {'x': [STRANGE, 1, None, True]}
    }
    strange = document(trained={'data.builder': STRANGE, 'x': STRANGE})
    matter, body = front(model_card.readme(strange, scores(signature=STRANGE) | {STRANGE: scores()['evil']}))
    assert matter['tags'][-1] == STRANGE
    assert body.count('```') == 6  # three blocks
    assert '<script>' not in '\n'.join(body.split('```')[::2])
    assert '\n---\n' not in body
    assert '\n' not in model_card.plain(STRANGE)
