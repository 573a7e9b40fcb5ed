"""Files of other people's weights: what is read, and what is refused with one message. Nothing in them is executed."""

import json
import pathlib
import struct
import sys
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evil_jax.interop import weights

A, B = np.arange(6, dtype=np.float32).reshape(2, 3) / 7, np.array([1.5, -2], np.float32)
ARRAYS = {'a': A, 'b': B}


def same(found, wanted=ARRAYS):
    assert found.keys() == wanted.keys()
    for name, x in wanted.items():
        np.testing.assert_array_equal(found[name], x)
        assert found[name].dtype == x.dtype


def tensors(arrays=ARRAYS, dtype=None):
    return {name: torch.from_numpy(x.copy()).to(dtype or torch.float32) for name, x in arrays.items()}


def index(folder, where, name='model.safetensors'):
    (folder / f'{name}.index.json').write_text(json.dumps({'metadata': {}, 'weight_map': where}))


def refused(path, **settings):
    with pytest.raises(ValueError) as error:
        weights.read(path, **settings)
    assert str(path) in str(error.value) or str(path.parent) in str(error.value)
    return str(error.value)


# Kinds of files ------------------------------------------------------------------------------------------------------


def test_a_folder_of_hugging_face(tmp_path):
    weights.write(tmp_path / 'model.safetensors', ARRAYS)
    same(weights.read(tmp_path))
    same(weights.read(tmp_path / 'model.safetensors'))
    from safetensors import safe_open

    with safe_open(tmp_path / 'model.safetensors', 'np') as file:
        assert file.metadata() == {'format': 'pt'}  # older transformers ask for it


def test_shards(tmp_path):
    weights.write(tmp_path / 'model-1.safetensors', {'a': A})
    weights.write(tmp_path / 'model-2.safetensors', {'b': B})
    index(tmp_path, {'a': 'model-1.safetensors', 'b': 'model-2.safetensors'})
    same(weights.read(tmp_path))
    torch.save(tensors({'a': A}), tmp_path / 'p1.bin')
    torch.save(tensors({'b': B}), tmp_path / 'p2.bin')
    index(tmp_path, {'a': 'p1.bin', 'b': 'p2.bin'}, 'pytorch_model.bin')
    (tmp_path / 'model.safetensors.index.json').unlink()
    same(weights.read(tmp_path))


def test_what_is_wrong_with_shards_is_told_at_once(tmp_path):
    weights.write(tmp_path / 'one.safetensors', {'a': A, 'c': B})
    weights.write(tmp_path.parent / 'outside.safetensors', {'b': B})
    index(tmp_path, {'a': 'one.safetensors', 'b': 'one.safetensors', 'd': 'lost', 'e': '../outside.safetensors'})
    told = refused(tmp_path)
    for part in ('one.safetensors has no b', 'has c, which the index has not', "'lost' is no", "'../outside.safete"):
        assert part in told, part
    for content in ('{"weight_map": 3}', '{"weight_map": {}}', '{"weight_map": {"a": 1}}', '{}'):
        (tmp_path / 'model.safetensors.index.json').write_text(content)
        assert 'weight_map is' in refused(tmp_path)
    (tmp_path / 'model.safetensors.index.json').write_text('[')
    assert 'not JSON' in refused(tmp_path)


def test_a_folder_without_weights(tmp_path):
    assert 'has no weights: found nothing; wanted model.safetensors' in refused(tmp_path)
    (tmp_path / 'tf_model.h5').write_bytes(b'x')
    assert 'found tf_model.h5; wanted' in refused(tmp_path)
    assert 'does not exist' in refused(tmp_path / 'lost')


@pytest.mark.parametrize('legacy', [False, True])
def test_files_of_pytorch(tmp_path, legacy):
    path = tmp_path / 'model.pt'
    torch.save(tensors(), path, _use_new_zipfile_serialization=not legacy)
    same(weights.read(path))
    torch.save({f'module.{name}': torch.nn.Parameter(x) for name, x in tensors().items()}, path)
    same(weights.read(path))
    torch.save({'module.a': torch.ones(1), 'b': torch.ones(1)}, path)  # not of all: it is a name
    assert weights.read(path).keys() == {'module.a', 'b'}
    path.rename(tmp_path / 'pytorch_model.bin')
    assert weights.read(tmp_path).keys() == {'module.a', 'b'}


