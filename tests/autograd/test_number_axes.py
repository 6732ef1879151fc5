"""Axes of tensors without axes mean what they mean in PyTorch, whose answers are in a file."""

import json

import pytest

import functrans.compat.torch as torch

from .number_axes import AXES, DATA, EXPRESSIONS, outcome

EXPECTED = json.loads(DATA.read_text())


@pytest.mark.parametrize("axis", AXES)
def test_a_number_has_the_axes_that_pytorch_gives_it(axis: int) -> None:
    for code, at in EXPRESSIONS:
        if at != axis:
            continue
        found, expected = outcome(torch, code, at), EXPECTED[f"{code} {at}"]
        if isinstance(expected, str):
            assert isinstance(found, str), (code, found)
            assert expected.split()[0] in found.split(), (code, found, expected)
        else:
            assert found == expected, code
