"""What refuses traced values says one or two things to do, and names what users know."""

import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg.lapack

import functrans as ft
import scipy
from functrans.errors import FunctransError

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