def test_a_checkpoint_that_keeps_other_things_beside(tmp_path):
    path = tmp_path / 'model.pt'
    for key in ('state_dict', 'model_state_dict', 'model'):
        torch.save({'epoch': 3, key: tensors(), 'optimizer': {'lr': 0.1}}, path)
        same(weights.read(path))
        assert "entry 'epoch' is a int" in refused(path, wrapped=False)
    torch.save({'epoch': 3}, path)
    assert "entry 'epoch' is a int" in refused(path)
    torch.save({'state_dict': {}}, path)
    assert 'holds dict of 0 entries' in refused(path)


def test_half_precision_becomes_float32_and_integers_stay(tmp_path):
    from safetensors.torch import save_file

    for kind in (torch.bfloat16, torch.float16, torch.float64):
        wanted = {name: x.float().numpy() for name, x in tensors(dtype=kind).items()} | {'n': np.arange(3)}
        state = tensors(dtype=kind) | {'n': torch.arange(3)}
        torch.save(state, tmp_path / 'x.pt')
        save_file(state, tmp_path / 'x.safetensors')
        for name in ('x.pt', 'x.safetensors'):
            same(weights.read(tmp_path / name), wanted)
    save_file({'empty': torch.zeros(0, 3).bfloat16(), 'one': torch.tensor(2.5).bfloat16()}, tmp_path / 'x.safetensors')
    found = weights.read(tmp_path / 'x.safetensors')
    assert found['empty'].shape == (0, 3) and found['one'].shape == () and found['one'] == 2.5
    save_file({'a': torch.ones(2).to(torch.float8_e4m3fn)}, tmp_path / 'x.safetensors')
    assert 'a is F8_E4M3, wanted float32, float16 or bfloat16' in refused(tmp_path / 'x.safetensors')


# Files that are refused ----------------------------------------------------------------------------------------------


