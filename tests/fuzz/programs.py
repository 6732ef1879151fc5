"""Values: random programs, by interpreter, machine code and batching, against NumPy and loops.

A program is a list of assignments, Python text in NumPy's words. All values that it computes are
results, and every step is judged on its own: NumPy computes it from the operands that the judged
run found, so that rounding of earlier steps does not add up. Runs of the program:

``eager``
    ``functrans.numpy`` on ndarrays.
``jvp``
    Under a pushing trace, in floating arguments.
``interpreted``, ``native``
    ``jit`` without and with machine code.
``alone``
    ``jit`` native with the last value as the only result, to the bit the one among all.
``vmap``, ``jit(vmap)``
    Batched arguments, against a loop.
``captured``
    ``jit`` native with the first argument traced, and arrays that the program captures as the rest.
``jit(jvp)``, ``jit(vjp)``
    The same values beside derivatives in floating arguments; only ``batches`` has these runs.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import functrans as ft
from functrans.errors import CacheFormatError, CompilationError, FunctransError, JaxprTypeError

from .arrays import drawn_array
from .common import Case, Finding, Kind
from .grammar import DTYPES, drawn_expression
from .judging import compare, leaves
from .known import is_numpys_own
from .reference import DISPATCHED, PLAIN, TRACED

MAX_SIZE = 400
RUNS = ("eager", "jvp", "interpreted", "native", "alone", "vmap", "jit(vmap)", "captured")
UNJITTED = ("eager", "jvp", "vmap")
DERIVED = ("jvp", "jit(jvp)", "jit(vjp)")
OPERAND = re.compile(r"\bv\d+\b")
LEAST_SQUARES = re.compile(r"lstsq|pinv")
NUMBER = re.compile(r"-?\b\d[\d.]*\b")
# Refusals that would be mistakes of the library in a program that NumPy runs.
NEVER = (CacheFormatError, CompilationError, JaxprTypeError)


_code = functools.lru_cache(10_000)(lambda text: compile(text, "<program>", "eval"))


def evaluated(text: str, words: dict[str, Any], values: dict[str, Any]) -> Any:
    """The value of an expression."""
    return eval(_code(text), {**words, **values})  # a program is Python text


def operands_of(text: str) -> list[str]:
    """Names of earlier values in an expression."""
    return list(dict.fromkeys(OPERAND.findall(text)))


def pattern_of(text: str) -> str:
    """An expression without names and numbers, for signatures."""
    return NUMBER.sub("#", OPERAND.sub("v", text))


def returns(text: str, values: dict[str, Any]) -> bool:
    """Whether NumPy comes back: LAPACK's least squares may not, from numbers that are infinite."""
    operands = [values[name] for name in operands_of(text) if LEAST_SQUARES.search(text)]
    return all(np.isfinite(x).all() for x in operands if x.dtype.kind in "fc")


class Program:
    """The function that a case describes.

    Attributes:
      args: names and arrays.
      steps: names of what is assigned, expression, policy.
    """

    def __init__(self, case: Case) -> None:
        self.args = {n: np.asarray(evaluated(t, PLAIN, {})) for n, t in case["args"].items()}
        self.steps = [tuple(step) for step in case["steps"]]

    def function(self, words: dict[str, Any], last_only: bool = False) -> Callable[..., Any]:
        """A function of the arguments that returns what all steps assign, or the last one."""

        def run(*args: Any) -> Any:
            values = dict(zip(self.args, args, strict=True))
            found = []
            for names, text, _ in self.steps:
                result = evaluated(text, words, values)
                # Numbers have fewer methods than arrays, and take no item assignment.
                parts = [np.asarray(v) if np.isscalar(v) else v for v in leaves(result)]
                values.update(zip(names, parts, strict=True))
                found.append(parts)
            return found[-1] if last_only else found

        return run

    def judge(self, args: list[Any], found: list[Any], counts: Counter[str]) -> None:
        """Compare each step with NumPy on what the run itself found before it."""
        values = dict(zip(self.args, args, strict=True))
        for (names, text, policy), result in zip(self.steps, found, strict=True):
            read = {name: values[name] for name in operands_of(text)}
            values.update(zip(names, (np.asarray(part) for part in result), strict=True))
            try:
                expected = leaves(evaluated(text, PLAIN, read))
            except ValueError:  # values of a row that NumPy refuses, and compiled code cannot
                counts["refused by NumPy"] += 1
                continue
            # the magnitude of int8's -128 is no int8
            magnitudes = {
                name: np.abs(value.astype(np.int64) if value.dtype.kind == "i" else value)
                for name, value in read.items()
            }

            def of_magnitudes(text: str = text, read: dict[str, Any] = magnitudes) -> Any:
                return evaluated(text, PLAIN, read)

            counts["steps"] += 1
            try:
                compare(result, expected, policy, list(read.values()), of_magnitudes, counts)
            except Finding as finding:
                reason = is_numpys_own(text, read, result, expected)
                if reason is None:
                    what, how = finding.args
                    raise Finding(f"{what}: {pattern_of(text)}", f"{text}: {how}") from None
                counts[f"NumPy's own: {reason}"] += 1


