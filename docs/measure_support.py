"""Find out what of NumPy and SciPy is supported and how, for the page ``support.md``.

Lists the public functions of the installed NumPy and SciPy, runs every case of the test tables that
compare derivatives with differences, and writes what was found to ``docs/support.json``, which
``docs/generate.py`` renders: which functions are there, which have a tested derivative in forward
and in reverse mode and of second order, and which primitives of theirs have no native form. The
file keeps the names, so that the page does not depend on the versions that are installed.

Run ``python docs/measure_support.py`` after functions or test tables changed (a minute).
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import csr_array

DOCS = Path(__file__).resolve().parent
DATA = DOCS / "support.json"
TESTS = DOCS.parent / "tests"
sys.path[:0] = [str(DOCS.parent), str(TESTS), str(TESTS / "numpy"), str(TESTS / "scipy")]

import functrans as ft  # noqa: E402  # beside the tests, found through the line above
from functrans.core.dispatch import Tracer  # noqa: E402
from functrans.core.jaxpr import Jaxpr, subjaxprs  # noqa: E402
from functrans.core.lowering import Routine  # noqa: E402
from functrans.numpy.tables import MODULES  # noqa: E402
from functrans.numpy.ufuncs import UFUNCS  # noqa: E402

NUMPY = (
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "numpy.lib.scimath",
    "numpy.polynomial.polynomial",
    "numpy.polynomial.chebyshev",
    "numpy.polynomial.legendre",
    "numpy.polynomial.hermite",
    "numpy.polynomial.hermite_e",
    "numpy.polynomial.laguerre",
)
SCIPY = (
    "scipy.special",
    "scipy.linalg",
    "scipy.stats",
    "scipy.signal",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.ndimage",
    "scipy.interpolate",
    "scipy.fft",
    "scipy.sparse.linalg",
)
OURS = {"numpy.lib.scimath": "functrans.numpy.scimath"}
CASE_MODULES = {
    "numpy": (
        "test_functions",
        "test_further_functions",
        "test_indexing",
        "test_methods",
        "test_plain_numpy",
        "test_polynomial",
        "test_products",
        "test_reductions",
        "test_shaping",
        "test_ufuncs",
    ),
    "scipy": (
        "test_fft",
        "test_interpolate",
        "test_linalg",
        "test_ndimage",
        "test_quadrature",
        "test_signal",
        "test_special_functions",
        "test_stats",
    ),
}
Function = Callable[..., Any]


# names ------------------------------------------------------------------------------------------


def public_names(path: str) -> list[str]:
    """The functions of a module, and what is called like one; no exceptions, no dtypes."""
    module = importlib.import_module(path)
    names = getattr(module, "__all__", None) or dir(module)
    found = []
    for name in sorted(set(names)):
        value = getattr(module, name, None)
        if name.startswith("_") or not callable(value) or name in ("test", "errstate"):
            continue
        if isinstance(value, type) and (
            path.startswith("numpy") or issubclass(value, (Exception, Warning))
        ):
            continue
        found.append(name)
    return found


def traced_functions() -> set[int]:
    """Identities of NumPy's functions that answer for traced arrays."""
    found = {id(ufunc) for ufunc in UFUNCS}
    for module in MODULES:
        for value in vars(module).values():
            found |= {id(function) for function in getattr(value, "numpy_functions", ())}
    return found


def status(path: str, name: str, traced: set[int]) -> str:
    """``traced``, ``plain`` (NumPy's own function, for what is not traced) or ``missing``."""
    theirs = getattr(importlib.import_module(path), name)
    own = OURS.get(path, f"functrans.{path}")
    try:
        ours = getattr(importlib.import_module(own), name, None)
    except ModuleNotFoundError as error:
        if error.name != own:
            raise
        return "missing"
    if id(theirs) in traced or hasattr(ours, "traced"):
        return "traced"
    if ours is None:
        return "missing"
    return "plain" if ours is theirs else "traced"


# cases ------------------------------------------------------------------------------------------


class Listener:
    """A namespace that remembers which of its functions were asked for."""

    def __init__(self, module: ModuleType, heard: set[str]) -> None:
        self._module = module
        self._heard = heard

    def __getattr__(self, name: str) -> Any:
        self._heard.add(f"{self._module.__name__.removeprefix('functrans.')}.{name}")
        return getattr(self._module, name)


