"""Derivatives to order 3: every composition of transforms against differences and each other.

A case is a program (``programs``) of float64 arguments, summed up to a number, and *words*: lists
of transforms, applied from left to right to the function ``g`` of the flattened arguments. Words of
derivatives take a number-valued function to its derivative along a direction, whichever way they
compute it (``grad`` times the direction, ``jvp``, a row of the Jacobian, ...), so that all words
with the same number of derivatives have one value. It is judged by

- Richardson differences of NumPy's ``g``, or of the order below, along the same direction;
- the pushed derivative of the same order, to rounding.

Differences are only trusted where they converge and both one-sided quotients have the same limit:
a kink, a jump or an infinite slope within reach of the steps makes them no judge, and is counted.
There, and in higher orders, the words must still agree. ``HIDDEN`` functions have declared
derivatives at kinks that a smooth function around them may hide from differences, as in
``abs(z) ** 2`` at 0: if differences agree at points nearby, the point is one of these.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import functrans as ft
from functrans.errors import FunctransError

from .common import Case, Finding, Kind, shorter
from .grammar import drawn_expression, filled
from .judging import leaves
from .programs import NEVER, Program, closed, evaluated
from .reference import DISPATCHED, PLAIN

HIDDEN = re.compile(
    r"abs|hypot|norm|sqrt|svd|eig|\*\*|power|pow|std|cond|sort|max|min|clip|median|quantile"
    r"|percentile|logical_|equal|nonzero|sign|heaviside|isclose"
    r"|select\(|where\(v\d+( ==|,)"  # a number as the condition: alone at 0
)
MAX_VALUE = 1e3
ROUNDING = 1e-8
STEP = 4e-3
SHORT_STEP = 3.1e-7

SMOOTH = (
    "np.sin({a}) * {b}",
    "np.tanh({a}) + {b}",
    "np.exp(-({a} ** 2))",
    "np.log1p({a} ** 2)",
    "np.sqrt(1 + {a} * {b})",
    "{a} / (1.5 + np.sin({b}))",
    "(1.2 + np.sin({a})) ** np.cos({b})",
    "np.arctan2({a}, 1.5 + np.cos({b}))",
    "np.hypot({a}, {b})",
    "np.logaddexp({a}, {b})",
    "np.tanh({a}) ** {n}",
    "np.abs({a}) ** {f}",
    "np.cumprod(np.cos({a}), axis={k})",
    "np.prod(np.tanh({a}), axis={k})",
    "np.linalg.solve(np.tanh({a}) + 3 * np.eye(len({a})), {b})",
    "np.linalg.inv(np.tanh({a}) + 3 * np.eye(len({a})))",
    "np.linalg.det(np.tanh({a}))",
    "np.linalg.eigh({a} + {a}.T)[0]",
    "np.tanh({a}) @ np.tanh({b})",
    "np.where({a} > {b}, np.sin({a}), {b} * {b})",
    "np.abs(np.fft.fft({a})) ** 2",
    "np.real(np.exp(1j * {a}))",
    "np.interp({a}, np.array([-2.5, -0.1, 0.9, 3.0]), np.array([1.0, -1.0, 3.0, 0.5]))",
    "lax.scan(lambda c, x: (np.sin(c) * x, c * c), {a}[0], {a})",
    "lax.fori_loop(0, {n}, lambda i, c: np.tanh(c) * {b} + i, {a} * {b})",
    "lax.while_loop(lambda c: np.sum(c * c) > 1, lambda c: c * 0.4, {a})",
    "lax.cond(np.sum({a}) > 0.3, np.sin, lambda x: x ** 3, {a})",
    "lax.switch({n}, [np.sin, np.cos, lambda x: x * x], {a})",
    "ft.vmap(lambda r: np.sum(r) * np.sin(r))({a})",
    "ft.vmap(lambda r, s: np.tanh(r) * s, in_axes=(0, None))({a}, {b})",
    "ft.jit(lambda x, y: np.sin(x) * np.exp(-y * y))({a}, {b})",
    "ft.checkpoint(lambda x: np.sin(x) * x)({a})",
)

ONE = ("jvp", "grad", "vjp", "jacfwd", "jacrev", "linearize", "columns", "value_and_grad")
TWO = ("hessian", "hvp", "jacfwd(jacrev)", "vhp", "jet")
NONE = ("jit", "interpreted", "vmap", "checkpoint")
ORDER = {**dict.fromkeys(ONE, 1), **dict.fromkeys(TWO, 2), **dict.fromkeys(NONE, 0)}


def order_of(word: list[str]) -> int:
    """How often a word differentiates."""
    return sum(ORDER[letter] for letter in word)


Scalar = Callable[[Any], Any]


def _once(letter: str, f: Scalar, t: np.ndarray) -> Scalar:
    """The derivative along ``t``."""
    ways: dict[str, Scalar] = {
        "jvp": lambda x: ft.jvp(f, (x,), (t,))[1],
        "grad": lambda x: ft.grad(f)(x) @ t,
        "vjp": lambda x: ft.vjp(f, x)[1](np.float64(1.0))[0] @ t,
        "jacfwd": lambda x: ft.jacfwd(f)(x) @ t,
        "jacrev": lambda x: ft.jacrev(f)(x) @ t,
        "linearize": lambda x: ft.linearize(f, x)[1](t),
        "columns": lambda x: ft.vmap(lambda s: ft.jvp(f, (x,), (s,))[1])(np.eye(t.size)) @ t,
        "value_and_grad": lambda x: ft.value_and_grad(f)(x)[1] @ t,
    }
    return ways[letter]


def _twice(letter: str, f: Scalar, t: np.ndarray, s: np.ndarray) -> Scalar:
    """The derivative along ``t`` and ``s``."""
    zero = np.zeros_like(t)

    def jet(x: Any) -> Any:
        """By polarisation: of two second derivatives along one direction each."""
        along = [ft.jet(f, (x,), ((v, zero),))[1][1] for v in (t + s, t - s)]
        return (along[0] - along[1]) / 4

    ways: dict[str, Scalar] = {
        "hessian": lambda x: t @ ft.hessian(f)(x) @ s,
        "hvp": lambda x: ft.hvp(f, (x,), (t,)) @ s,
        "vhp": lambda x: ft.vhp(f, (x,), (t,)) @ s,
        "jacfwd(jacrev)": lambda x: t @ ft.jacfwd(ft.jacrev(f))(x) @ s,
        "jet": jet,
    }
    return ways[letter]


def _unchanged(letter: str, f: Scalar, t: np.ndarray) -> Scalar:
    """A transform that keeps the value; a batch has constants in its other rows.

    They are not functions of the argument: where ``f`` is infinite in them, 0 * inf would arrive.
    """

    def interpreted(x: Any) -> Any:
        with ft.config(native=False):
            return ft.jit(f)(x)

    ways: dict[str, Scalar] = {
        "jit": ft.jit(f),
        "interpreted": interpreted,
        "vmap": lambda x: ft.vmap(f)(np.stack([x, t, 0.5 - t]))[0],
        "checkpoint": ft.checkpoint(f),
    }
    return ways[letter]


def composed(word: list[str], f: Scalar, directions: list[np.ndarray]) -> Scalar:
    """A word applied to a function."""
    k = 0
    for letter in word:
        n = ORDER[letter]
        if n == 0:
            f = _unchanged(letter, f, directions[0])
        elif n == 1:
            f = _once(letter, f, directions[k])
        else:
            f = _twice(letter, f, directions[k], directions[k + 1])
        k += n
    return f


def flattened(program: Program, words: dict[str, Any]) -> tuple[Scalar, np.ndarray]:
    """The program as a function of one vector, and where it is."""
    fun = program.function(words)
    shapes = [x.shape for x in program.args.values()]
    ends = np.cumsum([x.size for x in program.args.values()]).tolist()
    point = np.concatenate([np.ravel(x) for x in program.args.values()])

    def total(x: Any) -> Any:
        starts = [0, *ends]
        parts = [
            x[start:end].reshape(shape)
            for start, end, shape in zip(starts, ends, shapes, strict=False)
        ]
        found = [v for part in fun(*parts) for v in part]
        return sum((_weighted(v, k) for k, v in enumerate(found)), 0.0) + 0.5 * x[0]

    return total, point


def _weighted(value: Any, k: int) -> Any:
    """A combination of the elements, so that each of them counts."""
    if np.dtype(value.dtype).kind not in "fc":
        return 0.0
    weights = np.cos(np.arange(value.size) + k).reshape(value.shape)
    return np.sum(weights * value.real) + (
        np.sum(weights * value.imag) if value.dtype.kind == "c" else 0.0
    )


def _number(f: Scalar, x: np.ndarray) -> float:
    """A value; NaN where a step left the domain of a function, and LAPACK refused its NaN."""
    try:
        return float(f(x))
    except np.linalg.LinAlgError:
        return math.nan


class Difference:
    """Richardson's extrapolation of central differences.

    Attributes:
      value: the derivative.
      error: how far the last two extrapolations are apart.
      is_trusted: whether it converges, from both sides, to what a much shorter step sees: stairs as
        of ``np.round(x, 4)`` look smooth from afar.
    """

    def __init__(self, f: Scalar, x: np.ndarray, t: np.ndarray) -> None:
        steps = [STEP / 2**i for i in range(4)]
        here = _number(f, x)
        ahead = [_number(f, x + h * t) for h in steps]
        behind = [_number(f, x - h * t) for h in steps]
        table = [[(a - b) / (2 * h) for a, b, h in zip(ahead, behind, steps, strict=True)]]
        for k in range(1, 4):
            row = table[-1]
            table.append([(4**k * b - a) / (4**k - 1) for a, b in itertools.pairwise(row)])
        self.value = table[3][0]
        self.error = abs(table[3][0] - table[2][1]) + abs(table[2][1] - table[2][0])
        size = max(abs(here), 1.0)
        noise = 1e-12 * size / steps[-1]
        bends = [abs(a + b - 2 * here) / h for a, b, h in zip(ahead, behind, steps, strict=True)]
        is_even = all(b < 0.7 * a + noise for a, b in itertools.pairwise(bends))
        nearest = _number(f, x + SHORT_STEP * t) - _number(f, x - SHORT_STEP * t)
        short = nearest / (2 * SHORT_STEP)
        self.is_trusted = bool(
            np.isfinite([*ahead, *behind, here]).all()
            and is_even
            and abs(short - self.value) < 0.02 * max(abs(self.value), size)  # no stairs
            and self.error < 1e-5 * max(abs(self.value), 1e-2 * size)
        )

    def agrees(self, found: float) -> bool:
        """Whether a derivative is this one, to the accuracy of differences."""
        return abs(found - self.value) <= 1e-5 * max(1.0, abs(found)) + 100 * self.error


def _magnitude(f: Scalar, x: np.ndarray, t: np.ndarray) -> float:
    """The size of what is added up in a derivative along a direction."""
    return float(np.sum(np.abs(ft.grad(f)(x) * t)))


class Derivatives(Kind):
    """See the module's docstring."""

    name = "derivatives"

    def draw(self, rng: np.random.Generator) -> Case:
        args, values = self.drawn_arguments(rng, 2)
        steps = self.drawn_steps(rng, values, int(rng.integers(1, 7)))
        words = [_drawn_word(rng, order) for order in (1, 1, *rng.choice([2, 2, 3], size=2))]
        return {
            "args": args,
            "steps": steps,
            "words": words,
            "directions": int(rng.integers(10**6)),
        }

    def drawn_arguments(
        self, rng: np.random.Generator, most: int
    ) -> tuple[dict[str, str], dict[str, np.ndarray]]:
        """Texts and values of one to ``most`` arguments."""
        args = {f"v{i}": _drawn_point(rng) for i in range(int(rng.integers(1, most + 1)))}
        return args, {name: np.asarray(evaluated(text, PLAIN, {})) for name, text in args.items()}

    def drawn_steps(
        self, rng: np.random.Generator, values: dict[str, Any], wanted: int, is_deep: bool = True
    ) -> list[list[Any]]:
        """Steps that NumPy computes.

        Args:
          rng: the generator.
          values: of the arguments; those of the steps are added.
          wanted: number of steps; fewer where many are not defined.
          is_deep: whether steps may read earlier ones.
        """
        steps: list[list[Any]] = []
        readable = values if is_deep else dict(values)
        for _ in range(40 * wanted):
            if len(steps) == wanted:
                break
            text = _drawn_step(rng, readable)
            try:
                with np.errstate(all="ignore"):
                    results = [np.asarray(v) for v in leaves(evaluated(text, PLAIN, readable))]
            except Exception:
                continue
            if results and all(_is_moderate(v) for v in results):
                names = [f"v{len(values) + i}" for i in range(len(results))]
                values.update(zip(names, results, strict=True))
                steps.append([names, text, "exact"])
        return steps

    def run(self, case: Case, counts: Counter[str]) -> None:
        program = Program(case)
        plain, x = flattened(program, PLAIN)
        traced, _ = flattened(program, DISPATCHED)
        rng = np.random.default_rng(case["directions"])
        directions = [rng.uniform(0.3, 1.0, x.size) * rng.choice([-1, 1], x.size) for _ in range(3)]
        with np.errstate(all="ignore"):
            orders = {order_of(word) for word in case["words"]}
            hides = any(HIDDEN.search(text) for _, text, _ in program.steps)
            lower: Scalar | None = plain
            for order in range(1, max(orders) + 1):
                pushed = composed(["jvp"] * order, traced, directions)
                words = [word for word in case["words"] if order_of(word) == order]
                try:
                    is_smooth = lower is not None and _judge(
                        lower, pushed, order, (x, directions[order - 1]), hides, counts
                    )
                    below = composed(["jvp"] * (order - 1), traced, directions)
                    scale = _magnitude(below, x, directions[order - 1])
                except FunctransError as error:
                    _refused(error, "jvp", counts)
                    return
                expected = float(pushed(x))
                for word in words:
                    _judge_word(word, traced, x, directions, expected, scale, counts)
                lower = pushed if is_smooth else None

    def smaller(self, case: Case) -> Iterator[Case]:
        for word in case["words"]:
            if len(case["words"]) > 1:
                yield {**case, "words": [word]}
        for smaller in super().smaller(case):
            yield from closed(smaller)
        for i, word in enumerate(case["words"]):
            for part in shorter(word):
                if order_of(part):
                    yield {**case, "words": [*case["words"][:i], part, *case["words"][i + 1 :]]}

    def script(self, case: Case) -> str:
        fun = "\n".join(f"    {', '.join(n)} = {text}" for n, text, _ in case["steps"])
        results = ", ".join(name for names, *_ in case["steps"] for name in names)
        point = "\n".join(f"{n} = {text}" for n, text in case["args"].items())
        names = ", ".join(case["args"])
        return (
            f"# words: {case['words']}\n"
            "import functrans as ft, numpy, numpy as np\n"
            "from functrans import lax\n"
            "from functrans.numpy.at import At as at\n"
            f"def f({names}):\n{fun}\n    return [{results}]\n{point}\n"
            f"args = ({names},)\n"
            "print(ft.jvp(f, args, tuple(np.ones_like(x) for x in args))[1])\n"
            "eps = 1e-6\n"
            "print([(a - b) / (2 * eps) for a, b in zip(f(*(x + eps for x in args)), "
            "f(*(x - eps for x in args)))])\n"
        )


