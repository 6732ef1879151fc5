"""Code that reads the memory of a traced array gives the right number and derivative, or raises."""

import array
import collections
import copy
import ctypes
import functools
import gc
import io
import itertools
import operator
import random
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.linalg as linalg
import scipy.ndimage as ndimage
import scipy.optimize as optimize
import scipy.signal as signal
import scipy.sparse as sparse
import scipy.spatial as spatial
import scipy.stats as stats
from numpy.polynomial import Chebyshev, Legendre, Polynomial
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial.transform import Rotation

import functrans as ft
from cases import each
from functrans.errors import ConcretizationError, FunctransError

POINT = np.array([0.31, 1.73, -0.42, 0.83])
GRID = np.arange(4.0)
POINTS = np.random.default_rng(1).normal(size=(20, 4))
TREE = spatial.KDTree(POINTS[:, :1])
SPLINE = interpolate.UnivariateSpline(np.arange(8.0) - 2, np.arange(8.0) ** 2)
SURFACE = interpolate.RectBivariateSpline(GRID - 1, GRID - 1, np.outer(GRID, GRID))
LINEAR = interpolate.LinearNDInterpolator(POINTS[:, :2], np.arange(20.0))
NEAREST = interpolate.NearestNDInterpolator(POINTS, np.arange(20.0))
DENSITY = stats.gaussian_kde(np.arange(5.0))
HISTOGRAM = stats.rv_histogram(np.histogram(np.arange(9.0), 4))
SERIES = Polynomial([1.0, 2.0, 3.0])
TURN = Rotation.from_euler("z", 0.3)
TRANSFER = signal.TransferFunction([1.0], [1.0, 2.0])
LU = linalg.lu_factor(np.diag(GRID + 1))

Reader = Callable[[Any], Any]


def _into_memoryview(b: Any) -> Any:
    view = memoryview(np.zeros(len(b)))
    view[:] = b
    return sum(view)


def _into_fields(b: Any) -> Any:
    rows = np.zeros(len(b), [("a", float), ("b", int)])
    rows["a"] = b
    return rows["a"].sum()


def _multi_index(b: Any) -> Any:
    it = np.nditer(b, flags=["multi_index"])
    total = 0.0
    while not it.finished:
        total = total + it[0] * it.multi_index[0] ** 2
        it.iternext()
    return total


def _doubled(b: Any) -> Any:
    with np.nditer(b, op_flags=["readwrite"]) as it:
        for v in it:
            v[...] = 2 * v
    return (b**2).sum()


def _allocated(b: Any) -> Any:
    it = np.nditer([b, None])
    with it:
        for v, out in it:
            out[...] = v * v
        return it.operands[1].sum()


def _reduced(b: Any) -> Any:
    flags = [["readonly"], ["readwrite", "allocate"]]
    it = np.nditer([b, None], flags=["reduce_ok"], op_flags=flags, op_axes=[[0], [-1]])
    with it:
        it.operands[1][...] = 0
        for v, out in it:
            out[...] += v * v
        return it.operands[1]


def _stepped(solver: Any) -> Any:
    solver.step()
    return solver.y[0]