def _tables(module: ModuleType) -> Iterator[Any]:
    """The cases that the tests of a module run over."""
    seen = set()
    for function in list(vars(module).values()):
        for mark in getattr(function, "pytestmark", ()):
            if mark.name != "parametrize":
                continue
            names = mark.args[0]
            names = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
            if names[0] != "case":
                continue
            for value in mark.args[1]:
                case = value.values[0] if hasattr(value, "values") else value
                case = case[0] if isinstance(case, tuple) else case
                if hasattr(case, "name") and id(case) not in seen:
                    seen.add(id(case))
                    yield case


def _special(case: Any, ours: Any) -> tuple[Function, tuple[Any, ...]]:
    """A function of elements, in the operands that have derivatives."""
    operands, positions = case.operands(), case.positions

    def fun(*values: Any) -> Any:
        given = list(operands)
        for i, value in zip(positions, values, strict=True):
            given[i] = value
        return getattr(ours, case.name)(*given)

    return fun, tuple(operands[i] for i in positions)


def _distribution(case: Any, ours: Any) -> tuple[Function, tuple[Any, ...]]:
    """The logarithm of a density in its argument, or of probabilities in their parameters."""
    distribution = getattr(ours, case.name)
    shapes = tuple(np.asarray(s, np.float64) for s in case.shapes)
    if hasattr(distribution, "logpdf"):
        points = np.asarray(case.points)
        return (lambda x, *s: distribution.logpdf(x, *s)), (points, *shapes)
    moving = tuple(range(len(shapes))) if case.moving is None else case.moving

    def fun(*values: Any) -> Any:
        given: list[Any] = list(case.shapes)
        for i, value in zip(moving, values, strict=True):
            given[i] = value
        return distribution.logpmf(np.asarray(case.points), *given)

    return fun, tuple(shapes[i] for i in moving)


def _others() -> Iterator[tuple[Function, tuple[Any, ...], set[str], bool]]:
    """Functions that have test files of their own, in place of rows of tables."""
    special, integrate, optimize = ft.scipy.special, ft.scipy.integrate, ft.scipy.optimize
    times, pair, two = np.linspace(0, 1, 4), np.array([0.5, 2.0]), np.asarray(2.0)

    def of(
        path: str, fun: Function, *args: Any
    ) -> tuple[Function, tuple[Any, ...], set[str], bool]:
        return fun, args, {f"scipy.{path}"}, True

    for name in ("logsumexp", "softmax", "log_softmax", "softplus"):
        yield of(f"special.{name}", getattr(special, name), pair)
    yield of("integrate.odeint", lambda y: integrate.odeint(lambda y, t: -y, y, times), pair)
    yield of(
        "integrate.solve_ivp", lambda y: integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), y).y, pair
    )
    for name in ("bisect", "brentq"):
        solve = getattr(optimize, name)
        yield of(f"optimize.{name}", lambda p, s=solve: s(lambda x: x * x - p, 0.0, 3.0), two)
    yield of("optimize.newton", lambda p: optimize.newton(lambda x: x * x - p, 1.0), two)
    yield of("optimize.rosen", optimize.rosen, pair)
    matrix = csr_array([[4.0, 1.0], [1.0, 3.0]])
    for name in ("cg", "bicgstab", "gmres"):
        krylov = getattr(ft.scipy.sparse.linalg, name)
        yield of(f"sparse.linalg.{name}", lambda b, s=krylov: s(matrix, b, tol=1e-13)[0], pair)
    yield of("sparse.linalg.spsolve", lambda b: ft.scipy.sparse.linalg.spsolve(matrix, b), pair)
    factors = ft.scipy.sparse.linalg.splu(matrix)
    yield of("sparse.linalg.splu", factors.solve, pair)
    yield of("sparse.linalg.factorized", ft.scipy.sparse.linalg.factorized(matrix), pair)