def _refused(error: FunctransError, what: str, counts: Counter[str]) -> None:
    if isinstance(error, NEVER):
        raise error
    counts[f"refused, {what}: {type(error).__name__}"] += 1


def _judge(
    lower: Scalar,
    pushed: Scalar,
    order: int,
    place: tuple[np.ndarray, np.ndarray],
    hides: bool,
    counts: Counter[str],
) -> bool:
    """The pushed derivative against differences of the order below; whether these are trusted."""
    x, t = place
    found = float(pushed(x))
    difference = Difference(lower, x, t)
    if not difference.is_trusted:
        counts[f"order {order}, differences no judge"] += 1
        return False
    counts[f"order {order}, against differences"] += 1
    if difference.agrees(found):
        return True
    away = np.cos(np.arange(x.size) + 1)
    nearby = [(y, Difference(lower, y, t)) for y in (x + h * away for h in (0.01, 0.03, 0.1))]
    trusted = [other.agrees(float(pushed(y))) for y, other in nearby if other.is_trusted]
    if hides and trusted and all(trusted):
        counts[f"order {order}, at a declared kink"] += 1
        return False
    raise Finding(f"order {order}: differences", f"{found} instead of {difference.value}")


def _judge_word(
    word: list[str],
    traced: Scalar,
    x: np.ndarray,
    directions: list[np.ndarray],
    expected: float,
    scale: float,
    counts: Counter[str],
) -> None:
    """A word against the pushed derivative of its order."""
    order = order_of(word)
    try:
        found = float(composed(word, traced, directions)(x))
    except FunctransError as error:
        _refused(error, " ".join(word), counts)
        return
    except np.linalg.LinAlgError:
        if "vmap" not in word:
            raise
        counts["another row of a batch is NaN, and NumPy refuses its SVD"] += 1
        return
    counts[f"order {order}, words compared"] += 1
    if not (np.isfinite(expected) and np.isfinite(scale)):
        return
    if not abs(found - expected) <= ROUNDING * max(scale, abs(expected), 1.0):
        raise Finding(f"order {order}: words differ", f"{word}: {found} instead of {expected}")


