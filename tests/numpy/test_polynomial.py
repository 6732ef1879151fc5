"""``functrans.numpy.polynomial`` and ``emath``: values and derivatives in all six bases."""

import numpy as np
import pytest
from numpy_cases import Case, check

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ConcretizationError

R = np.random.default_rng(9)
C = np.array([0.4, -0.7, 1.3, 0.6, -0.9])
D = np.array([0.8, 0.3, -1.1])
X = R.uniform(-0.9, 0.9, (2, 3))
Y = R.uniform(-0.9, 0.9, (2, 3))
Z = R.uniform(-0.9, 0.9, (2, 3))
V = R.uniform(-0.9, 0.9, 8)
W = R.uniform(0.5, 1.5, 8)
GRID = R.standard_normal((3, 2))
BOX = R.standard_normal((3, 2, 4))

BASES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
}

ROWS = {
    "add": (lambda f, c, d: f(c, d), C, D),
    "sub": (lambda f, c, d: f(d, c), C, D),
    "mulx": (lambda f, c: f(c), C),
    "mul": (lambda f, c, d: f(c, d), C, D),
    "div": (lambda f, c, d: f(c, d), C, D),
    "pow": (lambda f, c: f(c, 3), D),
    "val": (lambda f, x, c: f(x, c), X, C),
    "val columns": (lambda f, x, c: f(x, c, tensor=False), X[0], BOX[:, 0, :3]),
    "val tensor": (lambda f, x, c: f(x, c), X, GRID),
    "val2d": (lambda f, x, y, c: f(x, y, c), X, Y, GRID),
    "val3d": (lambda f, x, y, z, c: f(x, y, z, c), X, Y, Z, BOX),
    "grid2d": (lambda f, x, y, c: f(x, y, c), X[0], Y[1], GRID),
    "grid3d": (lambda f, x, y, z, c: f(x, y, z, c), X[0], Y[1], Z[0, :2], BOX),
    "vander": (lambda f, x: f(x, 4), X),
    "vander 0": (lambda f, x: f(x, 0) + x[..., None], X),
    "vander2d": (lambda f, x, y: f(x, y, [2, 1]), X, Y),
    "vander3d": (lambda f, x, y, z: f(x, y, z, [2, 1, 1]), X, Y, Z),
    "der": (lambda f, c: f(c), C),
    "der twice": (lambda f, c, s: f(c, 2, scl=s), C, np.asarray(1.7)),
    "der axis": (lambda f, c: f(c, axis=1), BOX),
    "der all": (lambda f, c: f(c, 3) + c[:1], D),
    "int": (lambda f, c: f(c), C),
    "int twice": (
        lambda f, c, k, b, s: f(c, 2, k=[k[0], k[1]], lbnd=b, scl=s),
        C,
        D[:2],
        np.asarray(0.3),
        np.asarray(1.7),
    ),
    "int axis": (lambda f, c: f(c, axis=1), BOX),
    "fit": (lambda f, x, y: f(x, y, 3), V, W),
    "fit weights": (lambda f, y, w: f(V, y, [0, 2], w=w), V**2, W),
    "fit columns": (lambda f, y: f(V, y, 2), np.stack([V**2, W], 1)),
    "companion": (lambda f, c: f(c), C),
    "roots": (lambda f, c: np.sort(np.abs(f(c))), np.array([0.2, -3.0, 0.3, 1.1])),
    "fromroots": (lambda f, r: f(r), np.array([-0.8, 0.1, 0.5, 0.9])),
    "line": (lambda f, a, b: f(a, b), np.asarray(0.7), np.asarray(-1.2)),
    "trim": (lambda f, c: f(c, 0.1), np.append(C, [0.01, -0.02])),
}
BY_VALUES = ("roots", "trim")
LOOSE = ("fit", "roots", "companion")
WIDENED = ("legdiv", "hermdiv", "hermediv", "lagdiv")  # by NumPy, in single precision


def _name(basis: str, row: str) -> str:
    return BASES[basis] + row.split()[0]


def _case(basis: str, row: str, namespace) -> Case | None:
    """A case with the function of a namespace: ``fnp.polynomial`` or ``np.polynomial``."""
    function, *args = ROWS[row]
    f = getattr(getattr(namespace, basis), _name(basis, row), None)
    if f is None:
        return None
    kind = row.split()[0]
    return Case(
        f"{basis}.{_name(basis, row)} {row}",
        lambda *args: function(f, *args),
        *args,
        is_staged=kind not in BY_VALUES,
        rtol=1e-5 if kind in LOOSE else 2e-6,
        stays_single=kind == "fromroots" or _name(basis, row) in WIDENED,
    )