class Code:
    """Unpickled without care, it makes a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return pathlib.Path.touch, (self.file,)


@pytest.mark.parametrize('legacy', [False, True])
def test_a_pickle_with_code_is_refused_and_not_executed(tmp_path, legacy):
    path, mark = tmp_path / 'uniter-base.pt', tmp_path / 'executed'
    torch.save({'a': torch.ones(2), 'b': Code(mark)}, path, _use_new_zipfile_serialization=not legacy)
    told = refused(path)
    assert 'its pickle wants to call ' in told and 'code in a file is never executed' in told and '\n' not in told
    assert not mark.exists()
    torch.load(path, weights_only=False)  # the file does what it should
    assert mark.exists()


def test_truncated_empty_and_other_files(tmp_path):
    torch.save(tensors(), tmp_path / 'whole.pt')
    weights.write(tmp_path / 'whole.safetensors', ARRAYS)
    for suffix in ('.pt', '.safetensors'):
        whole = (tmp_path / f'whole{suffix}').read_bytes()
        path = tmp_path / f'cut{suffix}'
        for content in (whole[:-1], whole[: len(whole) // 2], whole[:9], b'', b'{}', b'\0' * 100, b'\xff' * 100):
            path.write_bytes(content)
            refused(path)
    (tmp_path / 'whole.pt').rename(tmp_path / 'other.safetensors')
    assert 'not a .safetensors file' in refused(tmp_path / 'other.safetensors')
    (tmp_path / 'whole.safetensors').rename(tmp_path / 'other.pt')
    assert 'not a state dict of PyTorch' in refused(tmp_path / 'other.pt')
    with zipfile.ZipFile(tmp_path / 'zip.pt', 'w') as file:
        file.writestr('a/data.pkl', b'nothing')
    refused(tmp_path / 'zip.pt')
    (tmp_path / 'passwd').write_text('root:x:0:0:root:/root:/bin/bash\n' * 20)
    with pytest.raises(
        ValueError, match=r'passwd: not a state dict of PyTorch: it is no file that torch\.save writes$'
    ):
        weights.read_torch(tmp_path / 'passwd')
    weights.write(tmp_path / 'none.safetensors', {})
    assert 'holds no arrays' in refused(tmp_path / 'none.safetensors')


def test_a_header_that_promises_what_is_not_there(tmp_path):
    header = json.dumps({'a': {'dtype': 'BF16', 'shape': [1 << 40], 'data_offsets': [0, 1 << 41]}}).encode()
    path = tmp_path / 'model.safetensors'
    path.write_bytes(struct.pack('<Q', len(header)) + header + bytes(8))
    assert 'not a .safetensors file' in refused(path)


@given(st.integers(0, 10_000), st.integers(0, 255), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_damaged_byte_is_no_crash_of_another_kind(place, value, safe):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'x.safetensors' if safe else 'x.pt')
        if safe:
            weights.write(path, ARRAYS)
        else:
            torch.save(tensors(), path)
        content = bytearray(path.read_bytes())
        content[place % len(content)] = value
        path.write_bytes(content)
        try:
            weights.read(path)
        except ValueError as error:
            assert str(path) in str(error)


def test_without_pytorch_a_file_of_hugging_face_is_read_all_the_same(tmp_path, monkeypatch):
    weights.write(tmp_path / 'model.safetensors', ARRAYS)
    torch.save(tensors(), tmp_path / 'x.pt')
    monkeypatch.setitem(sys.modules, 'torch', None)
    same(weights.read(tmp_path))
    assert 'reading it needs PyTorch: pip install "evil_jax[torch]"' in refused(tmp_path / 'x.pt')


# Settings ------------------------------------------------------------------------------------------------------------


def test_settings_that_name_files(tmp_path):
    (tmp_path / 'x.pt').touch()
    (tmp_path / 'x.safetensors').touch()
    assert weights.spec(f'hf:{tmp_path}') == ('hf', tmp_path)
    assert weights.spec(f'torch:{tmp_path}/x.pt') == ('torch', tmp_path / 'x.pt')
    assert weights.spec(f'hf:{tmp_path}/x.safetensors').path.name == 'x.safetensors'
    assert str(weights.spec(f'hf:{tmp_path}')) == f'hf:{tmp_path}'
    for other in ('', 'runs/eug', f'eug:{tmp_path}/x.pt', 'C:/runs', str(tmp_path)):
        assert weights.spec(other) is None
    for value, there in (
        ('hf:bert-base-cased', 'does not exist; wanted the folder of a Hugging Face model on this machine (nothing is'),
        (f'hf:{tmp_path}/x.pt', 'x.pt is a file; wanted the folder'),
        (f'torch:{tmp_path}', 'is a folder; wanted a file of PyTorch'),
        ('torch:', 'nothing is named behind the colon; wanted a file of PyTorch'),
        ('hf:', 'nothing is named behind the colon; wanted the folder of a Hugging Face model'),
        ('torch:lost.pt', 'lost.pt does not exist; wanted a file of PyTorch'),
    ):
        with pytest.raises(ValueError) as error:
            weights.spec(value)
        assert there in str(error.value) and str(error.value).startswith(f'{value}: ')


def test_config_files(tmp_path):
    with pytest.raises(ValueError, match=r'config\.json does not exist'):
        weights.read_config(tmp_path)
    (tmp_path / 'config.json').write_text('[]')
    with pytest.raises(ValueError, match=r'config\.json: found a JSON list, wanted an object'):
        weights.read_config(tmp_path)
    (tmp_path / 'config.json').write_text('{"n_layer": 2}')
    assert weights.read_config(tmp_path) == weights.find_config(tmp_path) == {'n_layer': 2}
    assert weights.find_config(tmp_path / 'model.safetensors') == {'n_layer': 2}
    assert weights.find_config(tmp_path / 'pytorch_model.bin') is None  # a file of PyTorch may lie anywhere
    (tmp_path / 'config.json').unlink()
    assert weights.find_config(tmp_path) is None
