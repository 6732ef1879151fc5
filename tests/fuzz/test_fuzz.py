"""Fuzzers, a fixed number of cases each; cases that were found once; the fuzzers' own machinery."""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import IS_FULL

from .batches import FORMS, SIZE
from .common import (
    FOUND,
    Died,
    Failure,
    Finding,
    Kind,
    Outcome,
    Report,
    Sandbox,
    check_seed,
    judge,
    kind_named,
    minimised,
    shorter,
)
from .grammar import NOT_DRAWN, functions_drawn
from .programs import Program
from .reference import PLAIN

# Cases per test of a kind, a few seconds each in the full run; a third of them otherwise.
CHUNKS = [
    ("programs", 0, 50),
    ("programs", 50, 50),
    ("expressions", 0, 40),
    ("derivatives", 0, 15),
    ("derivatives", 15, 15),
    ("slopes", 0, 10),
    ("writes", 0, 25),
    ("jaxprs", 0, 90),
    ("files", 0, 300),
    ("imperative", 0, 20),
    ("kills", 20, 3),
]
FOUND_CASES = sorted(FOUND.glob("*.json"))


def _passed(sandbox: Sandbox, name: str, first: int, count: int) -> Counter[str]:
    """What was done in so many cases, all of which must pass."""
    report = Report()
    failures: list[Failure] = []
    for seed in range(first, first + count):
        check_seed(sandbox, kind_named(name), seed, report, failures.append)
    texts = [f"seed {f.seed}: {f.signature}\n{f.text}\n{f.case}" for f in failures]
    assert not texts, "\n\n".join(texts)
    assert report.counts[name]["cases, passed"] == count
    return report.counts[name]


