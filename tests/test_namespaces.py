"""Public namespaces list their public names, all of them, and nothing else."""

import ast
import importlib
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import functrans

NAMESPACES = (
    "functrans", "functrans.conventions", "functrans.dask", "functrans.debug", "functrans.errors",
    "functrans.extend", "functrans.flatten_util", "functrans.functional", "functrans.lax",
    "functrans.lax.linalg", "functrans.nn", "functrans.nn.initializers",
    "functrans.numpy", "functrans.numpy.fft",
    "functrans.numpy.linalg", "functrans.numpy.polynomial",
    "functrans.numpy.polynomial.chebyshev",
    "functrans.numpy.polynomial.hermite", "functrans.numpy.polynomial.hermite_e",
    "functrans.numpy.polynomial.laguerre", "functrans.numpy.polynomial.legendre",
    "functrans.numpy.polynomial.polynomial", "functrans.ops", "functrans.random", "functrans.scipy",
    "functrans.scipy.fft", "functrans.scipy.integrate", "functrans.scipy.interpolate",
    "functrans.scipy.linalg", "functrans.scipy.ndimage", "functrans.scipy.optimize",
    "functrans.scipy.signal", "functrans.scipy.sparse", "functrans.scipy.sparse.linalg",
    "functrans.scipy.spatial", "functrans.scipy.spatial.distance", "functrans.scipy.special",
    "functrans.scipy.stats", "functrans.sparse", "functrans.testing", "functrans.tree",
)  # fmt: skip

IMPERATIVE = ("functrans.autograd", "functrans.compat")
"""Torch's vocabulary, whose names have tables of their own."""


def _declared(body: Sequence[ast.stmt]) -> Iterator[str]:
    """What the source of a module makes public: ``x as x``, functions, classes."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.name for alias in node.names if alias.asname == alias.name)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_":
            yield node.name
        elif isinstance(node, ast.If):
            yield from _declared(node.body)


@pytest.mark.parametrize("name", NAMESPACES)
def test_namespace_lists_what_it_declares(name: str) -> None:
    module = importlib.import_module(name)
    declared = set(_declared(ast.parse(inspect.getsource(module)).body))
    missing = declared - set(module.__all__)
    assert not missing, f"add {sorted(missing)} to __all__ of {name}"
    assert len(module.__all__) == len(set(module.__all__))
    for public in module.__all__:
        assert hasattr(module, public), public


@pytest.mark.parametrize("name", NAMESPACES)
def test_dir_has_no_internals(name: str) -> None:
    module = importlib.import_module(name)
    listed = [public for public in dir(module) if public[0] != "_"]
    assert set(listed) <= set(module.__all__)
    for public in listed:
        value = getattr(module, public)
        if isinstance(value, ModuleType) and value.__name__.startswith("functrans"):
            assert value.__name__ in (*NAMESPACES, *IMPERATIVE), public
    assert {"Any", "Callable", "annotations", "np", "ew", "TYPE_CHECKING"}.isdisjoint(listed)


def test_every_public_submodule_is_checked() -> None:
    root = Path(functrans.__file__).parent
    for name in functrans.__all__:
        is_module = (root / f"{name}.py").exists() or (root / name / "__init__.py").exists()
        if is_module and f"functrans.{name}" not in IMPERATIVE:
            assert f"functrans.{name}" in NAMESPACES


TORCH_MODULES = ("forward_ad", "func", "function", "graph", "profiler")


@pytest.mark.parametrize("name", TORCH_MODULES)
def test_modules_of_the_imperative_side_list_the_names_of_torch(name: str) -> None:
    module = importlib.import_module(f"functrans.autograd.{name}")
    assert dir(module) == sorted(module.__all__)
    for public in module.__all__:
        value = getattr(module, public)
        assert value.__module__.startswith("functrans"), public
    assert {"np", "os", "functools", "Any", "PERMANENT", "ImperativeTrace"}.isdisjoint(dir(module))


def test_objects_list_what_users_call() -> None:
    def listed(value: object) -> list[str]:
        return [name for name in dir(value) if name[0] != "_"]

    assert listed(functrans.grad(len)) == []
    assert listed(functrans.vjp(abs, 1.0)[1]) == []
    assert listed(functrans.jit(len)) == [
        "as_cfunc", "asm", "cache_size", "clear_cache", "cost", "explain", "export", "function",
        "jaxpr", "llvm", "lower", "plan", "report", "save", "signature", "state",
    ]  # fmt: skip
    x = functrans.tensor([1.0], requires_grad=True)
    assert listed(x.sin().grad_fn) == [
        "jaxpr", "metadata", "name", "next_functions", "register_hook", "register_prehook",
        "to_dot", "to_html",
    ]  # fmt: skip


def test_star_import_gives_the_public_names() -> None:
    found: dict[str, object] = {}
    exec("from functrans.scipy.stats import *", found)
    assert "norm" in found
    assert "gamma" in found
    assert "Continuous" not in found
