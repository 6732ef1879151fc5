"""What refuses traced values says one or two things to do, and names what users know."""

import decimal
import fractions
import importlib
import inspect
import json
import math
import operator
import pickle
import pkgutil
import random
import re
import struct
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg.lapack
import scipy.special

import functrans as ft
import scipy
from functrans.errors import EscapedTracerError, FunctransError

REMEDIES = (": by ", "in its place", "ft.external", "ft.pure_callback", "ft.random.")
"""What stands once in a message for each remedy that it offers."""
X = np.array([0.5, 1.5, 2.5])
DRAWS = [
    name
    for name in dir(np.random.Generator)
    if not name.startswith(("_", "standard_n", "standard_e", "standard_c"))
    and name not in ("bit_generator", "bytes", "random", "shuffle", "spawn")
]


def said(call: Callable[..., Any], *args: Any) -> str | None:
    """What a call on traced values is refused with, if functrans refuses it."""
    try:
        ft.grad(lambda args: (call(*args), np.sum(args[0]))[1])(args)
    except FunctransError as error:
        return str(error)
    except Exception:  # what the function says of arguments that are none of its own
        return None
    return None


def check(text: str, name: str) -> None:
    found = [remedy for remedy in REMEDIES if remedy in text]
    assert 1 <= len(found) <= 3
    assert "\n" not in text
    assert name in text
    for path in re.findall(r"\b(?:scipy|numpy)(?:\.\w+)+", text):
        assert "._" not in path
        assert_known(path)
    for name in re.findall(r"\bft((?:\.\w+)+)", text):
        assert_known(f"functrans{name}")


def assert_known(path: str) -> None:
    first, *rest = path.split(".")
    value: Any = importlib.import_module(first)
    for name in rest:
        value = getattr(value, name)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_draws_say_what_to_write(name: str, shape: tuple[int, ...]) -> None:
    method = getattr(np.random.default_rng(0), name)
    texts = [said(method, *[np.full(shape, 0.5)] * n) for n in (1, 2, 3)]
    known = [text for text in texts if text is not None]
    if name == "multivariate_hypergeometric" or (name == "dirichlet" and shape == ()):
        return  # NumPy says first what it wants
    assert known
    for text in known:
        check(text, f"numpy.random.Generator.{name}")


@pytest.mark.parametrize("name", DRAWS)
def test_what_replaces_a_draw_gives_the_same_numbers(name: str) -> None:
    text = said(getattr(np.random.default_rng(0), name), np.full(2, 0.5))
    found = re.search(r"Replace (rng\..*?): by (.*)\.$", text or "")
    if found is None or "ft.random" in found[2]:
        return
    values = [
        eval(code, {"np": np, "rng": np.random.default_rng(0), "x": X, "s": 2.0, "a": 0.5, "b": X})
        for code in found.groups()
    ]
    np.testing.assert_array_equal(*values)