def _series_algebra(b: Any) -> Any:
    p, q = Polynomial(b), Polynomial([1.0, 2.0])
    r = (p * q + p - 3 * q + q * p) ** 2
    return r.deriv().integ(1, k=[b[0]])(0.3) + (p // q)(0.2) + (p % q)(0.3) + (p / 2.0)(b[0])


WORK: dict[str, Reader] = {
    "Polynomial": lambda b: Polynomial(b)(2.0),
    "Polynomial of a list": lambda b: Polynomial([b[0], 1.0, b[1]])(b).sum(),
    "Polynomial algebra": _series_algebra,
    "Polynomial.fit": lambda b: Polynomial.fit(GRID[: len(b)], b, 2)(0.3),
    "Chebyshev": lambda b: Chebyshev(b)(0.3),
    "Legendre on a domain": lambda b: Legendre(b, domain=[0, 2])(b)[1],
    "nditer": lambda b: sum(float(v) ** 2 for v in np.nditer(b)),
    "nditer in order": lambda b: sum(k * v for k, v in enumerate(np.nditer(b[::-1], order="C"))),
    "nditer of two": lambda b: sum(u * v for u, v in np.nditer([b, GRID[: len(b)]])),
    "nditer multi_index": _multi_index,
    "nditer readwrite": _doubled,
    "nditer allocates": _allocated,
    "nditer reduces": _reduced,
    "nditer rows": lambda b: sum((v**2).sum() for v in np.nditer(b, flags=["external_loop"])),
    "broadcast": lambda b: sum(u * v for u, v in np.broadcast(b, GRID[: len(b)])),
    "ndenumerate": lambda b: sum(v * (i[0] + 1) for i, v in np.ndenumerate(b)),
    "flat": lambda b: sum(v for v in b.flat),
    "errstate": lambda b: np.errstate(all="ignore")(lambda: b.sum())(),
    "finfo": lambda b: np.finfo(b.dtype).eps + b.sum(),
    "deque": lambda b: sum(collections.deque(b)),
    "deepcopy": lambda b: copy.deepcopy({"b": b})["b"].sum(),
    "reduce": lambda b: functools.reduce(operator.mul, b),
    "accumulate": lambda b: list(itertools.accumulate(b))[-1],
    "reversed": lambda b: next(iter(reversed(b))),
    "unpacked": lambda b: (lambda *a: a[1])(*b),
    "choice": lambda b: random.Random(0).choice(b),
    "asarray": lambda b: np.asarray(b).sum(),
    "array of arrays": lambda b: np.array([[b, b], [b, 2 * b]]).sum(),
    "Bounds": lambda b: optimize.Bounds(b, b + 1).lb.sum(),
    "PchipInterpolator": lambda b: interpolate.PchipInterpolator(GRID[: len(b)], b)(1.5),
    "toeplitz": lambda b: linalg.toeplitz(b).sum(),
    "csr_matrix": lambda b: sparse.csr_matrix(b).sum(),
    "simpson": lambda b: integrate.simpson(b),
}
REFUSED: dict[str, Reader] = {
    "memoryview": lambda b: sum(memoryview(b)),
    "bytes": lambda b: np.frombuffer(bytes(b)).sum(),
    "bytearray": lambda b: np.frombuffer(bytearray(b)).sum(),
    "array.array": lambda b: sum(array.array("d", b)),
    "ndarray of a buffer": lambda b: np.ndarray((len(b),), buffer=b).sum(),
    "structured array": _into_fields,
    "UnivariateSpline": lambda b: interpolate.UnivariateSpline(GRID[: len(b)], b, k=2)(1.5),
    "InterpolatedUnivariateSpline": lambda b: interpolate.InterpolatedUnivariateSpline(
        GRID[: len(b)], b, k=2
    )(1.5),
    "LinearNDInterpolator": lambda b: interpolate.LinearNDInterpolator(POINTS[: len(b), :2], b)(
        *POINTS[: len(b), :2].mean(0)
    ),
    "Rbf": lambda b: interpolate.Rbf(GRID[: len(b)], b)(1.5),
    "TransferFunction": lambda b: signal.TransferFunction([1.0], b).den[1],
    "StateSpace": lambda b: signal.StateSpace(np.diag(b), b[:, None], b[None, :], [[0.0]]).A.sum(),
    "RK45": lambda b: _stepped(integrate.RK45(lambda t, y: -y, 0, b, 1.0)),
    "RK45 of a function": lambda b: _stepped(integrate.RK45(lambda t, y: b * y, 0, b * 0, 1.0)),
    "LSODA": lambda b: _stepped(integrate.LSODA(lambda t, y: -y, 0, b, 1.0)),
    "ode": lambda b: integrate.ode(lambda t, y: -y).set_initial_value(b, 0).integrate(1.0)[0],
}
OTHERS: dict[str, Reader] = {
    "poly1d": lambda b: np.poly1d(b)(2.0),
    "LinearOperator": lambda b: (
        sparse_linalg.LinearOperator((2, 2), matvec=lambda v: b[:2] * v) @ np.ones(2) @ np.ones(2)
    ),
    "matrix": lambda b: np.matrix(b).sum(),
    "masked": lambda b: np.ma.array(b).sum(),
    "data": lambda b: np.frombuffer(b.data).sum(),
    "pointer": lambda b: b.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[1],
    "from_buffer": lambda b: (ctypes.c_double * 3).from_buffer(b)[1],
    "BytesIO": lambda b: np.frombuffer(io.BytesIO(b).getvalue()).sum(),
    "tobytes": lambda b: np.frombuffer(b.tobytes()).sum(),
    "pack": lambda b: struct.unpack("2d", struct.pack("2d", *b[:2]))[0],
    "unpack_from": lambda b: struct.unpack_from("2d", b)[1],
    "Struct": lambda b: struct.Struct("2d").unpack_from(b)[1],
    "memoryview assigned": _into_memoryview,
    "ndarray.copy": lambda b: np.ndarray.copy(b).sum(),
    "ndarray.tolist": lambda b: np.ndarray.tolist(b)[1],
    "ndarray.dot": lambda b: np.ndarray.dot(b, b),
    "view": lambda b: b.view(np.ndarray).sum(),
    "recarray": lambda b: np.rec.fromarrays([b, b], names="a,b").a.sum(),
    "objects": lambda b: b.astype(object).sum(),
    "half precision": lambda b: np.ndarray((len(b),), buffer=b).astype(np.float16)[0] * 0 + b[0],
    "long double": lambda b: np.ndarray((len(b),), buffer=b).astype(np.longdouble).sum(),
    "complex numbers": lambda b: np.ndarray((len(b),), buffer=b).astype(complex).sum().real,
    "sliding window": lambda b: np.lib.stride_tricks.sliding_window_view(b, 2).sum(),
    "shuffle": lambda b: (np.random.default_rng(0).shuffle(b), b[0])[1],
    "permutation": lambda b: np.random.default_rng(0).permutation(b)[0],
    "normal": lambda b: np.random.default_rng(0).normal(b)[0],
    "ddot": lambda b: linalg.blas.ddot(b, b),
    "lu_solve": lambda b: linalg.lu_solve(LU, np.resize(b, 4))[1],
    "KDTree": lambda b: spatial.KDTree(b[:, None]).query([[0.2]])[0][0],
    "cKDTree": lambda b: spatial.cKDTree(b[:, None]).query([[0.2]])[0][0],
    "query": lambda b: TREE.query(b[:, None])[0].sum(),
    "ConvexHull": lambda b: spatial.ConvexHull(np.stack([b, b**2], 1)).volume,
    "Rotation": lambda b: Rotation.from_rotvec(b[:3]).as_matrix()[0, 1],
    "apply": lambda b: TURN.apply(b[:3])[0],
    "spline called": lambda b: SPLINE(b).sum(),
    "surface called": lambda b: SURFACE.ev(b, b).sum(),
    "linear called": lambda b: LINEAR(b[:2], b[:2]).sum(),
    "nearest called": lambda b: NEAREST(np.resize(b, 4))[0] * b[0],
    "density called": lambda b: DENSITY(b).sum(),
    "histogram called": lambda b: HISTOGRAM.cdf(b).sum(),
    "series called": lambda b: SERIES(b).sum(),
    "series added": lambda b: (SERIES + b)(1.0),
    "transfer": lambda b: TRANSFER.output(b, GRID[: len(b)])[1].sum(),
    "lfilter": lambda b: signal.lfilter(b, [1.0], np.ones(5)).sum(),
    "medfilt": lambda b: signal.medfilt(b, 3)[1],
    "lti": lambda b: signal.lti(b, [1.0, 2.0, 3.0, 4.0, 5.0]).num[-1],
    "zeros": lambda b: signal.ZerosPolesGain(b, [1.0], 1.0).zeros.sum(),
    "find_peaks": lambda b: b[signal.find_peaks(b)[0]].sum(),
    "label": lambda b: ndimage.label(b > 0)[1] * b[0],
    "center": lambda b: ndimage.center_of_mass(b)[0],
    "map_coordinates": lambda b: ndimage.map_coordinates(b, [[1.5]], order=1)[0],
    "interp1d": lambda b: interpolate.interp1d(GRID[: len(b)], b)(1.5),
    "BSpline": lambda b: interpolate.BSpline(np.arange(len(b) + 2.0), b, 1)(1.5),
    "lagrange": lambda b: interpolate.lagrange(GRID[: len(b)], b)(0.5),
    "griddata": lambda b: interpolate.griddata(GRID[: len(b)], b, 0.5),
    "splrep": lambda b: interpolate.splev(0.5, interpolate.splrep(GRID[: len(b)], b, k=2)),
    "linregress": lambda b: stats.linregress(GRID[: len(b)], b).slope,
    "describe": lambda b: stats.describe(b).variance,
    "fit": lambda b: stats.norm.fit(b)[1],
    "mode": lambda b: stats.mode(b)[0],
    "ecdf": lambda b: stats.ecdf(b).cdf.quantiles.sum(),
    "cdist": lambda b: spatial.distance.cdist(b[:, None], b[:, None]).sum(),
    "nnls": lambda b: optimize.nnls(np.eye(len(b)), b)[0].sum(),
    "odeint": lambda b: integrate.odeint(lambda y, t: -y, b, [0, 1.0])[1, 0],
}
READERS = {**WORK, **REFUSED, **OTHERS}


def filled(x: Any) -> Any:
    """Item by item."""
    b = np.zeros(len(x))
    for i in range(len(x)):
        b[i] = x[i]
    return b


def filled_with_a_view(x: Any) -> Any:
    """While a view is held, through which the last one is written."""
    b = np.empty((len(x), 1)).T[0]
    rest = b[1:]
    b[:] = x
    rest[-1] = x[-1]
    return b


def part_of_filled(x: Any) -> Any:
    """A view that was made before, of another array."""
    b = np.ones(len(x) + 1)
    rest = b[1:]
    for i in range(len(x)):
        b[i + 1] = x[i]
    return rest


FILLINGS = (filled, filled_with_a_view, part_of_filled)
TRANSFORMS: dict[str, Callable[[Any], Callable[[Any], tuple[Any, Any]]]] = {
    "grad": lambda f: ft.value_and_grad(f),
    "jit": lambda f: lambda x: (ft.jit(f)(x), None),
    "specialize": lambda f: lambda x: (ft.jit(f, specialize=True)(x), None),
}


def _derivative(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    steps = 1e-6 * np.eye(len(x))
    return np.array([(float(f(x + h)) - float(f(x - h))) / 2e-6 for h in steps])


def _program(reader: Reader, fill: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        return reader(fill(x))

    return program


@pytest.mark.filterwarnings("ignore")
@each("transform", TRANSFORMS)
@each("fill", FILLINGS, ids=lambda f: f.__name__)
@each("name", READERS, by="name")
def test_a_reader_is_right_or_raises(name: str, fill: Callable[[Any], Any], transform: str) -> None:
    program = _program(READERS[name], fill)
    expected = float(program(POINT))
    run = TRANSFORMS[transform](program)
    with ft.config(native=False):
        if name in REFUSED:
            with pytest.raises(FunctransError):
                run(POINT)
            return
        try:
            value, gradient = run(POINT)
        except Exception:
            if name in WORK:
                raise
            return
    np.testing.assert_allclose(float(value), expected, 1e-6)
    if gradient is not None:
        np.testing.assert_allclose(gradient, _derivative(program, POINT), 1e-4, 1e-4)


NAMED = {
    "UnivariateSpline": "scipy.interpolate.UnivariateSpline was given a traced value",
    "Rbf": "scipy.interpolate.Rbf was given a traced value",
    "RK45": "scipy.integrate.RK45 was given a traced value",
    "TransferFunction": "scipy.signal.normalize was given a traced value",
    "memoryview": r"memoryview\(\) of an array that holds traced values was asked \(at ",
    "ode": r"memory of an array of float64\[4\] that holds traced values \(the first was written "
    r"at test_readers.py:\d+ \(filled\)\) was read",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMED)
def test_the_error_says_who_read(name: str) -> None:
    with pytest.raises(ConcretizationError, match=NAMED[name]):
        ft.grad(_program(REFUSED[name], filled))(POINT)


def test_an_error_about_nan_says_where_it_may_come_from() -> None:
    def program(x: Any) -> Any:
        b = np.zeros((1, 1))
        b[0, 0] = x[0]
        return TREE.query(b)[0][0]

    with pytest.raises(ValueError, match="finite") as found:
        ft.grad(program)(POINT)
    assert "an array of float64[1,1] that holds traced values" in found.value.__notes__[0]


PAST: dict[str, Callable[[Any], Any]] = {
    "ndarray": lambda b: np.ndarray((4,), buffer=b),
    "memoryview": lambda b: memoryview(b),
    "part of it": lambda b: memoryview(b)[1:],
}


@pytest.mark.parametrize("name", PAST)
def test_a_write_past_the_tracer_is_refused(name: str) -> None:
    def program(x: Any) -> Any:
        b = np.zeros(4)
        other = PAST[name](b)
        b[0] = x[0]
        if len(x) > 1:
            other[1] = 5.0
        return b.sum()

    np.testing.assert_allclose(ft.grad(program)(POINT[:1]), 1.0)
    for f in (ft.grad(program), ft.jit(program)):
        with pytest.raises(ft.errors.UnsupportedOperationError, match="the write is lost"):
            f(POINT)


# NaN of users ------------------------------------------------------------------------------------


def _unfilled(x: Any) -> Any:
    total = 0.0
    for n in range(1, 40):
        a = np.empty(8)
        a[n % 8] = x[0] * n
        total = total + a[n % 8]
        b = np.empty(8)
        b[:] = a
        total = total + np.where(np.arange(8) == n % 8, b, 0.0).sum() + 0 * np.empty(8).size
    return total


def _returned_unfilled(x: Any) -> Any:
    for n in range(40):
        a = np.zeros(8)
        a[n % 8] = x[0]
        del a
        if n % 10 == 0:
            gc.collect()
    out = np.empty(8)
    out[0] = x[0]
    return out


NANS: dict[str, Callable[[Any], Any]] = {
    "nan": lambda x: np.nan * filled(x),
    "filled with nan": lambda x: np.full(4, np.nan) + filled(x),
    "0 / 0": lambda x: filled(x) + np.zeros(4) / np.zeros(4),
    "inf - inf": lambda x: filled(x) + (np.inf - np.full(4, np.inf)),
    "sqrt": lambda x: np.sqrt(filled(x) - 10.0),
    "other bits": lambda x: filled(x) + np.frombuffer(b"\xff" * 32),
    "one unset": lambda x: np.nan_to_num(np.where(x > 1, filled(x), np.nan)),
    "half": lambda x: filled(x).astype(np.float16) * np.float16("nan"),
    "float": lambda x: filled(x) * float("nan"),
    "complex": lambda x: filled(x) * complex("nan"),
    "integers": lambda x: filled(x) * np.iinfo(np.int64).min,
    "empty": _unfilled,
    "returned": _returned_unfilled,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NANS)
def test_nan_of_users_is_no_error(name: str) -> None:
    program = NANS[name]
    with warnings.catch_warnings(), ft.config(native=False):
        warnings.simplefilter("ignore")
        for f in (ft.jit(program), lambda x: ft.jvp(program, (x,), (x,))[0]):
            value, expected = np.asarray(f(POINT)), np.asarray(program(POINT))
            if name == "returned":
                value, expected = value[:1], expected[:1]
            np.testing.assert_allclose(value, expected)


def test_arrays_of_a_call_are_forgotten() -> None:
    from functrans.plain.unreadable import notes

    ft.grad(lambda x: filled(x).sum())(POINT)
    assert notes.get() is None
    with pytest.raises(ZeroDivisionError):
        ft.grad(lambda x: filled(x).sum() / 0 if filled(x)[0] > 9 else 1 / 0)(POINT)
    assert notes.get() is None


# classes of libraries ----------------------------------------------------------------------------


def _seen(x: Any) -> list[bool]:
    """What a program sees of classes."""
    b = filled(x)
    p = Polynomial([1.0, 2.0])
    kinds = {Polynomial: "p"}

    class Shifted(Polynomial):
        def shifted(self) -> Any:
            return self(1.0)

    class Solver(integrate.RK45):
        pass

    match p:
        case Chebyshev():
            matched = False
        case Polynomial():
            matched = True
        case _:
            matched = False
    made = type("Made", (Polynomial,), {})([1.0])
    try:
        raise np.linalg.LinAlgError("singular")
    except np.linalg.LinAlgError:
        caught = True
    return [
        isinstance(p, Polynomial),
        not isinstance(p, Chebyshev),
        isinstance(p, Polynomial | None),
        isinstance(p, (Chebyshev, Polynomial)),
        isinstance(Polynomial(b), Polynomial),
        type(p) is Polynomial,
        type(p) in (Chebyshev, Polynomial),
        type(p) in kinds,
        Polynomial in kinds,
        issubclass(integrate.RK45, integrate.OdeSolver),
        issubclass(Solver, integrate.OdeSolver),
        not issubclass(Polynomial, integrate.OdeSolver),
        isinstance(Polynomial, type),
        Polynomial.__name__ == "Polynomial",
        Polynomial.basis(2).degree() == 2,
        isinstance(Shifted([1.0, 2.0]), Polynomial),
        Shifted([1.0, 2.0]).shifted() == 3.0,
        isinstance(made, Polynomial),
        isinstance(np.nditer(b), np.nditer),
        isinstance(np.ndenumerate(b), np.ndenumerate),
        isinstance(np.broadcast(b, 1.0), np.broadcast),
        np.broadcast(b, np.ones((2, 1))).shape == (2, 4),
        functools.partial(Polynomial, [1.0, 2.0])()(1.0) == 3.0,
        [q(1.0) for q in map(Polynomial, [[1.0], [2.0]])] == [1.0, 2.0],
        Polynomial.__call__(p, 1.0) == 3.0,
        copy.deepcopy(Polynomial) == Polynomial,
        matched,
        caught,
    ]


def test_classes_of_libraries_are_seen_as_they_are() -> None:
    seen: list[list[bool]] = []
    kept: Any = None

    def program(x: Any) -> Any:
        nonlocal kept
        seen.append(_seen(x))
        kept = Polynomial
        return x.sum()

    ft.grad(program)(POINT)
    assert seen[0] == [True] * len(seen[0])
    assert kept is Polynomial
    assert all(_seen(POINT))


def test_a_class_is_given_to_a_library_as_itself() -> None:
    def program(x: Any) -> Any:
        b = filled(x)
        return b.sum() * optimize.Bounds([0.0], [1.0]).lb.size * (integrate.RK45 is not None)

    np.testing.assert_allclose(ft.grad(program)(POINT), np.ones(4))


def test_arrays_that_are_kept_before_they_are_traced_stay_live() -> None:
    def program(x: Any) -> Any:
        b = np.zeros(4)
        bounds = optimize.Bounds(b, b + 1)
        heap = [(0, b)]
        b[:] = x
        return bounds.lb.sum() + heap[0][1].sum()

    np.testing.assert_allclose(ft.grad(program)(POINT), 2 * np.ones(4))


# iterators ----------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda b: b,
    "transposed": lambda b: b.T,
    "reversed": lambda b: b[::-1, ::2],
    "column": lambda b: b[:, 1:2],
    "swapped": lambda b: b.reshape(2, 3, 1).swapaxes(0, 2),
}


def _matrix(x: Any) -> Any:
    b = np.zeros((2, 3))
    for index in np.ndindex(2, 3):
        b[index] = x[index]
    return b


@pytest.mark.parametrize("order", ["K", "C", "F", "A"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nditer_has_the_order_of_numpy(layout: str, order: Any) -> None:
    x = np.arange(6.0).reshape(2, 3) + 1

    def values(x: Any) -> Any:
        b = LAYOUTS[layout](np.asarray(_matrix(x)))
        return np.array([float(v) for v in np.nditer(b, order=order)])

    def places(x: Any) -> Any:
        b = LAYOUTS[layout](_matrix(x))
        it = np.nditer(b, flags=["multi_index"], order=order)
        return np.array([v * (1 + 10 * it.multi_index[-1]) for v in it])

    for f in (values, places):
        np.testing.assert_allclose(ft.jvp(f, (x,), (x,))[0], f(x))
        with ft.config(native=False):
            try:
                found = ft.jit(f)(x)
            except ft.errors.UnsupportedOperationError as error:
                assert order in "KA" and "memory layout" in str(error)  # noqa: PT017, PT018
            else:
                np.testing.assert_allclose(found, f(x))


REFUSED_OF_NDITER: dict[str, Callable[[Any], Any]] = {
    "itviews": lambda b: np.nditer(b).itviews,
    "copy": lambda b: np.nditer(b).copy(),
    "other dtype": lambda b: np.nditer(b, ["buffered"], op_dtypes=["complex128"]),
    "pieces": lambda b: np.nditer(b[::2], ["buffered", "external_loop"], buffersize=1),
    "iters": lambda b: np.broadcast(b, b).iters,
}


@pytest.mark.parametrize("name", REFUSED_OF_NDITER)
def test_what_an_iterator_cannot_do_is_refused(name: str) -> None:
    def program(x: Any) -> Any:
        b = filled(x)
        kept = [REFUSED_OF_NDITER[name](b)]
        return b.sum() * len(kept)

    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"np\.(nditer|broadcast)"):
        ft.grad(program)(POINT)


_STATE = np.random.RandomState(3)
_RNG = np.random.default_rng(3)
ROWS = np.arange(8.0).reshape(4, 2)


def _of_numpy(x: Any) -> None:
    np.random.seed(2)  # noqa: NPY002  # what users have
    np.random.shuffle(x)  # noqa: NPY002


SHUFFLES: dict[str, Any] = {
    "made inside": lambda x: np.random.default_rng(4).shuffle(x),
    "along another axis": lambda x: np.random.default_rng(4).shuffle(x, axis=1),
    "of the old kind": lambda x: np.random.RandomState(5).shuffle(x),
    "global": _of_numpy,
    "captured": lambda x: _RNG.shuffle(x),
    "captured, of the old kind": lambda x: _STATE.shuffle(x),
    "a column": lambda x: np.random.default_rng(1).shuffle(x[:, 0]),
}


@pytest.mark.filterwarnings("ignore:.*global generator")
@pytest.mark.parametrize("name", SHUFFLES)
def test_rows_of_traced_arrays_are_shuffled_as_numpys_are(name: str) -> None:
    def fun(x: Any) -> Any:
        y = x * 1.0
        SHUFFLES[name](y)
        return np.sum(y * ROWS**2)

    def again() -> None:
        _STATE.seed(3)
        _RNG.bit_generator.state = np.random.default_rng(3).bit_generator.state

    before = np.random.get_state()  # noqa: NPY002
    try:
        again()
        plain = fun(ROWS)
        for value in (lambda: ft.value_and_grad(fun)(ROWS)[0], lambda: ft.jit(fun)(ROWS)):
            again()
            np.testing.assert_allclose(value(), plain)
        again()
        order = ft.grad(fun)(ROWS)
        np.testing.assert_array_equal(np.sort(order, axis=None), np.sort(ROWS**2, axis=None))
        np.testing.assert_allclose(np.sum(order * ROWS), plain)
    finally:
        np.random.set_state(before)  # noqa: NPY002
