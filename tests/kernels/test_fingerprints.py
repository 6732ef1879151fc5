"""A fingerprint changes with whatever a function's code depends on, and with nothing else."""

import types
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from cases import each
from functrans.kernels.fingerprints import fingerprint


def made(source: str, **scope: Any) -> Callable[..., Any]:
    """The function ``f`` of a source text."""
    space: dict[str, Any] = {"np": np, "numba": numba, **scope}
    exec(compile(source, "source", "exec"), space)  # the text is the test's
    found: Callable[..., Any] = space["f"]
    return found


SCALED = "def f(x):\n    return x * k"
HELPED = "def f(x):\n    return helper(x)"
MODULE = "def f(x):\n    return module.helper(x)"
CLOSED = "def outer(k):\n    def f(x):\n        return x * k\n    return f\nf = outer(K)"
Point = namedtuple("Point", "a b")  # as numba's users write it


def module(**content: Any) -> types.ModuleType:
    own = types.ModuleType("users")
    vars(own).update(content)
    return own


def helper(source: str) -> Callable[..., Any]:
    return made(source.replace("helper", "f"))


PAIRS = {
    "text": (made("def f(x): return x + 1"), made("def f(x): return x - 1")),
    "constant": (made("def f(x): return x + 1"), made("def f(x): return x + 2")),
    "default": (made("def f(x, y=1): return x"), made("def f(x, y=2): return x")),
    "global": (made(SCALED, k=1), made(SCALED, k=2)),
    "type of a global": (made(SCALED, k=1), made(SCALED, k=1.0)),
    "global array": (made(SCALED, k=np.ones(2)), made(SCALED, k=np.zeros(2))),
    "dtype": (made(SCALED, k=np.ones(2)), made(SCALED, k=np.ones(2, "f4"))),
    "tuple": (made(SCALED, k=(1, 2)), made(SCALED, k=(1, 3))),
    "record": (made(SCALED, k=Point(1, 2)), made(SCALED, k=Point(1, 3))),
    "closure": (made(CLOSED, K=1), made(CLOSED, K=2)),
    "helper": (
        made(HELPED, helper=helper("def helper(x): return x")),
        made(HELPED, helper=helper("def helper(x): return -x")),
    ),
    "decorated helper": (
        made(HELPED, helper=numba.njit(helper("def helper(x): return x"))),
        made(HELPED, helper=numba.njit(helper("def helper(x): return -x"))),
    ),
    "options": (
        numba.njit(made("def f(x): return x + 1")),
        numba.njit(fastmath=True)(made("def f(x): return x + 1")),
    ),
    "module": (
        made(MODULE, module=module(helper=helper("def helper(x): return x"))),
        made(MODULE, module=module(helper=helper("def helper(x): return -x"))),
    ),
    "number in a module": (
        made("def f(x): return x * module.k", module=module(k=1)),
        made("def f(x): return x * module.k", module=module(k=2)),
    ),
    "inner function": (
        made("def f(x):\n    g = lambda y: y + k\n    return g(x)", k=1),
        made("def f(x):\n    g = lambda y: y + k\n    return g(x)", k=2),
    ),
    "library function": (
        made("def f(x): return h(x)", h=np.sin),
        made("def f(x): return h(x)", h=np.cos),
    ),
}


@each("what", PAIRS)
def test_what_code_depends_on_changes_it(what: str) -> None:
    one, other = PAIRS[what]
    assert fingerprint(one) is not None
    assert fingerprint(other) is not None
    assert fingerprint(one) != fingerprint(other)


@each("what", PAIRS)
def test_it_is_the_same_each_time(what: str) -> None:
    one, _ = PAIRS[what]
    assert fingerprint(one) == fingerprint(one)


def test_the_same_text_has_one() -> None:
    again = [made(CLOSED, K=1), made(CLOSED, K=1)]
    assert fingerprint(again[0]) == fingerprint(again[1])


def test_what_is_not_mentioned_does_not_count() -> None:
    assert fingerprint(made(SCALED, k=1, other=1)) == fingerprint(made(SCALED, k=1, other=2))
    alike = [module(helper=helper("def helper(x): return x"), other=i) for i in range(2)]
    one, other = (made(MODULE, module=own) for own in alike)
    assert fingerprint(one) == fingerprint(other)


def test_recursion_ends() -> None:
    assert fingerprint(made("def f(n): return 1 if n < 2 else n * f(n - 1)")) is not None


@pytest.mark.parametrize("k", [object(), np.array([None]), {1, 2}, type("Own", (), {})])
def test_what_cannot_be_told_has_none(k: Any) -> None:
    assert fingerprint(made(SCALED, k=k)) is None


def test_a_ufunc_of_numba_has_none() -> None:
    own = numba.vectorize(made("def f(x): return x + 1"))
    assert fingerprint(made(HELPED, helper=own)) is None
