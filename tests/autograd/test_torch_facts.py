"""Small programs say what they say in PyTorch, whose answers are in a file."""

import json

import pytest

import functrans.compat.torch as torch

from .torch_facts import DATA, all_programs, outcome

EXPECTED = json.loads(DATA.read_text())


@pytest.mark.parametrize(("topic", "program"), all_programs())
def test_a_program_makes_what_it_makes_in_pytorch(topic: str, program: str) -> None:
    found, expected = outcome(torch, program), EXPECTED[program]
    assert found.replace("torch.", "") == expected.replace("torch.", ""), topic