def _supported(values: list[Any]) -> bool:
    return all(
        isinstance(v, (np.ndarray, np.generic)) and v.dtype.str[1:] in DTYPES and v.size <= MAX_SIZE
        for v in values
    )


def _batched(case: Case, args: list[np.ndarray]) -> tuple[list[np.ndarray], tuple[int | None, ...]]:
    """Arguments with a batch of three, different rows; those not batched by the case stay."""
    stacked: list[np.ndarray] = []
    for x, axis in zip(args, case["axes"], strict=True):
        rows = [x, np.roll(x, 1), np.roll(x[::-1] if x.ndim else x, 2)]
        stacked.append(x if axis is None else np.stack(rows, axis))
    return stacked, tuple(case["axes"])


_OF_VALUES = ("All-NaN", "negative integer powers")
"""Words of NumPy's errors that values decide about."""


class Programs(Kind):
    """See the module's docstring.

    Attributes:
      sizes: least and largest number of arguments, and of steps.
      runs: what is drawn from.
      always: the run that every case has.
    """

    name = "programs"
    sizes = ((1, 3), (1, 8))
    runs = RUNS
    always = "native"

    def accepts(self, text: str, values: dict[str, Any]) -> bool:
        """Whether an expression that NumPy computes may be a step."""
        return True

    def draw(self, rng: np.random.Generator) -> Case:
        is_eager = bool(rng.random() < 0.1)
        n_args, wanted = (int(rng.integers(low, high + 1)) for low, high in self.sizes)
        args = {f"v{i}": drawn_array(rng) for i in range(n_args)}
        values = {name: np.asarray(evaluated(text, PLAIN, {})) for name, text in args.items()}
        steps: list[list[Any]] = []
        for _ in range(40 * wanted):
            if len(steps) == wanted:
                break
            text, policy = drawn_expression(rng, values, is_eager)
            if not returns(text, values):
                continue
            try:
                with np.errstate(all="ignore"):
                    results = [np.asarray(v) for v in leaves(evaluated(text, PLAIN, values))]
            except Exception:  # not defined for such operands
                continue
            if results and _supported(results) and self.accepts(text, values):
                names = [f"v{len(values) + i}" for i in range(len(results))]
                values.update(zip(names, results, strict=True))
                steps.append([names, text, policy])
        pool = ("eager", "jvp") if is_eager else self.runs
        runs = [run for run in pool if rng.random() < (1.0 if run == self.always else 0.4)]
        shared = [rng.random() < 0.2 for _ in args]
        axes = [None if s and not all(shared) else 0 for s in shared]
        words = "functrans.numpy" if rng.random() < 0.5 else "numpy"
        return {
            "args": args,
            "steps": steps,
            "runs": runs or ["eager"],
            "axes": axes,
            "words": words,
        }

    def run(self, case: Case, counts: Counter[str]) -> None:
        program = Program(case)
        for name in case["runs"]:
            with np.errstate(all="ignore"):
                try:
                    self._run(name, program, case, counts)
                except Finding as finding:
                    raise Finding(f"{name}: {finding.args[0]}", finding.args[1]) from None

    def _run(self, name: str, program: Program, case: Case, counts: Counter[str]) -> None:
        try:
            if name == "alone":
                self._alone(program, case, counts)
                return
            fun, args = call_of(name, program, case)
            if name == "interpreted":
                with ft.config(native=False):
                    found = ft.jit(fun)(*args)
            else:
                found = (fun if name in UNJITTED else ft.jit(fun))(*args)
        except Finding:
            raise
        except Exception as error:
            reason = refusal(error)
            if reason is None:
                raise
            counts[f"refused, {name}: {reason}"] += 1
            return
        counts[f"programs, {name}"] += 1
        for row_args, row in rows_of(name, program, case, found):
            program.judge(row_args, row, counts)

    def _alone(self, program: Program, case: Case, counts: Counter[str]) -> None:
        if not program.steps:  # of all that was drawn NumPy took nothing
            return
        words, args = _words_of(case), list(program.args.values())
        among = ft.jit(program.function(words))(*args)[-1]
        alone = ft.jit(program.function(words, last_only=True))(*args)
        counts["programs, alone"] += 1
        compare(alone, [np.asarray(x) for x in among], "exact", args, lambda: None, counts)

    def smaller(self, case: Case) -> Iterator[Case]:
        for name in case["runs"]:
            if len(case["runs"]) > 1:
                yield {**case, "runs": [name]}
        for smaller in super().smaller(case):
            yield from closed(smaller)
        # A step's value as an argument, in place of the steps before it.
        if len(case["steps"]) > 1:
            yield from _cut(case)
        for name, text in case["args"].items():
            for simpler in _simpler(text):
                yield {**case, "args": {**case["args"], name: simpler}}

    def script(self, case: Case) -> str:
        names = ", ".join(case["args"])
        body = [f"    {', '.join(n)} = {text}" for n, text, _ in case["steps"]]
        last = ", ".join(case["steps"][-1][0])
        return "\n".join([
            f"# runs: {case['runs']}, batch axes: {case['axes']}, np is {case['words']}",
            "import functrans as ft, numpy, numpy as np",
            "from functrans import lax",
            "from functrans.numpy.at import At as at",
            "from numpy import inf, nan",
            f"def f({names}):",
            *body,
            f"    return {last}",
            *(f"{n} = {text}" for n, text in case["args"].items()),
            f"print(f({names}))",
            f"print(ft.jit(f)({names}))",
        ])  # fmt: skip