def _statistics(module: ModuleType) -> Iterator[tuple[Function, tuple[Any, ...], set[str], bool]]:
    """The rows of ``test_stats`` that are not distributions of numbers."""
    heard: set[str] = set()
    for name, options in module.SUMMARIES:
        heard = {f"scipy.stats.{name}"}
        function = getattr(module.ours, name)
        yield (lambda a, f=function, o=options: f(a, **o)), (module.A,), heard, True
    for name, method, operands, moving in module.VECTORS:
        heard = {f"scipy.stats.{name}"}
        function = getattr(getattr(module.ours, name), method)

        def fun(*values: Any, f: Any = function, o: Any = operands, m: Any = moving) -> Any:
            given = list(o)
            for i, value in zip(m, values, strict=True):
                given[i] = (value + value.T) / 2 if np.shape(o[i]) == (2, 2) else value
            return f(*given)

        yield fun, tuple(np.asarray(operands[i], np.float64) for i in moving), heard, True


def cases() -> Iterator[tuple[Function, tuple[Any, ...], set[str], bool]]:
    """Functions, arguments, the set that fills with the names they call, and whether smooth."""
    yield from _others()
    for library, modules in CASE_MODULES.items():
        for name in modules:
            module = importlib.import_module(name)
            kind = name.removeprefix("test_").removesuffix("_functions")
            if kind == "stats":
                yield from _statistics(module)
            for case in _tables(module):
                heard: set[str] = set()
                if library == "numpy":
                    if case.args:
                        head, _, rest = case.name.partition(".")
                        if head in ("emath", *(p.rpartition(".")[2] for p in NUMPY[4:])):
                            space = "lib.scimath" if head == "emath" else f"polynomial.{head}"
                            heard.add(f"numpy.{space}.{rest.split()[0]}")
                        else:
                            heard.add(_path_of(case.function))
                        yield case.function, case.args, heard, case.is_smooth
                    continue
                if kind == "quadrature":
                    kind = "integrate"
                path = f"scipy.{kind}"
                ours = Listener(importlib.import_module(f"functrans.{path}"), heard)
                if kind == "special":
                    if case.positions:
                        yield *_special(case, ours), heard, True
                elif hasattr(case, "points"):
                    fun, args = _distribution(case, ours)
                    if args:
                        yield fun, args, heard, True
                elif getattr(case, "order", 0) and case.args:

                    def fun(*args: Any, case: Any = case, ours: Any = ours) -> Any:
                        return case.function(ours, *args)

                    yield fun, case.args, heard, True


def _path_of(function: Any) -> str:
    """``numpy.linalg.norm``; ``functrans.numpy``'s functions count as NumPy's."""
    function = getattr(function, "numpy_functions", (function,))[0]
    for path in NUMPY[:4]:
        module = importlib.import_module(path)
        name = getattr(function, "__name__", "")
        if getattr(module, name, None) is function:
            return f"{path}.{name}"
    return ""


class Ear:
    """Hears which NumPy functions the test's own code calls with traced arrays."""

    def __init__(self) -> None:
        self.heard: set[str] = set()
        self.deciding: set[str] = set()  # with results of integers or Booleans
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> Ear:
        ft.make_jaxpr(np.sin)(1.0)  # the protocols are handed over at first use
        for name in ("__array_function__", "__array_ufunc__"):
            self._kept[name] = original = getattr(Tracer, name)

            def hearing(
                tracer: Any, function: Any, *rest: Any, _by: Any = original, **kw: Any
            ) -> Any:
                result = _by(tracer, function, *rest, **kw)
                if sys._getframe(1).f_code.co_filename.startswith(str(TESTS)):
                    kinds = {np.result_type(x).kind for x in ft.tree.leaves(result)}
                    target = self.heard if kinds & set("fc") or not kinds else self.deciding
                    target.add(_path_of(function))
                return result

            setattr(Tracer, name, hearing)
        return self

    def __exit__(self, *_: object) -> None:
        for name, original in self._kept.items():
            setattr(Tracer, name, original)


FIELDS = ("forward", "reverse", "second", "discrete")


# facts ------------------------------------------------------------------------------------------


def _is_zero(tree: Any) -> bool:
    return all(not np.any(np.asarray(x)) for x in ft.tree.leaves(tree))


