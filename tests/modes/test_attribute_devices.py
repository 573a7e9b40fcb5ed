"""Attributions on several devices are those of one."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest


@pytest.mark.acceptance
def test_two_devices_explain_like_one(toy, toy_run, tmp_path, monkeypatch):
    """In batches of three, which two devices do not share evenly."""
    script = pathlib.Path(__file__).parent / 'toy_attributed.py'
    found = []
    for name in ('one', 'two'):
        (tmp_path / name).mkdir()
        for path in toy_run.iterdir():
            if path.name in ('assets', 'checkpoints', 'config.json'):
                (tmp_path / name / path.name).symlink_to(path)
    spec = importlib.util.spec_from_file_location('toy_attributed', script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.run(toy, tmp_path / 'one', monkeypatch.setattr)
    printed = subprocess.run(
        [sys.executable, str(script), str(tmp_path / 'two')],
        check=True, capture_output=True, text=True, timeout=120,
        env=os.environ | {'PYTHONPATH': str(script.parents[2])},
    ).stdout  # fmt: skip
    assert printed.splitlines()[0] == '2 4'  # devices, rows of a batch
    for name in ('one', 'two'):
        with np.load(tmp_path / name / 'attribute' / 'attributions.npz') as file:
            found.append(dict(file))
    one, two = found
    assert one.keys() == two.keys() and one['id'].tolist() == [f'q{n}' for n in range(5)] and one['regions'].any()
    for name in one.keys() - {'settings'}:
        if one[name].dtype.kind == 'f':
            np.testing.assert_allclose(two[name], one[name], rtol=1e-4, atol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(two[name], one[name], err_msg=name)