def _words_of(case: Case) -> dict[str, Any]:
    return TRACED if case["words"] == "functrans.numpy" else DISPATCHED


def refusal(error: Exception) -> str | None:
    """Why a program that NumPy runs may be refused: a word for the summary; ``None`` if it may not.

    LAPACK may fail by rounding, and NumPy refuses values, in a lane or after an overflow.
    """
    if isinstance(error, FunctransError):
        return None if isinstance(error, NEVER) else type(error).__name__
    if isinstance(error, np.linalg.LinAlgError):
        return "LinAlgError"
    if isinstance(error, ValueError):
        return next((text for text in _OF_VALUES if text in str(error)), None)
    return None


def call_of(name: str, program: Program, case: Case) -> tuple[Callable[..., Any], list[Any]]:
    """What is called in a run, or jitted and called, and its arguments."""
    fun = program.function(TRACED if name == "eager" else _words_of(case))
    args = list(program.args.values())
    if name == "captured":
        return lambda x: fun(x, *args[1:]), args[:1]
    if name in ("vmap", "jit(vmap)"):
        stacked, axes = _batched(case, args)
        return ft.vmap(fun, in_axes=axes), stacked
    if name in DERIVED:
        way = _pulled if name == "jit(vjp)" else _pushed
        return lambda *xs: way(fun, xs), args
    return fun, args


