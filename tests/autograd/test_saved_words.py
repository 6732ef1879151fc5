"""What may be done twice, and written to, after each operation: all that PyTorch allows.

More is allowed where a node keeps a copy; that the numbers are right then is tested in
``test_saved_guards``.
"""

import json

import numpy as np
import pytest

import functrans.compat.torch as torch
from autograd.saved_words import DATA, Expression, allowed
from cases import each
from samples.torch_operations import OPERANDS

ALLOWED = json.loads(DATA.read_text(encoding="utf-8"))
LESS = {
    "2/A": "0",
    "T.special.ndtr(A)": "0",
    "T.kron(A,S)": "01",
    "T.linalg.svdvals(A)": "0",
    "T.linalg.eigvalsh(SPD)": "0",
    "T.linalg.norm(A,2)": "0",
    "T.linalg.norm(A,'nuc')": "0",
    "T.nuclear_norm(A)": "0",
    "T.linalg.cond(S)": "0",
    "T.polar(P,A)": "01",
    "T.copysign(A,B)": "1",
    "(lambda y: y.copysign_(B))(A*1)": "1",
}
"""Operands that are read here, where PyTorch keeps the result or other values."""
TWICE = {"A.unfold(1,2,2)", "T.cumulative_trapezoid(A)"}
"""What keeps indices or widths."""
NO_GRAPH = {"(lambda y: y.nextafter_(B))(A.detach()*1)"}
"""What has a derivative of 0 in PyTorch, and none here."""


@pytest.mark.filterwarnings("ignore")
@each("code", [code for code in ALLOWED if code not in NO_GRAPH], one_of=4)
def test_all_is_allowed_that_pytorch_allows(code: str) -> None:
    with np.errstate(all="ignore"):
        found = allowed(Expression(torch, code, OPERANDS))
    assert found is not None
    less = LESS.get(code, "") + ("t" if code in TWICE else "")
    assert set(ALLOWED[code]) - set(found) == set(less)