def _is_moderate(value: np.ndarray) -> bool:
    """Values that differences of a few thousandths can be taken of.

    What is left of a 0 that was rounded is none: a quotient by it is noise in values and slopes.
    """
    if value.dtype.kind in "fc":
        fits = value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1) == 8
        parts = np.abs([value.real, value.imag])
        is_noise = bool(np.any((parts > 0) & (parts < 1e-13)))
        return fits and value.size <= 60 and not is_noise and bool(np.all(parts < MAX_VALUE))
    return value.size <= 60


def _drawn_point(rng: np.random.Generator) -> str:
    shape = ((), (1,), (3,), (2, 2), (2, 3), (3, 3), (5,), (1, 3))[rng.integers(8)]
    numbers = rng.uniform(-1.9, 1.9, int(np.prod(shape)))
    if rng.random() < 0.15:  # ties, zeros, kinks
        numbers = rng.choice([0.0, 1.0, -1.0, 0.5], numbers.size)
    return f"np.array({np.round(numbers, 3).tolist()}).reshape({shape})"


def _drawn_step(rng: np.random.Generator, values: dict[str, Any]) -> str:
    if rng.random() < 0.5:
        return drawn_expression(rng, values, is_eager=False)[0]
    return filled(rng, SMOOTH[rng.integers(len(SMOOTH))], values)


def _drawn_word(rng: np.random.Generator, order: int) -> list[str]:
    word: list[str] = []
    while order_of(word) < order:
        letter = str(rng.choice([*ONE, *TWO])) if rng.random() < 0.65 else str(rng.choice(NONE))
        if order_of(word) + ORDER[letter] <= order and word[-1:] != [letter]:
            word.append(letter)
    return [*word, str(rng.choice(NONE))] if rng.random() < 0.5 else word


KIND = Derivatives()