def rows_of(name: str, program: Program, case: Case, found: Any) -> list[tuple[list[Any], Any]]:
    """The rows of a run: arguments, and what its steps found; one, but for a batch."""
    args = list(program.args.values())
    if name not in ("vmap", "jit(vmap)"):
        return [(args, found[0] if name in DERIVED else found)]
    stacked, axes = _batched(case, args)
    return [
        (
            [
                x if a is None else np.asarray(np.take(x, i, a))
                for x, a in zip(stacked, axes, strict=True)
            ],
            ft.tree.map(lambda y, i=i: np.asarray(y)[i, ...], found),
        )
        for i in range(3)
    ]


def _of_floating(fun: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The function of the arguments that have derivatives, and these.

    It returns the results that have some, and beside them all.
    """
    floating = [i for i, x in enumerate(args) if x.dtype.kind in "fc"]

    def of_floating(*chosen: Any) -> Any:
        given = list(args)
        for i, x in zip(floating, chosen, strict=True):
            given[i] = x
        found = fun(*given)
        return [[v for v in part if np.dtype(v.dtype).kind in "fc"] for part in found], found

    return of_floating, tuple(args[i] for i in floating)


def _pushed(fun: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The results under ``jvp`` in the arguments that have derivatives, and the tangents."""
    of_floating, point = _of_floating(fun, args)
    if not point:
        return fun(*args), []
    ones = tuple(np.ones_like(x) for x in point)
    _, tangents, found = ft.jvp(of_floating, point, ones, has_aux=True)
    return found, tangents


def _pulled(fun: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The results under ``vjp`` in the arguments that have derivatives, and the cotangents."""
    of_floating, point = _of_floating(fun, args)
    if not point:
        return fun(*args), []
    results, pull, found = ft.vjp(of_floating, *point, has_aux=True)
    return found, pull([[np.ones_like(v) for v in part] for part in results])


def closed(case: Case) -> Iterator[Case]:
    """The case, if its steps read only what is still assigned; without arguments nobody reads."""
    known = set(case["args"])
    read: set[str] = set()
    for names, text, _ in case["steps"]:
        used = set(operands_of(text))
        if not used <= known:
            return
        read |= used
        known |= set(names)
    kept = [i for i, name in enumerate(case["args"]) if name in read] or [0]
    names = list(case["args"])
    smaller = {**case, "args": {names[i]: case["args"][names[i]] for i in kept}}
    if "axes" in case:
        axes = [case["axes"][i] for i in kept]
        smaller["axes"] = axes if axes != [None] * len(axes) else [0, *axes[1:]]
    yield smaller


def _literal(x: np.ndarray) -> str:
    with np.printoptions(threshold=10**6, floatmode="unique"):
        if x.dtype.kind == "c":
            numbers = "[" + ", ".join(f"complex({v.real}, {v.imag})" for v in x.ravel()) + "]"
        else:
            numbers = str(x.ravel().tolist())
    return f"np.array({numbers}, '{x.dtype.str[1:]}').reshape({x.shape})"


def _cut(case: Case) -> Iterator[Case]:
    """The last steps alone, of the values that NumPy finds for the first ones."""
    program = Program(case)
    with np.errstate(all="ignore"):
        try:
            found = program.function(PLAIN)(*program.args.values())
        except Exception:  # what differs is that NumPy refuses it
            return
    for cut in (len(case["steps"]) - 1, len(case["steps"]) // 2, 1):
        made = {
            name: _literal(np.asarray(x))
            for (names, *_), result in zip(case["steps"][:cut], found, strict=False)
            for name, x in zip(names, result, strict=True)
        }
        args = {**case["args"], **made}
        axes = case["axes"] + [0] * len(made)
        yield from closed({**case, "args": args, "axes": axes, "steps": case["steps"][cut:]})


def _simpler(text: str) -> Iterator[str]:
    """The same array in C order; then with fewer elements of its own."""
    x = np.asarray(evaluated(text, PLAIN, {}))
    plain = _literal(x.astype(x.dtype.newbyteorder("=")))
    if plain != text:
        yield plain
    for axis in range(x.ndim):
        for part in (slice(0, x.shape[axis] // 2), slice(x.shape[axis] // 2, None)):
            cut = x[(slice(None),) * axis + (part,)]
            if 0 < cut.size < x.size:
                yield _literal(cut)


KIND = Programs()
