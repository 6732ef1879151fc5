"""Loops over cases: all are run, and those that fail are named."""

import inspect
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cases
from cases import each, generator
from functrans.core import state


def run(test: Any, group: str = "", text: str = "", **others: Any) -> None:
    """What pytest does with a test of this file that it does not collect."""
    node = SimpleNamespace(nodeid="tests/test_cases.py::test_some[sin]")
    config = SimpleNamespace(getoption=lambda name, default: text)
    test(request=SimpleNamespace(node=node, config=config), group=group, **others)


def parameters(test: Any) -> list[str]:
    return list(inspect.signature(test).parameters)


@pytest.mark.parametrize("text", ["", "2"])
def test_all_cases_run_and_those_that_fail_are_named(text: str) -> None:
    seen = []

    @each("n", [1, 2, pytest.param(3, id="three"), 4, 22])
    def some(n: int) -> None:
        seen.append(n)
        if n == 2:
            pytest.fail("no")
        assert n != 3
        assert n != 22

    with pytest.raises(BaseExceptionGroup) as caught:
        run(some, text=text)
    failures = caught.value.exceptions
    assert parameters(some) == ["request"]
    if text:
        assert seen == [2, 22]
        assert caught.value.message == "2 of 2 cases fail: 2, 22"
    else:
        assert seen == [1, 2, 3, 4, 22]
        assert caught.value.message == "3 of 5 cases fail: 2, three, 22"
        assert [type(one).__name__ for one in failures] == ["Failed", *["AssertionError"] * 2]
        assert failures[1].__notes__ == ["in the case three"]


def test_pairs_are_run_in_the_order_of_parametrize() -> None:
    seen = []

    @each("a", "xy")
    @each(("b", "c"), [(1, 2), (3, 4)], by="b")
    def some(a: str, b: int, c: int) -> None:
        seen.append((a, b, c))
        assert b == c

    assert parameters(some) == ["request", "group"]
    (mark,) = some.pytestmark  # type: ignore[attr-defined]  # of the items
    assert mark.args == ("group", ["1", "3"])
    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases fail: 1-2-x, 1-2-y"):
        run(some, "1")
    assert seen == [("x", 1, 2), ("y", 1, 2)]


def test_a_case_has_its_own_generator_and_seed() -> None:
    found = []

    @each("n", [1, 2])
    def some(n: int, rng: np.random.Generator) -> None:
        found.append((rng.random(), random.random()))

    run(some)
    names = [f"tests/test_cases.py::test_some[{n}]" for n in (1, 2)]
    random.seed(0)
    seeded = random.random()
    assert found == [(generator(name).random(), seeded) for name in names]


def test_state_that_a_case_leaves_is_a_failure() -> None:
    @each("n", [1, 2])
    def some(n: int) -> None:
        if n == 1:
            np.seterr(all="ignore")
        else:
            np.seterr(**errors)

    errors = np.geterr()
    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases fail"):
        run(some)
    assert np.geterr() == errors


def test_skipped_cases_are_skipped_if_nothing_else_runs() -> None:
    @each("n", [1, 2])
    def some(n: int, kept: int) -> None:
        if n != kept:
            pytest.skip(f"not {n}")

    run(some, kept=2)
    with pytest.raises(pytest.skip.Exception, match="not 1"):
        run(some, kept=3)
    with pytest.raises(pytest.skip.Exception, match="no case has such a name"):
        run(some, text="5", kept=3)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_share_of_a_sweep(is_full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "IS_FULL", is_full)
    seen = []

    @each("n", range(8), one_of=3)
    @each("of", "abc", by="of")
    def some(of: str, n: int) -> None:
        seen.append((of, n))

    for of in "abc":
        run(some, of)
    if is_full:
        assert seen == [(of, n) for of in "abc" for n in range(8)]
    else:
        assert [(of, n) for of, n in seen] == [
            *(("a", 0), ("a", 3), ("a", 6), ("b", 1), ("b", 4), ("b", 7), ("c", 2), ("c", 5)),
        ]
        assert [cases.share([1, 2], 9, k) for k in range(3)] == [[1], [2], [1]]
        assert cases.share([], 3) == []
    assert cases.share([1, 2, 3, 4], 4, 0, 2) == ([1, 3] if is_full else [1])


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="has no parameters"):
        each("m", [1])(lambda n: None)
    with pytest.raises(TypeError, match="no marks of its own"):
        each("n", [pytest.param(1, marks=pytest.mark.skip)])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        each("n, m", [(1,)])


@pytest.mark.parametrize("k", [1, 2])
@each("n", [10, 20], by="n")
def test_with_pytest(n: int, k: int, names_as_they_are: None, request: Any) -> None:
    assert state.current_config.get().plain is False
    assert request.node.name == f"test_with_pytest[{n}-{k}]"


def test_long_sweeps_are_there() -> None:
    """What is renamed would be run whole again."""
    here = Path(__file__).parent
    names = [line for line in (here / "long_sweeps.txt").read_text().splitlines() if line[0] != "#"]
    assert len(names) > 100
    for name in names:
        path, _, test = name.partition("::")
        assert f"def {test}(" in (here.parent / path).read_text(), name