def in_c() -> Iterator[tuple[str, Any]]:
    """Functions and classes in C of SciPy's public modules, but for ufuncs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = list(pkgutil.walk_packages(scipy.__path__, "scipy.", onerror=lambda _: None))
        warnings.simplefilter("error", DeprecationWarning)
        for info in modules:
            if "._" in info.name or ".tests" in info.name or info.name == "scipy.conftest":
                continue
            try:
                module = importlib.import_module(info.name)
                names = {name: getattr(module, name) for name in module.__all__}
            except (ImportError, AttributeError, DeprecationWarning):
                continue
            for name, value in names.items():
                if name != "test" and is_in_c(value):
                    yield f"{info.name}.{name}", value


def is_in_c(value: Any) -> bool:
    if isinstance(value, np.ufunc) or not callable(value) or type(value).__name__ == "fortran":
        return False  # those made by f2py do not know their names
    if isinstance(value, type):
        made = (value.__init__, value.__new__)
        return not any(map(inspect.isfunction, made)) and not issubclass(value, BaseException)
    return not inspect.isfunction(value) and not hasattr(value, "__wrapped__")


IN_C = {path: value for value, path in {value: path for path, value in in_c()}.items()}


def test_there_are_many_functions_in_c() -> None:
    assert len(IN_C) > 50


@pytest.mark.parametrize("path", IN_C)
def test_functions_in_c_are_named_as_users_know_them(path: str) -> None:
    function = IN_C[path]
    points = np.random.default_rng(0).random((6, 2))
    for n in (1, 2, 3):
        text = said(lambda *args: function(*args), *[points] * n)
        if text is not None:
            check(text, path.rpartition(".")[2])


def test_functions_made_by_f2py_are_named_by_their_module() -> None:
    text = said(lambda x: scipy.linalg.lapack.dgesv(x, x), np.eye(2))
    assert text is not None
    check(text, "scipy.linalg.lapack.dgesv")


def test_a_line_that_cannot_be_read_gets_two_remedies() -> None:
    scope: dict[str, Any] = {"rng": np.random.default_rng(0)}
    exec("def draw(x): return rng.normal(x, 1.0)", scope)
    text = said(scope["draw"], np.ones(2))
    assert text is not None
    check(text, "functrans.numpy")


# the standard library -----------------------------------------------------------------------------

STANDARD: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "json": (lambda x: json.dumps(x), "json.dumps", "has_aux=True"),
    "json of a list": (lambda x: json.dumps([x]), "json.dumps", "has_aux=True"),
    "json of a dictionary": (lambda x: json.dumps({"x": x}), "json.dumps", "has_aux=True"),
    "Decimal": (lambda x: decimal.Decimal(x), "decimal.Decimal", "has_aux=True"),
    "Fraction": (lambda x: fractions.Fraction(x), "fractions.Fraction", "has_aux=True"),
    "pickle": (lambda x: pickle.dumps(x), "pickled", "has_aux=True"),
    "pickle of a list": (lambda x: pickle.dumps([x]), "pickled", "has_aux=True"),
    "struct": (lambda x: struct.pack("d", x), "struct.pack", "has_aux=True"),
    "fromhex": (lambda x: float.fromhex(x), "float.fromhex", "has_aux=True"),
    "join": (lambda x: ", ".join([x]), "a traced value", "has_aux=True"),
    "hash": (lambda x: hash(x), "key of a dict", "int(x)"),
    "seed": (lambda x: random.seed(x), "random.Random.seed", "ft.random"),
}
STAGED: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "format": (lambda x: f"{x:.2f}", "format()", "ft.debug.print"),
    "percent": (lambda x: "%.2f" % x, "format()", "ft.debug.print"),  # noqa: UP031  # what is tried
    "gcd": (lambda x: math.gcd(x, 2), "index()", "np.gcd"),
    "factorial": (lambda x: math.factorial(x), "index()", "scipy.special.factorial"),
    "floor": (lambda x: math.floor(x), "int()", "np.floor"),
    "randint": (lambda x: random.randint(0, x), "int()", "ft.random.randint"),
    "choices": (lambda x: random.choices([1, 2], [x, 1]), "bool()", "np.where"),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", [*STANDARD, *STAGED])
def test_the_standard_library_is_named_with_a_remedy(name: str, staged: bool) -> None:
    call, named, remedy = {**STANDARD, **STAGED}[name]
    if name in STAGED and not staged:
        return  # it has the value
    transform = ft.jit if staged else ft.grad
    with pytest.raises((TypeError, ValueError)) as caught:
        transform(lambda x: (call(x), x)[1])(1.5)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    line = call.__code__.co_firstlineno
    assert named in text
    assert remedy in text
    assert f"test_refusals.py:{line} " in text


def test_what_the_remedies_name_takes_traced_values() -> None:
    assert ft.jit(lambda x: np.gcd(x, 4))(6) == 2
    assert ft.jit(lambda x: scipy.special.factorial(x))(3.0) == 6
    assert ft.jit(lambda n: ft.random.randint(ft.random.key(0), (), 0, n))(5) in range(5)


def test_errors_of_the_standard_library_that_no_traced_value_made_are_themselves() -> None:
    for call in (lambda x: json.loads("{"), lambda x: json.dumps(object()), lambda x: int("x")):
        with pytest.raises((ValueError, TypeError)) as caught:
            ft.grad(lambda x, call=call: (call(x), x)[1])(1.0)
        assert not getattr(caught.value, "__notes__", ())


# values that escaped ------------------------------------------------------------------------------

LATER: dict[str, Callable[[Any], Any]] = {
    "float": float, "int": int, "bool": bool, "complex": complex, "index": operator.index,
    "add": lambda x: x + 1, "sin": np.sin, "asarray": np.asarray, "compare": lambda x: x > 0,
    "format": lambda x: f"{x:.2f}", "pickle": pickle.dumps, "iterate": list,
    "item": lambda x: x.item(), "index of a list": lambda x: [1, 2][x], "power": lambda x: x**2,
    "tolist": lambda x: x.tolist(), "minus": operator.neg, "magnitude": abs,
    "matmul": lambda x: np.ones(2) @ x, "matmul of it": lambda x: x @ np.ones(2),
}  # fmt: skip


class Keeper:
    """Keeps what it was called with."""

    def step(self, x: Any) -> Any:
        self.kept = 2 * x
        return x


@pytest.mark.parametrize("name", LATER)
def test_a_value_that_a_method_stored_is_refused_with_both_lines(name: str) -> None:
    keeper = Keeper()
    ft.jit(keeper.step)(np.ones(2) if name in ("iterate", "matmul", "matmul of it") else 1.0)
    with ft.config(traceback="filtered"), pytest.raises(EscapedTracerError) as caught:
        LATER[name](keeper.kept)
    text = str(caught.value)
    assert "jit of step, which started at test_refusals.py" in text
    stored = Keeper.step.__code__.co_firstlineno + 1
    assert f"made at test_refusals.py:{stored} (Keeper.step)" in text
    assert "test_refusals.py" in text.partition("after")[0]
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}


class Scaled:
    def __init__(self, w: Any) -> None:
        self.w = w

    def step(self, x: Any) -> Any:
        return self.w * x

    @ft.jit
    def decorated(self, x: Any) -> Any:
        return self.w * x


class Container(Scaled):
    """One whose attributes are leaves."""


ft.tree.register_pytree_node(Container, lambda m: ((m.w,), None), lambda _, w: Container(*w))


def test_what_is_said_of_a_jitted_method_holds() -> None:
    with pytest.raises(ft.errors.UnsupportedOperationError) as caught:
        Scaled(2.0).decorated(1.0)
    for part in ("jit the bound method", "when it is traced", "jitted anew", "register_pytree"):
        assert part in str(caught.value)
    for before, after in ((2.0, 3.0), (np.ones(2), np.full(2, 3.0))):
        model = Scaled(before)
        step = ft.jit(model.step)
        np.testing.assert_array_equal(step(1.0), before)
        model.w = after
        np.testing.assert_array_equal(step(1.0), before)  # kept
        np.testing.assert_array_equal(ft.jit(model.step)(1.0), after)  # jitted anew
        container = Container(before)
        np.testing.assert_array_equal(container.decorated(1.0), before)
        container.w = after
        np.testing.assert_array_equal(container.decorated(1.0), after)  # an argument
    weights = np.ones(2)
    step = ft.jit(Scaled(weights).step)
    step(1.0)
    weights[:] = 5.0
    np.testing.assert_array_equal(step(1.0), weights)  # written to
