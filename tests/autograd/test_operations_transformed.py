"""Every operation on tensors under ``jit``, ``vmap``, ``grad`` and ``jvp``: the same numbers.

The cases are those of ``samples.torch_operations`` and ``samples.torch_transformed``; the latter
lists what cannot be traced, with the reason, and it is tested that the error is raised. Not here:
values against torch (``test_parity_operations``), derivatives against differences
(``test_operations_derivatives``).
"""

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from cases import each
from functrans import tree
from functrans.autograd import methods
from functrans.compat import torch
from functrans.compat.torch import further_names
from samples.torch_operations import EXPRESSIONS, OPERANDS
from samples.torch_transformed import FUNCTIONAL, MASKED, MORE, NO_SAMPLES, UNTRACED

func = torch.func
CODES = list(dict.fromkeys([*EXPRESSIONS, *MORE, *FUNCTIONAL]))


class Case:
    """An expression as a function of its operands."""

    def __init__(self, code: str) -> None:
        self.names = [name for name in OPERANDS if re.search(rf"\b{name}\b", code)]
        self.values = [OPERANDS[name] for name in self.names]
        self.floating = [i for i, value in enumerate(self.values) if value.dtype.kind == "f"]
        self.code = compile(code, code, "eval")

    def __call__(self, *operands: Any) -> Any:
        scope = {"T": torch, "F": torch.nn.functional, "inf": np.inf, "nan": np.nan}
        return eval(self.code, {**scope, **dict(zip(self.names, operands, strict=True))})

    def total(self, *operands: Any) -> Any:
        """A number that every element of differentiable results counts in."""
        total: Any = torch.zeros((), dtype=torch.float64)
        for out in tree.leaves(self(*operands)):
            part = torch.view_as_real(out) if out.dtype.kind == "c" else out
            if part.dtype.kind == "f":
                weights = np.cos(np.arange(part.numel()).reshape(part.shape) + 1.0)
                total = total + (part * _tensor(weights.astype(part.dtype))).sum()
        return total


def _tensor(value: np.ndarray) -> Any:
    return torch.from_numpy(np.array(value))


def _tensors(values: list[np.ndarray]) -> list[Any]:
    return [_tensor(value) for value in values]


def _other(value: np.ndarray) -> np.ndarray:
    """A second operand of the same kind: also in the domain, also an index in bounds."""
    if value.dtype.kind in "fc":
        return value * 0.9
    return ~value if value.dtype.kind == "b" else value[::-1].copy()


def _arrays(results: Any) -> list[np.ndarray]:
    return [leaf.detach().numpy() for leaf in tree.leaves(results)]


def _same(found: Any, expected: list[np.ndarray]) -> None:
    arrays = _arrays(found)
    assert len(arrays) == len(expected)
    for array, value in zip(arrays, expected, strict=True):
        assert array.dtype == value.dtype
        assert array.shape == value.shape
        is_wide = value.dtype.kind not in "fc" or np.finfo(value.dtype).eps < 1e-15
        assert_allclose(array, value, *((1e-9, 1e-11) if is_wide else (1e-5, 1e-6)))


@functools.cache
def _case(code: str) -> tuple[Case, list[np.ndarray] | None]:
    """A case and its results; none where it is an error, or no tensor comes of it."""
    case = Case(code)
    try:
        results = case(*_tensors(case.values))
    except Exception:
        return case, None
    is_tensors = all(isinstance(leaf, torch.Tensor) for leaf in tree.leaves(results))
    return case, _arrays(results) if is_tensors and "manual_seed" not in code else None


@functools.cache
def _gradients(code: str) -> list[np.ndarray] | None:
    """Derivatives by ``backward`` with respect to the floating operands; none if there is none."""
    case, _ = _case(code)
    leaves = [x.requires_grad_(i in case.floating) for i, x in enumerate(_tensors(case.values))]
    try:
        total = case.total(*[leaf * 1 if leaf.requires_grad else leaf for leaf in leaves])
        wanted = [leaves[i] for i in case.floating]
        found = torch.autograd.grad(total, wanted, allow_unused=True)
    except (RuntimeError, ft.errors.NonDifferentiableError):
        return None
    return [
        np.zeros(leaf.shape) if one is None else one.numpy()
        for leaf, one in zip(wanted, found, strict=True)
    ]


def _jit(case: Case, expected: list[np.ndarray], code: str) -> None:
    _same(ft.jit(case.__call__)(*_tensors(case.values)), expected)


def _vmap(case: Case, expected: list[np.ndarray], code: str) -> None:
    others = [_other(value) for value in case.values]
    stacks = [_tensor(np.stack(pair)) for pair in zip(case.values, others, strict=True)]
    found = func.vmap(case.__call__)(*stacks)
    second = _arrays(case(*_tensors(others)))
    _same(found, [np.stack(pair) for pair in zip(expected, second, strict=True)])