CASES = [
    case
    for basis in BASES
    for row in ROWS
    if (case := _case(basis, row, fnp.polynomial)) is not None
]
CASES += [
    Case(
        f"{basis}.{name}",
        getattr(getattr(fnp.polynomial, basis), name),
        C,
        stays_single=name.startswith("poly2"),
    )
    for basis, prefix in BASES.items()
    for name in (f"{prefix}2poly", f"poly2{prefix}")
    if basis != "polynomial"
]
CASES += [
    Case(
        "polynomial.polyvalfromroots",
        lambda x, r: fnp.polynomial.polynomial.polyvalfromroots(x, r),
        X,
        D,
    ),
    Case(
        "polynomial.polyvalfromroots columns",
        lambda x, r: fnp.polynomial.polynomial.polyvalfromroots(x, r, tensor=False),
        X[0],
        BOX[:, 0, :3],
    ),
]
EMATH = [
    Case("emath.sqrt", lambda x: fnp.emath.sqrt(x - 0.5), X + 1.5, is_staged=False),
    Case("emath.sqrt negative", lambda x: np.lib.scimath.sqrt(x), V, is_staged=False),
    Case("emath.log", lambda x: fnp.emath.log(x), V, is_staged=False),
    Case("emath.log2", lambda x: fnp.emath.log2(x), V, is_staged=False),
    Case("emath.log10", lambda x: fnp.emath.log10(x), V, is_staged=False),
    Case("emath.logn", lambda n, x: fnp.emath.logn(n, x), W + 1, V, is_staged=False),
    Case("emath.power", lambda x, p: fnp.emath.power(x, p), V, W, is_staged=False),
    Case("emath.power negative", lambda x: fnp.emath.power(x, [-1, 2] * 4), V, is_staged=False),
    Case("emath.arccos", lambda x: fnp.emath.arccos(x), V * 2, is_staged=False),
    Case("emath.arcsin", lambda x: fnp.emath.arcsin(x), V * 2, is_staged=False),
    Case("emath.arctanh", lambda x: fnp.emath.arctanh(x), V * 2, is_staged=False),
    Case("emath.sqrt complex", lambda x: fnp.emath.sqrt(x), V + 1j * W),
]


@pytest.mark.parametrize("case", [*CASES, *EMATH], ids=repr)
def test_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


def test_every_function_of_numpy_is_there() -> None:
    for basis in BASES:
        ours, numpys = getattr(fnp.polynomial, basis), getattr(np.polynomial, basis)
        assert [name for name in numpys.__all__ if not hasattr(ours, name)] == []


@pytest.mark.parametrize("basis", BASES)
def test_quadrature_and_interpolation_take_traced_values(basis: str) -> None:
    prefix = BASES[basis]
    module = getattr(fnp.polynomial, basis)
    if basis != "polynomial":
        nodes, weights = getattr(module, f"{prefix}gauss")(5)
        f = lambda s: np.sum(weights * np.sin(s * nodes))  # noqa: E731
        expected = np.sum(weights * nodes * np.cos(0.3 * nodes))
        np.testing.assert_allclose(ft.grad(f)(0.3), expected, rtol=1e-13, atol=1e-14)
        weight = getattr(module, f"{prefix}weight")
        ft.testing.check_grads(lambda x: weight(x), (X * 0.5,), order=2)


def test_staged_roots_have_static_shapes() -> None:
    roots = fnp.polynomial.chebyshev.chebroots
    c = np.array([0.2, -3.0, 0.3, 1.1])
    expected = np.polynomial.chebyshev.chebroots(c)
    np.testing.assert_allclose(np.sort(np.real(ft.jit(roots)(c))), np.sort(expected))


def test_bad_input_is_named() -> None:
    legendre, polynomial = fnp.polynomial.legendre, fnp.polynomial.polynomial
    with pytest.raises(ValueError, match="non-negative"):
        ft.grad(lambda c: legendre.legder(c, -1)[0])(C)
    with pytest.raises(ValueError, match="Too many integration constants"):
        ft.grad(lambda c: legendre.legint(c, 1, k=[1, 2])[0])(C)
    with pytest.raises(ValueError, match="deg must be non-negative"):
        ft.grad(lambda x: legendre.legvander(x, -1).sum())(V)
    with pytest.raises(ValueError, match="Power is too large"):
        ft.grad(lambda c: legendre.legpow(c, 20).sum())(C)
    with pytest.raises(ZeroDivisionError, match="leading coefficient"):
        ft.grad(lambda c: polynomial.polydiv(c, [1.0, 0.0])[0].sum())(C)
    with pytest.raises(TypeError, match="same length"):
        ft.grad(lambda y: polynomial.polyfit(V, y, 2).sum())(C)
    with pytest.raises(ConcretizationError, match="value-dependent"):
        ft.jit(fnp.emath.sqrt)(V)


def test_trailing_zeros_stay_in_traced_sums() -> None:
    c = np.array([1.0, 2.0])
    assert fnp.polynomial.legendre.legadd(c, -c).shape == (1,)
    assert ft.vjp(lambda c: fnp.polynomial.legendre.legadd(c, -c), c)[0].shape == (2,)
