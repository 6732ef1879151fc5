"""Many cases in one test: all are run, and those that fail are named together.

An item of pytest costs more than a millisecond of collecting, scheduling and reporting; a case
often takes less. ``each`` stands where ``pytest.mark.parametrize`` would, and loops.

The largest sweeps run a part of their cases by default, every ``n``-th, and all of them where the
environment has ``FUNCTRANS_TEST_FULL=1``, as in ``.ci/run``; a few whose programs all have to be
compiled run a half of them there, and all where it is 2. Of long sweeps of many items, which
``long_sweeps.txt`` names, each run takes a share (``conftest.py``).
"""

import functools
import inspect
import itertools
import os
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest

from functrans.core import state

Test = Callable[..., None]
T = TypeVar("T")

_PARAMETERS = type(pytest.param())

LEVEL = os.environ.get("FUNCTRANS_TEST_FULL", "") or "0"
IS_FULL = LEVEL != "0"
"""Whether sweeps run all of their cases, but for a part of the longest ones at level 1."""
IS_WHOLE = LEVEL == "2"
"""Whether these do, too."""


def share(values: Sequence[T], n: int, first: int = 0, full: int = 1) -> list[T]:
    """Every ``n``-th value, one at least; all in the full run.

    Args:
      values: of a sweep.
      n: how many there are for each that is taken.
      first: another one begins elsewhere.
      full: how many there are for each in the full run, of products of three and more tables.
    """
    n = (1 if IS_WHOLE else full) if IS_FULL else n
    return list(values[first % min(n, len(values)) :: n]) if values else []


@contextmanager
def no_state_left_behind() -> Iterator[None]:
    """What runs inside starts from the same seed, and leaves the global state as it found it."""
    random.seed(0)
    assert not state.open_traces.get()
    config, errors = state.current_config.get(), np.geterr()
    try:
        yield
    finally:
        traces = state.open_traces.get()
        if traces:
            state.open_traces.set(())  # so that the next test does not fail for this one
    assert not traces, f"open traces after the test: {[trace.label for trace in traces]}"
    assert state.current_config.get() == config, "the configuration was changed"
    assert state.name_scope.get() == "", "a name scope is open"
    assert state.batch_axis.get() is None, "a batch axis is open"
    assert np.geterr() == errors, "NumPy's error state was changed"


def generator(name: str) -> np.random.Generator:
    """A generator seeded by the name of a test or case."""
    return np.random.default_rng(zlib.crc32(name.encode()))


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments of a test by name, and what the case is called."""

    name: str
    arguments: Mapping[str, Any]


def each(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Callable[[Any], str] | Sequence[str] | None = None,
    by: str | None = None,
    one_of: int = 1,
    full: int = 1,
) -> Callable[[Test], Test]:
    """Run a test for all values in one item of pytest, or in a few.

    Two of these, one above the other, run the test for all pairs. ``pytest --case TEXT`` runs the
    cases that have the text in their name.

    Args:
      names: parameters of the test; as for ``parametrize``, like ``values`` and ``ids``.
      values: a value, a tuple of values or a ``pytest.param`` for each case.
      ids: tells the part of a case's name that stands for a value; or all names.
      by: a parameter, for each value of which there is an item.
      one_of: how many cases of an item there are for each that is run by default.
      full: how many there are for each in the full run, of what takes longest;
        ``FUNCTRANS_TEST_FULL=2`` runs them all.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [
        _case(wanted, value, k, ids if ids is None or callable(ids) else ids[k])
        for k, value in enumerate(values)
    ]

    def decorate(test: Test) -> Test:
        inner = getattr(test, "looped", None)
        if inner is None:
            return _looped(test, test, cases, by, one_of, full)
        below, its_cases, its_by, its_one_of, its_full = inner
        both = [
            Case(f"{one.name}-{other.name}", {**one.arguments, **other.arguments})
            for one, other in itertools.product(its_cases, cases)
        ]
        return _looped(test, below, both, by or its_by, one_of * its_one_of, full * its_full)

    return decorate


def _case(names: list[str], value: Any, k: int, ids: Callable[[Any], str] | str | None) -> Case:
    name = ids if isinstance(ids, str) else None
    if isinstance(value, _PARAMETERS):
        if value.marks:
            raise TypeError(f"a case has no marks of its own: {value}")
        value, name = value.values, value.id
    elif len(names) == 1:
        value = (value,)
    if name is None:
        parts = zip(names, value, strict=True)
        name = "-".join(ids(x) if callable(ids) else _text(own, x, k) for own, x in parts)
    return Case(name, dict(zip(names, value, strict=True)))


def _text(name: str, value: Any, k: int) -> str:
    """What ``parametrize`` calls a value."""
    if value is None or isinstance(value, (str, int, float, complex)):
        return str(value)
    return str(getattr(value, "__name__", f"{name}{k}"))


def _looped(
    outer: Test, test: Test, cases: list[Case], by: str | None, one_of: int, full: int
) -> Test:
    """``test`` as a loop over cases, with the marks of ``outer``."""
    own = {name for case in cases for name in case.arguments}
    parameters = inspect.signature(test).parameters
    if not own <= set(parameters):
        raise TypeError(f"{test.__name__} has no parameters {own - set(parameters)}")
    others = [name for name in parameters if name not in (*own, "rng", "request")]
    groups = {"": cases} if by is None else _groups(cases, by)
    groups = {name: share(own, one_of, k, full) for k, (name, own) in enumerate(groups.items())}

    @functools.wraps(outer)
    def run(request: pytest.FixtureRequest, group: str = "", **rest: Any) -> None:
        def call(case: Case) -> None:
            arguments = {**case.arguments, **rest}
            if "request" in parameters:
                arguments["request"] = request
            if "rng" in parameters:
                arguments["rng"] = generator(f"{request.node.nodeid.split('[')[0]}[{case.name}]")
            test(**arguments)

        text = request.config.getoption("--case", default="")
        _run_all([case for case in groups[group] if text in case.name], call)

    taken = ["request", *(["group"] if by is not None else []), *others]
    run.looped = test, cases, by, one_of, full  # type: ignore[attr-defined]  # read by another ``each``
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by pytest
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in taken]
    )
    marks = [mark for mark in getattr(outer, "pytestmark", ()) if mark.args[:1] != ("group",)]
    run.pytestmark = marks  # type: ignore[attr-defined]  # read by pytest
    return run if by is None else pytest.mark.parametrize("group", list(groups))(run)


def _groups(cases: list[Case], by: str) -> dict[str, list[Case]]:
    """The cases by the name of one argument."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        value = case.arguments[by]
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or value
        groups.setdefault(str(name), []).append(case)
    return groups


def _run_all(cases: list[Case], call: Callable[[Case], None]) -> None:
    """Every case, and then what went wrong.

    Raises:
      Skipped: if every case is skipped.
      BaseExceptionGroup: if cases fail.
    """
    failed: list[str] = []
    failures: list[BaseException] = []
    skipped = []
    for case in cases:
        try:
            with no_state_left_behind():
                call(case)
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except (Exception, pytest.fail.Exception) as failure:
            failure.add_note(f"in the case {case.name}")
            failed.append(case.name)
            failures.append(failure)
    if failed:
        message = f"{len(failed)} of {len(cases)} cases fail: {', '.join(failed)}"
        raise BaseExceptionGroup(message, failures)
    if len(skipped) == len(cases):
        pytest.skip(str(skipped[0]) if skipped else "no case has such a name")