def not_native(jaxpr: Jaxpr) -> set[str]:
    """Names of the primitives of a program that are evaluated by a call of NumPy."""
    found = set()
    for eqn in jaxpr.eqns:
        lower = eqn.primitive.lower
        if lower is None:
            found.add(eqn.primitive.name)
        elif isinstance(lower, Routine) and lower.supports is not None:
            avals = [atom.aval for atom in eqn.inputs]
            if not lower.supports(*avals, **eqn.params):
                found.add(eqn.primitive.name)
        for inner in subjaxprs(eqn.params):
            found |= not_native(inner)
    return found


def _cotangent(x: Any) -> np.ndarray:
    """Ones, of what has a derivative."""
    x = np.asarray(x)
    return np.ones_like(x) if x.dtype.kind in "fc" else np.zeros(x.shape, ft.float0)


def facts(fun: Function, args: tuple[Any, ...]) -> dict[str, Any]:
    """What works of a function at a point."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(5)
    tangents = tuple(rng.uniform(0.5, 1.5, x.shape).astype(x.dtype) for x in args)
    out, pushed = ft.jvp(fun, args, tangents)
    found["discrete"] = all(t.dtype.kind not in "fc" for t in ft.tree.leaves(out))
    found["forward"] = not _is_zero([t for t in ft.tree.leaves(pushed) if t.dtype.kind in "fc"])
    found["discrete"] |= not found["forward"]  # constant pieces
    out, pullback = ft.vjp(fun, *args)
    cts = ft.tree.map(_cotangent, out)
    found["reverse"] = not _is_zero(pullback(cts)) or found["forward"]
    try:
        ft.jvp(lambda *a: ft.vjp(fun, *a)[1](cts), args, tangents)
        found["second"] = found["forward"]
    except (TypeError, ValueError, NotImplementedError, RuntimeError) as error:
        found["second"] = False
        found["why"] = type(error).__name__
    try:
        found["numpy"] = sorted(not_native(ft.make_jaxpr(fun)(*args)))
    except (TypeError, ValueError, RuntimeError):
        found["numpy"] = None  # it needs values
    return found


def measure() -> dict[str, dict[str, Any]]:
    """Path of a function to the facts of all cases that call it."""
    result: dict[str, dict[str, Any]] = {}
    for fun, args, heard, is_smooth in cases():
        with warnings.catch_warnings(), np.errstate(all="ignore"), Ear() as ear:
            warnings.simplefilter("ignore")
            one = facts(fun, args)
        for path in ear.deciding - {""}:
            result.setdefault(path, dict.fromkeys(FIELDS, False) | {"numpy": []})["discrete"] = True
        for path in (heard | ear.heard) - {""}:
            known = result.setdefault(path, dict.fromkeys(FIELDS, False) | {"numpy": None})
            for field in FIELDS if is_smooth else ("discrete",):
                known[field] = known[field] or one[field]
            if one["numpy"] is not None:
                # The case with the fewest calls is about the function itself.
                both = [n for n in (known["numpy"], one["numpy"]) if n is not None]
                known["numpy"] = min(both, key=len)
    return result


def _first(path: str, name: str) -> str:
    """The name under which cases count: aliases share their facts."""
    value = getattr(importlib.import_module(path), name)
    return _path_of(value) or f"{path}.{name}"


def found(names: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """What is known of names: path of a module to name to facts."""
    traced = traced_functions()
    with ft.config(plain=False):  # names as they are
        measured = measure()
    return {
        path: {
            name: {"status": status(path, name, traced)}
            | ({} if _first(path, name) == f"{path}.{name}" else {"alias": _first(path, name)})
            | measured.get(_first(path, name), {})
            for name in names[path]
        }
        for path in names
    }


def main() -> int:
    """Measure, and write the file."""
    import scipy

    modules = found({path: public_names(path) for path in (*NUMPY, *SCIPY)})
    data = {"numpy": np.__version__, "scipy": scipy.__version__, "modules": modules}
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    for path, names in modules.items():
        tested = sum(bool(f.get("reverse")) and "alias" not in f for f in names.values())
        there = sum(f["status"] == "traced" for f in names.values())
        print(f"{path}: {len(names)} names, {there} traced, {tested} with tested derivatives")
    return 0


if __name__ == "__main__":
    sys.exit(main())
