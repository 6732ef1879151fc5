"""A function that is jitted anew at every call is staged once, as long as it means the same."""

import gc
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.flatten_util import ravel_pytree

SPACE = """
import numpy as np
import settings
def note(): ...
def helper(x, power=2): return x ** power * scale
def f(x):
    note()
    return np.sum(helper(x)) * settings.factor + array[0] * kind
"""


class Space:
    """A module with a function ``f`` that counts its runs, whose globals can be changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.settings = types.ModuleType("settings")
        self.settings.factor = 1.0  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "settings", self.settings)
        own: dict[str, Any] = {"__name__": "own", "scale": 1.0, "array": np.ones(2), "kind": 1}
        exec(SPACE, own)
        self.names = own
        self.f = own["f"]
        own["note"] = np.frompyfunc(self.count, 0, 1)  # a ufunc is nothing that may change

    def count(self) -> int:
        self.runs += 1
        return 0


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> Space:
    return Space(monkeypatch)


X = np.array([1.0, 2.0])


def test_jit_of_the_same_function_stages_once(space: Space) -> None:
    for _ in range(3):
        assert ft.jit(space.f)(X) == 6.0
    assert space.runs == 1
    ft.jit(space.f)(np.ones(3))  # another kind of call
    assert ft.jit(space.f, static_argnames=())(X) == 6.0
    assert space.runs == 2
    with ft.config(native=False):  # other settings
        ft.jit(space.f)(X)
    assert space.runs == 3
    ft.clear_caches()
    ft.jit(space.f)(X)
    assert space.runs == 4


def change_global(space: Space) -> None:
    space.names["scale"] = 3.0


def change_type_of_global(space: Space) -> None:
    space.names["kind"] = True


def change_global_of_module(space: Space) -> None:
    space.settings.factor = 3.0  # type: ignore[attr-defined]


def change_helper(space: Space) -> None:
    exec("def helper(x): return 3.0 * x", space.names)


def change_default(space: Space) -> None:
    space.names["helper"].__defaults__ = (3,)


def change_array(space: Space) -> None:
    space.names["array"] = np.array([5.0, 1.0])


def write_to_array(space: Space) -> None:
    space.names["array"][0] = 7.0


def change_large_array(space: Space) -> None:
    space.names["array"] = np.ones(10000)
    ft.jit(space.f)(X)
    space.names["array"][0] = 7.0
    space.runs -= 1


CHANGES = [
    change_global, change_type_of_global, change_global_of_module, change_helper, change_default,
    change_array, write_to_array, change_large_array,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_the_function_refers_to_is_part_of_it(space: Space, change: Any) -> None:
    ft.jit(space.f)(X)
    change(space)
    assert ft.jit(space.f)(X) == space.f(X)
    assert space.runs == 3  # staged, staged again, and called


@pytest.mark.parametrize(
    "value",
    [[2.0], {"a": 2.0}, {2.0}, types.SimpleNamespace(a=2.0)],
    ids=lambda v: type(v).__name__,
)
def test_functions_that_refer_to_what_may_change_share_nothing(value: Any) -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(value)
        return x

    ft.jit(f)(1.0)
    ft.jit(f)(1.0)
    assert len(runs) == 2


def test_programs_do_not_keep_their_function_alive() -> None:
    gc.collect()

    def make() -> Any:
        offset = 1.0

        def f(x: Any) -> Any:
            return x + offset

        for _ in range(2):
            assert ft.jit(f)(1.0) == 2.0
        return weakref.ref(f)

    assert make()() is None


def test_functions_with_equal_code_are_told_apart() -> None:
    for value in (1.0, 2.0, 2, True, -0.0, 0.0):
        f = eval("lambda x: x * value", {"value": value})
        found = ft.jit(f)(np.float32(3.0))
        assert found == f(3.0)
        assert np.signbit(found) == np.signbit(f(3.0))


def test_ways_back_from_equal_vectors_are_equal() -> None:
    runs = []

    @ft.jit
    def f(vector: Any, unravel: Any) -> Any:
        runs.append(1)
        return unravel(vector)["a"]

    step = ft.jit(f.function, static_argnums=1)
    for value in (1.0, 2.0):
        vector, unravel = ravel_pytree({"a": value * np.ones(2), "b": 3.0})
        np.testing.assert_allclose(step(vector, unravel), value)
    assert len(runs) == 1
    other = ravel_pytree({"a": np.ones(2, np.float32), "b": 3.0})[1]
    assert other != unravel
    assert hash(other) != hash(unravel)
