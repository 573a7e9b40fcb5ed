"""What a PyTorch user gets from exported folders: `python export_probe.py CASE ...`, without evil_jax and without JAX.

A case is a folder with export/, examples.json (what is asked) and regions.npz; found.npz and found.json are written.
"""

import json
import pathlib
import sys

import numpy as np

WITHOUT = ('jax', 'jaxlib', 'flax', 'evil_jax')


class Absent:
    """Finds that there are no such packages, whatever is installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in WITHOUT:
            raise ModuleNotFoundError(f'no module named {name!r}', name=name)


sys.path = [path for path in sys.path if path and not (pathlib.Path(path) / 'evil_jax').exists()]
sys.meta_path.insert(0, Absent())


def regions_of(model, arrays, number, names):
    kind = sys.modules[type(model.processor).__module__].Regions
    found = {key.partition('.')[2]: arrays[key] for key in arrays if key.startswith(f'{number}.')}
    return kind(**found | {'size': tuple(found['size'].tolist()), 'names': names}) if found else None


def alone(model, batch, tokens, index, folder):
    """What transformers' own classes say, of the sub-folders: rows of GPT-2 are tokens where it reads no memory."""
    import torch
    from transformers import AutoModelForMultipleChoice, AutoModelForSequenceClassification, GPT2LMHeadModel

    name = 'choices' if 'choices' in batch else 'text'
    kind = AutoModelForMultipleChoice if name == 'choices' else AutoModelForSequenceClassification
    ids, types, length = batch[name], batch[f'{name}_type'], batch[f'{name}_length']
    mask = torch.arange(ids.shape[-1]) < length[..., None]
    answering = kind.from_pretrained(folder / 'task').eval()
    kinds = {'token_type_ids': types.clamp(max=1)} if model.config.task['types'] else {}
    logits = answering(input_ids=ids, attention_mask=mask.long(), **kinds).logits
    explaining, scored = GPT2LMHeadModel.from_pretrained(folder / 'expl').eval(), []
    answer, answer_length = model.processor.condition(batch, index)
    for row in range(len(tokens)):
        pieces = [(batch['objects'], batch['objects_length'], 0)] if 'objects' in batch else []
        pieces += [(batch['question'], batch['question_length'], 1), (answer, answer_length, 2)]
        pieces = [(piece[row, : length[row]], kind) for piece, length, kind in pieces] + [(tokens[row], 3)]
        ids = torch.cat([piece for piece, _ in pieces])[None]
        types = torch.cat([torch.full_like(piece, model.config.expl['types'][kind]) for piece, kind in pieces])[None]
        scored.append(explaining(ids, token_type_ids=types).logits[0, -len(tokens[row]) :])
    return {'task_alone': logits.numpy(), 'expl_alone': torch.stack(scored).numpy()}


def probe(case):
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = case / 'export'
    model = AutoModel.from_pretrained(folder, trust_remote_code=True)
    arrays, examples = np.load(case / 'regions.npz'), json.loads((case / 'examples.json').read_text())
    rows = [
        model.processor(regions=regions_of(model, arrays, n, example['names']), **example['ask'])
        for n, example in enumerate(examples)
    ]
    batch = model.processor.batch(rows)
    found = {f'batch.{name}': value.numpy() for name, value in batch.items()}
    with torch.no_grad():
        found['logits'] = model(**batch).logits.numpy()
        found['alone'] = model(**{name: value[None] for name, value in rows[0].items()}).logits.numpy()
        if model.expl is not None:
            tokens = torch.cat([model.processor.explanation(example['explanation'])[:, :8] for example in examples])
            index = torch.arange(len(rows)) % found['logits'].shape[-1]
            scored = model(**batch, explanation=tokens, answer=index)
            found['explanation_logits'] = scored.explanation_logits.numpy()
        found |= (
            alone(model, batch, tokens, index, folder) if model.config.task['name'] == 'bert' and model.expl else {}
        )
    np.savez(case / 'found.npz', **found)
    pieces = AutoTokenizer.from_pretrained(folder, subfolder='expl')
    words = AutoTokenizer.from_pretrained(folder / 'task')
    plain = [example['explanation'] for example in examples]
    document = {
        'explained': [vars(row) for row in model.explain(batch)],
        'words': [words(text)['input_ids'] for text in plain],
        'pieces': [pieces(text)['input_ids'] for text in plain],
        'markers': pieces.convert_tokens_to_ids(['<|b_qn|>', '<|e_rtnl|>', '<|det44|>']),
    }
    (case / 'found.json').write_text(json.dumps(document))


if __name__ == '__main__':
    for argument in sys.argv[1:]:
        probe(pathlib.Path(argument))
    assert not [name for name in WITHOUT if name in sys.modules]
