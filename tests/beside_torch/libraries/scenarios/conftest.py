"""``agree(name, value)`` in scenarios: writes PyTorch's numbers down, or compares with them.

``FUNCTRANS_SCENARIOS`` is ``write:FOLDER`` or ``read:FOLDER``.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest


def numbers(value):
    """Arrays of all tensors and numbers within."""
    if isinstance(value, dict):
        return [item for key in sorted(value) for item in numbers(value[key])]
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in numbers(part)]
    return [np.asarray(value.detach().tolist() if hasattr(value, "detach") else value)]


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Note whether the test itself failed."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture
def agree(request):
    """A function that compares a value with PyTorch's of the same name in the same test."""
    mode, _, folder = os.environ["FUNCTRANS_SCENARIOS"].partition(":")
    file = Path(folder) / (re.sub(r"\W+", "_", request.node.nodeid) + ".npz")
    kept = dict(np.load(file)) if mode == "read" else {}
    asked = set()

    def compare(name, value, *, rtol=1e-6, atol=1e-9):
        assert name not in asked, f"{name!r} is compared twice"
        asked.add(name)
        for index, got in enumerate(numbers(value)):
            key = f"{name}.{index}"
            if mode == "write":
                kept[key] = got
            else:
                np.testing.assert_allclose(got, kept[key], rtol=rtol, atol=atol, err_msg=key)

    yield compare
    if request.node.stash.get(FAILED, False):
        return
    assert asked, "a scenario compares something"
    if mode == "write":
        np.savez(file, **kept)
    else:
        assert {key.rpartition(".")[0] for key in kept} == asked
