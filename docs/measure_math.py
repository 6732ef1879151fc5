"""Measure the errors of vector math, for the page ``vector-math.md``.

Compiles every function of ``functrans.emitter.math`` that has a bound, compares it with mpmath at
the points that the tests of these functions draw, many more of them, and writes the largest errors
to ``docs/vector_math.json``, which ``docs/generate.py`` renders. The points come from a fixed seed
and no result depends on the processor, so that two runs write the same file.

Run ``python docs/measure_math.py`` after a change to vector math (some minutes); ``--points`` says
how many points there are at least per function and dtype.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent
DATA = DOCS / "vector_math.json"
sys.path[:0] = [str(DOCS.parent), str(DOCS.parent / "tests")]

from emitter import (  # noqa: E402  # beside the tests, found through the line above
    test_math_exponential,
    test_math_special,
    test_math_trigonometry,
)
from emitter.mathcheck import Compiled, random_bits, random_in, ulp_errors  # noqa: E402
from functrans.emitter.math import BOUNDS, power  # noqa: E402

DTYPES = {"float64": "f8", "float32": "f4"}
POINTS = 100_000
PRECISION_BITS = 300
"""Of the exact values: for tanh of tiny and cosh of huge arguments alike."""
LANES = 8
CHUNK = 20_000
HARD = {"erfc": (4.489240290327621e-07, 0.4837411669823896)}
"""Arguments with large errors that other searches found, by function."""

Draw = Callable[[str, np.random.Generator, int], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Subject:
    """A function under measurement.

    Attributes:
      name: its name, as in ``BOUNDS``.
      function: it, on values of a builder.
      exact: it, on mpmath's numbers.
      arity: number of operands.
      draw: ``(dtype, rng, count) -> operands``: points in proportion to ``count``.
    """

    name: str
    function: Any
    exact: Callable[..., Any]
    arity: int
    draw: Draw


def _subjects() -> list[Subject]:
    """All functions, as the tests describe them."""
    found = [
        Subject(case.name, case.function, case.exact, 1, _points_of(module, case))
        for module in (test_math_exponential, test_math_trigonometry, test_math_special)
        for case in module.CASES
    ]
    found += [
        Subject(name, function, exact, 2, _pairs)
        for name, function, exact, _ in test_math_trigonometry.PAIRS
    ]
    found.append(Subject("pow", power.pow, test_math_exponential._exact_power, 2, _powers))
    missing = set(BOUNDS) ^ {subject.name for subject in found}
    if missing:
        raise ValueError(f"functions without a bound, or bounds without a test: {sorted(missing)}")
    order = list(BOUNDS)
    return sorted(found, key=lambda subject: order.index(subject.name))


def _points_of(module: Any, case: Any) -> Draw:
    """The points of a test: edges of the format, random bits, and its ranges, dense and random."""
    zeros = test_math_special._negative_zeros().get(case.name, [])
    hard = HARD.get(case.name, ())

    def draw(dtype: str, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
        x = module._points(case, dtype, rng, count)
        around = test_math_special._around(zeros, dtype)
        return (np.concatenate([x, around, np.array(hard, dtype)]),)

    return draw


def _pairs(dtype: str, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Two numbers of any magnitude, alike or not, and of magnitude 1."""
    with np.errstate(over="ignore"):
        y, x = test_math_trigonometry._pairs(dtype, rng, count)
    usual = (y != 0) & (x != 0)  # mpmath has no signed zeros
    return y[usual], x[usual]


def _powers(dtype: str, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Bases of any magnitude and near 1 with exponents up to overflow; both moderate; any bits."""
    end = {"f4": 155.0, "f8": 1100.0}[dtype]
    wide = np.abs(random_bits(rng, dtype, count))
    wide = wide[(wide != 0) & (wide != 1)]
    near_1 = random_in(rng, dtype, 1 + 1e-5, 1.01, count)
    bases = np.concatenate([wide, near_1])
    up_to_the_ends = rng.uniform(-end, end, bases.size) / np.log2(bases.astype("f8"))
    parts = [
        (bases, up_to_the_ends.astype(dtype)),
        (rng.uniform(0.01, 9, count), rng.uniform(-9, 9, count)),
        (-rng.uniform(0.01, 9, count), rng.integers(-40, 40, count)),
        (random_bits(rng, dtype, count), random_bits(rng, dtype, count)),
    ]
    x = np.concatenate([part[0] for part in parts]).astype(dtype)
    y = np.concatenate([part[1] for part in parts]).astype(dtype)
    usual = np.isfinite(y) & (x != 0)
    return x[usual], y[usual]


def measure(subject: Subject, dtype: str, at_least: int) -> dict[str, Any]:
    """The largest error of a function in ulp, and where it is."""
    rng = np.random.default_rng(zlib.crc32(f"{subject.name} {dtype}".encode()))
    count = 64
    operands = subject.draw(dtype, rng, count)
    while operands[0].size < at_least:
        count = -(-count * max(at_least + 1, operands[0].size) // operands[0].size) + 1
        operands = subject.draw(dtype, rng, count)
    got = Compiled(subject.function, dtype, LANES, subject.arity)(*operands)
    errors = np.concatenate(
        [
            ulp_errors(
                got[start : start + CHUNK],
                subject.exact,
                *(x[start : start + CHUNK] for x in operands),
                precision_bits=PRECISION_BITS,
            )
            for start in range(0, got.size, CHUNK)
        ]
    )
    worst = int(np.argmax(errors))
    return {
        "points": int(errors.size),
        "ulp": round(float(errors[worst]), 3),
        "at": [repr(x[worst].item()) for x in operands],
    }


def main() -> int:
    """Measure functions and write the file; fails when a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--only", nargs="*", help="functions; what is known of the others is kept")
    options = parser.parse_args()
    start = time.process_time()
    measured: dict[str, dict[str, Any]] = {}
    if options.only:
        measured = json.loads(DATA.read_text(encoding="utf-8"))["functions"]
    wrong = []
    for subject in _subjects():
        if options.only and subject.name not in options.only:
            continue
        rows = {dtype: measure(subject, c, options.points) for dtype, c in DTYPES.items()}
        measured[subject.name] = rows
        print(subject.name, *(f"{row['ulp']:.3f}" for row in rows.values()), flush=True)
        wrong += [subject.name for row in rows.values() if row["ulp"] > BOUNDS[subject.name]]
    print(f"{time.process_time() - start:.0f} s")
    least = min(row["points"] for rows in measured.values() for row in rows.values())
    ordered = {name: measured[name] for name in BOUNDS}
    text = json.dumps({"points": min(least, options.points), "functions": ordered}, indent=1)
    DATA.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {DATA.relative_to(DOCS.parent)}")
    if wrong:
        print(f"larger than their bounds: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