def _grad(case: Case, expected: list[np.ndarray], code: str) -> None:
    gradients = _gradients(code)
    if gradients is None:
        pytest.skip("no derivative")
    gradient = func.grad(case.total, argnums=tuple(case.floating))
    _same(gradient(*_tensors(case.values)), gradients)
    if not any(code in row.codes for row in UNTRACED if "jit" in row.transforms):
        _same(ft.jit(gradient)(*_tensors(case.values)), gradients)


def _jvp(case: Case, expected: list[np.ndarray], code: str) -> None:
    gradients = _gradients(code)
    if gradients is None:
        pytest.skip("no derivative")
    rng = np.random.default_rng(1)
    tangents = [rng.normal(size=case.values[i].shape) for i in case.floating]

    def total(*varied: Any) -> Any:
        operands = _tensors(case.values)
        for i, x in zip(case.floating, varied, strict=True):
            operands[i] = x
        return case.total(*operands)

    points = [case.values[i] for i in case.floating]
    _, tangent = func.jvp(total, tuple(_tensors(points)), tuple(_tensors(tangents)))
    products = [np.sum(g * t) for g, t in zip(gradients, tangents, strict=True)]
    assert_allclose(tangent.item(), sum(products), 1e-3 if "half" in code else 1e-5, 1e-8)


WAYS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "vmap": (lambda f: func.vmap(f)(torch.tensor([1.0, 2.0])).sum(), 3.0),
    "grad": (lambda f: func.grad(f)(torch.tensor(0.5)), 1.0),
    "jvp": (lambda f: func.jvp(f, (torch.tensor(0.5),), (torch.tensor(2.0),))[1], 2.0),
    "vmap of grad": (lambda f: func.vmap(func.grad(f))(torch.tensor([1.0, 2.0])).sum(), 2.0),
}
"""Transforms of ``y -> total * y``, and what is left of the total's derivatives."""


def _captured(case: Case, expected: list[np.ndarray], code: str) -> None:
    """The operands are leaves outside of the transformed function."""
    gradients = _gradients(code)
    if gradients is None:
        pytest.skip("no derivative")
    for name, (way, factor) in WAYS.items():
        leaves = [x.requires_grad_(i in case.floating) for i, x in enumerate(_tensors(case.values))]

        def scaled(y: Any, leaves: list[Any] = leaves) -> Any:
            return case.total(*[leaf * 1 if leaf.requires_grad else leaf for leaf in leaves]) * y

        wanted = [leaves[i] for i in case.floating]
        found = torch.autograd.grad(way(scaled), wanted, allow_unused=True)
        for one, expected_one in zip(found, gradients, strict=True):
            value = 0 if one is None else one.numpy()
            assert_allclose(
                value, factor * expected_one, 1e-3 if "half" in code else 1e-5, 1e-7, err_msg=name
            )


TRANSFORMS: dict[str, Callable[[Case, list[np.ndarray], str], None]] = {
    "jit": _jit,
    "vmap": _vmap,
    "grad": _grad,
    "jvp": _jvp,
    "captured": _captured,
}


def _runs() -> list[tuple[str, str]]:
    """Expressions with the transforms of their operands that there are."""
    runs = []
    for code in CODES:
        case = Case(code)
        can = {"jit": True, "vmap": bool(case.names)}
        is_compared = bool(case.floating) and code not in MASKED
        runs += [(code, name) for name in TRANSFORMS if can.get(name, is_compared)]
    return runs


@pytest.mark.filterwarnings("ignore")
@each(("code", "transform"), _runs(), by="transform", one_of=4, full=4)
def test_operations_give_the_same_numbers_under_transforms(code: str, transform: str) -> None:
    case, expected = _case(code)
    if expected is None:
        pytest.skip("no tensor comes of it")
    run = functools.partial(TRANSFORMS[transform], case, expected, code)
    for row in UNTRACED:
        if code in row.codes and transform in row.transforms:
            with np.errstate(all="ignore"), pytest.raises(row.error, match=row.message):
                run()
            return
    with np.errstate(all="ignore"):
        run()


def _tables() -> set[str]:
    """The names of all tables of operations."""
    names = {*further_names.FUNCTIONS, *torch.functional_names.FUNCTIONS}
    for found in pkgutil.iter_modules(methods.__path__):
        module = importlib.import_module(f"{methods.__name__}.{found.name}")
        for table in ("METHODS", "FUNCTIONS", "LINALG", "FFT", "SPECIAL"):
            names |= set(getattr(module, table, {}))
    names |= set(torch.special.POLYNOMIALS)
    functional = vars(torch.nn.functional)
    names |= {name for name, function in functional.items() if isinstance(function, FunctionType)}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.filterwarnings("ignore")
def test_every_operation_has_a_sample_or_a_reason_for_none() -> None:
    with np.errstate(all="ignore"):
        codes = [code for code in CODES if _case(code)[1] is not None]
    sampled = set(re.findall(r"\w+", " ".join(codes)))
    excepted = set(" ".join(NO_SAMPLES.values()).split())
    assert sorted(_tables() - sampled - excepted) == []


def test_what_is_excepted_exists() -> None:
    for row in UNTRACED:
        assert row.codes <= set(CODES), row.reason
    assert set(CODES) >= MASKED
