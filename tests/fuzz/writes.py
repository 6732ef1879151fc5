"""Writes: names, views and copies of arrays and numbers, and what is written to them.

Statements of NumPy on real arrays with two, one and no axes: other names, views of views, augmented
assignments to arrays, views and numbers, writes at an index. The result is a sum over all names, so
that a write that is lost or reaches too far is seen. Judges are plain NumPy for values and complex
steps, of the same statements, for derivatives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import functrans as ft
from functrans.errors import FunctransError

from .common import Case, Finding, Kind

START = ("a = x * 1.0", "b = y * 1.0", "c = s * 1.0")
NUMBERS = ("2.0", "0.5", "-1.5", "3", "c", "s")
SLICES = (
    "1:",
    "::-1",
    ":2",
    "::2",
    "...",
    ":",
    "0:1",
    "None",
    ":, 1:",
    ":, ::-1",
    "1, :",
    "..., 0",
)
PLACES = (*SLICES, "0", "-1", "[1, 0]", "np.real(a[:2]) > 0")
FUNCTIONS = ("ravel", "transpose", "squeeze", "atleast_2d", "flip", "sin", "sum", "copy", "asarray")
STATEMENTS = (
    "{new} = {old}",
    "{new} = {old}[{slice}]",
    "{new} = {old}[{slice}]",
    "{new} = {old}[0]",
    "{new} = {old}.T",
    "{new} = {old}.reshape(-1)",
    "{new} = {old}.copy()",
    "{new} = np.{function}({old})",
    "{new} = {old} {operator} {number}",
    "{old} {operator}= {number}",
    "{old} {operator}= {number}",
    "{old} {operator}= {other}",
    "{old}[{place}] = {number}",
    "{old}[{place}] {operator}= {number}",
    "{old}[{place}] = {other}[{place}]",
)
TANGENTS = {"x": 0.1, "y": -0.2, "s": 0.3}
STEP = 1e-30
OVERLAP = re.compile(r"(\w+\[.*\]) = (\w+\[.*\])$")
Values = dict[str, Any]


def total(names: Mapping[str, Any]) -> Any:
    """A sum over all arrays and numbers, each with a weight of its own."""
    return sum((np.sum(names[name]) * (1.1 + i) for i, name in enumerate(sorted(names))), start=0.0)


def executed(
    steps: list[str], given: Mapping[str, Any], look: Callable[[Any], None] = lambda names: None
) -> dict[str, Any]:
    """What the names stand for after the statements; ``look`` sees them after each."""
    names: dict[str, Any] = {"np": np, **given}
    for step in steps:
        exec(step, names)  # a program is Python text
        look(names)
    return {name: x for name, x in names.items() if name not in ("np", "__builtins__")}


def without_overlaps(steps: list[str]) -> list[str]:
    """The statements with copies of what is written: NumPy reads what it has just overwritten."""
    return [OVERLAP.sub(r"\1 = np.copy(\2)", step) for step in steps]


def refuse_arrays_without_axes(names: Mapping[str, Any]) -> None:
    """A traced value without axes is a number, as conventions say, unless it is a view."""
    for x in names.values():
        if type(x) is np.ndarray and not x.ndim and not np.ndim(x.base):
            raise ValueError("an array without axes")


class Writes(Kind):
    """See the module's docstring."""

    name = "writes"

    def draw(self, rng: np.random.Generator) -> Case:
        given = {
            "x": rng.uniform(-1, 1, 3).round(2).tolist(),
            "y": rng.uniform(-1, 1, (2, 3)).round(2).tolist(),
            "s": round(float(rng.uniform(-1, 1)), 2),
        }
        steps = list(START)
        for _ in range(int(rng.integers(4, 12))):
            names = executed(steps, _arrays(given))
            step = self._statement(rng, sorted(set(names) - set(given)))
            try:
                found = executed([*steps, step], _arrays(given))
            except Exception:  # nothing that NumPy does
                continue
            if all(np.size(x) for x in found.values()):
                steps.append(step)
        return {"given": given, "steps": steps}

    def _statement(self, rng: np.random.Generator, names: list[str]) -> str:
        def one(of: Any) -> str:
            return str(of[int(rng.integers(len(of)))])

        return one(STATEMENTS).format(
            new=f"v{len(names)}",
            old=one(names),
            other=one(names),
            slice=one(SLICES),
            place=one(PLACES),
            function=one(FUNCTIONS),
            operator=one(("+", "-", "*", "/")),
            number=one(NUMBERS),
        )

    def run(self, case: Case, counts: Counter[str]) -> None:
        steps, given = case["steps"], _arrays(case["given"])
        tangents = {name: np.full(np.shape(v), TANGENTS[name])[()] for name, v in given.items()}
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                judged = without_overlaps(steps)
                look = refuse_arrays_without_axes
                expected = total(executed(judged, _arrays(case["given"]), look))
                moved = {name: v + 1j * STEP * tangents[name] for name, v in given.items()}
                slope = total(executed(judged, moved)).imag / STEP
        except FloatingPointError:  # an infinity that is overwritten has slope 0 * inf: NaN
            counts["beyond the judge"] += 1
            return
        except Exception:  # a statement misses one before it, or an array has no axes
            counts["refused by NumPy"] += 1
            return
        if not np.isfinite([expected, slope]).all() or max(abs(expected), abs(slope)) > 1e8:
            counts["beyond the judge"] += 1
            return
        for name, run in self._runs(steps, given, tangents).items():
            try:
                with np.errstate(all="ignore"):
                    found = run()
            except FunctransError as error:
                counts[f"refused, {name}: {type(error).__name__}"] += 1
                continue
            for what, value, wanted in zip(
                ("value", "slope"), found, (expected, slope), strict=False
            ):
                counts[f"{what}s, {name}"] += 1
                if not abs(np.reshape(value, ()) - wanted) <= 1e-9 * max(1.0, abs(wanted)):
                    raise Finding(f"{what}, {name}", f"{value} instead of {wanted}")
        for name, value in _arrays(case["given"]).items():
            if not np.array_equal(given[name], value):
                raise Finding("an argument has changed", f"{name}: {given[name]}")

    def _runs(
        self, steps: list[str], given: Values, tangents: Values
    ) -> dict[str, Callable[[], tuple[Any, ...]]]:
        def f(x: Any, y: Any, s: Any) -> Any:
            return total(executed(steps, {"x": x, "y": y, "s": s}))

        point, directions = tuple(given.values()), tuple(tangents.values())

        def pulled() -> tuple[Any, Any]:
            value, pull = ft.vjp(f, *point)
            parts = zip(pull(1.0), directions, strict=True)
            return value, sum(np.sum(ct * t) for ct, t in parts)

        def pushed(*args: Any) -> Any:
            return ft.jvp(f, args, directions)

        return {
            "vjp": pulled,
            "jvp": lambda: pushed(*point),
            "jit": lambda: ft.jit(pushed)(*point),
            "vmap": lambda: ft.vmap(pushed)(*[np.asarray(x)[None] for x in point]),
        }

    def script(self, case: Case) -> str:
        body = [f"    {step}" for step in case["steps"]]
        return "\n".join([
            "import functrans as ft, numpy as np",
            "def f(x, y, s):",
            *body,
            "    names = {k: v for k, v in locals().items()}",
            "    return sum(np.sum(names[k]) * (1.1 + i) for i, k in enumerate(sorted(names)))",
            f"x, y, s = {case['given']!r}.values()",
            "x, y = np.array(x), np.array(y)",
            "print(f(x.copy(), y.copy(), s), ft.vjp(f, x, y, s)[0], ft.jit(f)(x, y, s))",
        ])  # fmt: skip


def _arrays(given: Mapping[str, Any]) -> Values:
    return {name: np.array(v) if isinstance(v, list) else v for name, v in given.items()}


KIND = Writes()