@pytest.mark.parametrize(("name", "first", "count"), CHUNKS)
def test_random_cases_pass(name: str, first: int, count: int) -> None:
    with Sandbox() as sandbox:
        _passed(sandbox, name, first, count if IS_FULL else max(3, count // 3))


# Batches in each test of programs, of which there are 2,000 in every run.
BATCHES = 192 if IS_FULL else 64
LEAST_PROGRAMS = round(0.98 * BATCHES * SIZE)
"""How many are compared: one in a hundred is refused, since shapes in it depend on values."""
TRAITS = (
    *("half precision", "extended precision", "foreign byte order"),
    *("unaligned arguments", "negative strides"),
)


@pytest.mark.parametrize("first", [i * BATCHES for i in range(4)])
def test_random_programs_agree_with_numpy_and_the_interpreter(sandbox: Sandbox, first: int) -> None:
    counts = _passed(sandbox, "batches", first, BATCHES)
    assert counts["programs"] >= LEAST_PROGRAMS
    for run in ("native", "interpreted"):
        judged = [counts[f"programs, {form}, {run}"] for form in FORMS]
        assert min(judged) > 0
        assert sum(judged) == counts["programs"]
    assert all(counts[f"programs with {trait}"] for trait in TRAITS)


def test_cases_found_once_pass() -> None:
    with Sandbox() as sandbox:
        for path in FOUND_CASES:
            saved = json.loads(path.read_text(encoding="utf-8"))
            outcome = sandbox.judge(kind_named(saved["kind"]), case=saved["case"])
            assert not outcome.signature, f"{path.name}: {outcome.signature}\n{outcome.text}"


def test_every_supported_function_is_drawn_or_has_a_reason() -> None:
    text = (Path(__file__).parents[2] / "docs" / "support.json").read_text(encoding="utf-8")
    modules = json.loads(text)["modules"]
    supported = {
        f"{prefix}{name}"
        for path, prefix in (("numpy", ""), ("numpy.linalg", "linalg."), ("numpy.fft", "fft."))
        for name, facts in modules[path].items()
        if facts["status"] == "traced"
    }
    excepted = set(" ".join(NOT_DRAWN).split())
    assert supported - functions_drawn() == excepted


class _Sums(Kind):
    """Lists of numbers, wrong if both a 3 and a 7 are in them."""

    name = "sums"

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"steps": [int(n) for n in rng.integers(0, 10, size=40)]}

    def run(self, case: dict[str, Any], counts: Counter[str]) -> None:
        counts["lists"] += 1
        if {3, 7} <= set(case["steps"]):
            raise Finding("both", str(case["steps"]))

    def script(self, case: dict[str, Any]) -> str:
        return f"print({case['steps']})"


def test_parts_are_left_out_boldest_first() -> None:
    assert list(shorter([1, 2, 3])) == [[1], [2, 3], [1, 2], [1, 3], [2, 3]]
    assert list(shorter([1])) == []


class _InProcess(Sandbox):
    """Judges in this process."""

    def judge(self, kind: Kind, *, seed: int | None = None, case: Any = None) -> Outcome:
        return judge(kind, case)


def test_failures_are_made_small() -> None:
    case = _Sums().draw(np.random.default_rng(0))
    outcome = judge(_Sums(), case)
    assert outcome.signature == "both"
    with _InProcess() as sandbox:
        small, found = minimised(sandbox, _Sums(), case, outcome)
    assert sorted(small["steps"]) == [3, 7]
    assert found.signature == "both"


def _program(argument: str, *texts: str) -> dict[str, Any]:
    steps = [[[f"v{i}"], text, "exact"] for i, text in enumerate(texts, 1)]
    args = {"v0": argument}
    return {"args": args, "steps": steps, "runs": ["native"], "axes": [0], "words": "numpy"}


def test_a_wrong_step_is_named() -> None:
    case = _program("np.array([1.0, 2.0])", "v0 * 2", "v1 - 1", "v2 + v0")
    program = Program(case)
    args = list(program.args.values())
    found = program.function(PLAIN)(*args)
    program.judge(args, found, Counter())
    for wrong in (np.array([1.0, np.nextafter(3, 4)]), np.array([1, 3]), np.array([[1.0, 3.0]])):
        with pytest.raises(Finding, match=r"v - #"):
            program.judge(args, [found[0], [wrong], found[2]], Counter())


@pytest.mark.parametrize(
    ("numbers", "is_clear"),
    [
        ([1.0, 2.0], True),
        ([-1e-300, 1e-301], True),
        ([np.inf, -2.0], True),
        ([1.0, -1.0], False),
        ([0.1, 0.2, -0.3], False),
        ([np.inf, -1.7e308, -1.7e308], False),
    ],
)
def test_the_other_branch_is_wrong_where_its_condition_is_clear(
    numbers: list[float], is_clear: bool
) -> None:
    text = "lax.cond(np.sum(v0).real > 0, lambda x, y: x + y, lambda x, y: y + x * 2, v0, v0)"
    program = Program(_program(f"np.array({numbers})".replace("inf", "np.inf"), text))
    args = list(program.args.values())
    with np.errstate(all="ignore"):
        (right,) = program.function(PLAIN)(*args)
        other = args[0] + args[0] if np.array_equal(right[0], 3 * args[0]) else 3 * args[0]
        program.judge(args, [right], Counter())
        with pytest.raises(Finding) if is_clear else contextlib.nullcontext():
            program.judge(args, [[other]], Counter())


def test_crashes_and_hangs_are_findings() -> None:
    kind = kind_named("programs")
    with Sandbox() as sandbox:
        crash = _program("np.ctypeslib.ctypes.string_at(0)")
        assert sandbox.judge(kind, case=crash).signature == "dies of SIGSEGV"
        hang = _program("[0 for _ in iter(int, 1)]")
        sandbox.judge(kind, case=_program("np.array(1)", "v0 + 1"))  # has imported everything
        with pytest.raises(Died, match="hangs"):
            sandbox.ask(1.0, kind="programs", case=hang)
        assert sandbox.judge(kind, case=_program("np.array(1)", "v0 + 1")).signature == ""


def test_a_failure_is_written_with_its_script(tmp_path: Path) -> None:
    kind = kind_named("programs")
    case = kind.draw(np.random.default_rng(0))
    path = Failure("programs", 5, "values: x", "1 instead of 2", case).write(tmp_path)
    assert json.loads(path.read_text())["case"] == case
    compile(path.with_suffix(".py").read_text(), "script", "exec")
