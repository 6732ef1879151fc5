"""``scipy.ndimage``: values, derivatives, batches and compiled programs against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from scipy_cases import Case, check

import functrans as ft
from functrans.errors import ConcretizationError, ShapeError, UnsupportedOperationError

R = np.random.default_rng(13)
X = R.standard_normal((5, 6))
V = R.standard_normal(8)
T = R.standard_normal((4, 3, 5))
Z = X[:3] + 1j * R.standard_normal((3, 6))
W3 = R.standard_normal(3)
W4 = R.standard_normal(4)
W = R.standard_normal((2, 3))
MODES = ("reflect", "mirror", "nearest", "wrap", "constant")
ALL_MODES = (*MODES, "grid-mirror", "grid-wrap", "grid-constant")
INSIDE = R.uniform(0.3, 3.7, (2, 7))
INSIDE += 0.1 * (np.abs(INSIDE % 0.5 - 0.25) > 0.23)
BEYOND = np.array([[-1.3, 0.7, 4.6, 9.3, 2.2, -6.4], [0.2, -2.7, 5.4, 3.3, 11.3, 1.3]])
LABELS = np.array([[0, 1, 1, 2, 2, 0]] * 3 + [[3, 3, 0, 0, 2, 2]] * 2)
FOOT = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 1]], bool)

FILTERS = (
    *(
        Case(
            f"correlate1d {mode}",
            lambda m, x, w, k=mode: m.correlate1d(x, w, 0, None, k, 0.7),
            X,
            W3,
        )
        for mode in MODES
    ),
    Case("correlate1d even origin", lambda m, x, w: m.correlate1d(x, w, origin=1), X, W4),
    Case("correlate1d known weights", lambda m, x: m.correlate1d(x, W4, origin=-2), X),
    Case("correlate1d wide", lambda m, x: m.correlate1d(x, np.arange(15.0), mode="wrap"), V),
    Case("correlate1d complex", lambda m, x, w: m.correlate1d(x, w), Z, W3),
    Case("convolve1d", lambda m, x, w: m.convolve1d(x, w), X, W3),
    Case("convolve1d even origin", lambda m, x, w: m.convolve1d(x, w, origin=1, axis=0), X, W4),
    Case("correlate", lambda m, x, w: m.correlate(x, w), X, W),
    Case(
        "correlate origin", lambda m, x, w: m.correlate(x, w, mode="mirror", origin=(0, -1)), X, W
    ),
    Case("correlate axes", lambda m, x, w: m.correlate(x, w, axes=(0, 2)), T, W),
    Case("convolve", lambda m, x, w: m.convolve(x, w, mode="constant", cval=1.5), X, W),
    Case("convolve origin", lambda m, x, w: m.convolve(x, w, origin=(-1, 1)), X, W),
    Case("gaussian_filter1d", lambda m, x: m.gaussian_filter1d(x, 0.8), X),
    Case("gaussian_filter1d order", lambda m, x: m.gaussian_filter1d(x, 0.9, 0, order=3), X),
    Case("gaussian_filter1d radius", lambda m, x: m.gaussian_filter1d(x, 2.0, radius=2), V),
    Case("gaussian_filter", lambda m, x: m.gaussian_filter(x, (0.7, 0.4), mode="wrap"), X),
    Case("gaussian_filter order", lambda m, x: m.gaussian_filter(x, 0.7, order=(1, 2)), X),
    Case("gaussian_filter axes", lambda m, x: m.gaussian_filter(x, 0.5, axes=(0, 2)), T),
    Case("uniform_filter1d", lambda m, x: m.uniform_filter1d(x, 4, origin=1), X),
    Case("uniform_filter", lambda m, x: m.uniform_filter(x, (2, 3), mode=("wrap", "nearest")), X),
    Case("sobel", lambda m, x: m.sobel(x), X),
    Case("sobel axis", lambda m, x: m.sobel(x, 1, mode="nearest"), T),
    Case("prewitt", lambda m, x: m.prewitt(x, 0), X),
    Case("laplace", lambda m, x: m.laplace(x, mode="mirror"), X),
    Case("gaussian_laplace", lambda m, x: m.gaussian_laplace(x, 0.7), X),
    Case("gaussian_gradient_magnitude", lambda m, x: m.gaussian_gradient_magnitude(x, 0.6), X),
    Case("maximum_filter", lambda m, x: m.maximum_filter(x, 3), X),
    Case("maximum_filter origin", lambda m, x: m.maximum_filter(x, (2, 4), origin=(0, 1)), X),
    Case("maximum_filter footprint", lambda m, x: m.maximum_filter(x, footprint=FOOT), X),
    Case("minimum_filter", lambda m, x: m.minimum_filter(x, 2, mode="constant", cval=0.1), X),
    Case("minimum_filter axes", lambda m, x: m.minimum_filter(x, 3, axes=(1,)), X),
    Case("maximum_filter1d", lambda m, x: m.maximum_filter1d(x, 3, 0, mode="wrap"), X),
    Case("minimum_filter1d", lambda m, x: m.minimum_filter1d(x, 4), X),
    Case("median_filter", lambda m, x: m.median_filter(x, 3), X),
    Case("median_filter even", lambda m, x: m.median_filter(x, (1, 4), mode="nearest"), X),
    Case("percentile_filter", lambda m, x: m.percentile_filter(x, 30, 3), X),
    Case("percentile_filter end", lambda m, x: m.percentile_filter(x, -0.0, footprint=FOOT), X),
    Case("rank_filter", lambda m, x: m.rank_filter(x, -2, 2), X),
)

INTERPOLATION = (
    *(
        Case(
            f"spline_filter1d {order} {mode}",
            lambda m, x, o=order, k=mode: m.spline_filter1d(x, o, mode=k),
            X,
        )
        for order in (2, 3, 4, 5)
        for mode in ("mirror", "reflect", "grid-wrap")
    ),
    Case("spline_filter", lambda m, x: m.spline_filter(x), X),
    Case(
        "spline_filter complex",
        lambda m, x: m.spline_filter(x, output=complex),
        Z,
        keeps_single=False,
    ),
    *(
        Case(
            f"map_coordinates order {order}",
            lambda m, x, c, o=order: m.map_coordinates(x, c, order=o),
            X,
            INSIDE,
            order=0 if order == 0 else 1 if order < 3 else 2,
        )
        for order in range(6)
    ),
    *(
        Case(
            f"map_coordinates {mode} {order}",
            lambda m, x, c, k=mode, o=order: m.map_coordinates(x, c, order=o, mode=k, cval=0.4),
            X,
            BEYOND,
            order=1,
        )
        for mode in ALL_MODES
        for order in (1, 3)
    ),
    Case(
        "map_coordinates 3-d",
        lambda m, x, c: m.map_coordinates(x, c, order=1),
        T,
        R.uniform(0.1, 0.9, (3, 2, 2)),
        order=1,
    ),
    Case(
        "map_coordinates coefficients",
        lambda m, x, c: m.map_coordinates(x, c, prefilter=False),
        X,
        INSIDE,
    ),
    Case("shift", lambda m, x: m.shift(x, (0.3, -1.2)), X),
    Case("shift mode", lambda m, x: m.shift(x, 0.4, order=2, mode="grid-wrap"), X),
    Case("zoom", lambda m, x: m.zoom(x, 1.7, mode="nearest"), X),
    Case(
        "zoom grid",
        lambda m, x: m.zoom(x, (0.5, 2), order=1, mode="grid-constant", grid_mode=True),
        X,
    ),
    Case(
        "affine_transform",
        lambda m, x: m.affine_transform(x, np.array([[0.9, 0.1], [-0.2, 1.1]]), 0.3),
        X,
    ),
    Case(
        "affine_transform diagonal",
        lambda m, x: m.affine_transform(x, np.array([0.9, 1.1]), (0.2, 0.1), mode="mirror"),
        X,
    ),
    Case(
        "affine_transform homogeneous",
        lambda m, x: m.affine_transform(
            x, np.array([[1.0, 0.2, 0.3], [0, 1, 0.1]]), output_shape=(3, 4)
        ),
        X,
    ),
    Case("rotate", lambda m, x: m.rotate(x, 20.0), X),
    Case(
        "rotate plane", lambda m, x: m.rotate(x, 35.0, axes=(0, 2), reshape=False, mode="mirror"), T
    ),
)

MEASUREMENTS = (
    *(
        case
        for name in ("sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum")
        for case in (
            Case(name, lambda m, x, f=name: getattr(m, f)(x), X),
            Case(f"{name} labels", lambda m, x, f=name: getattr(m, f)(x, LABELS), X),
            Case(
                f"{name} index",
                lambda m, x, f=name: np.stack(list(getattr(m, f)(x, LABELS, [1, 3, 2]))),
                X,
            ),
        )
    ),
    Case("center_of_mass", lambda m, x: m.center_of_mass(x), np.abs(X) + 1),
    Case("center_of_mass index", lambda m, x: m.center_of_mass(x, LABELS, [1, 2]), np.abs(X) + 1),
)


@pytest.mark.parametrize("case", [*FILTERS, *INTERPOLATION, *MEASUREMENTS], ids=repr)
def test_function_agrees_with_scipy_and_differences(case: Case) -> None:
    check(case, "ndimage")


def test_parameters_of_filters_and_maps_are_differentiated() -> None:
    nd = ft.scipy.ndimage
    ft.check_grads(lambda s: nd.gaussian_filter1d(X, s, radius=3), (0.8,))
    ft.check_grads(lambda s: nd.gaussian_filter(X, s, radius=2, order=1), (np.array([0.8, 0.6]),))
    ft.check_grads(lambda s: nd.shift(X, s), (np.array([0.3, -1.2]),))
    ft.check_grads(
        lambda a: nd.rotate(X, a, reshape=False, mode="mirror"), (20.3,), rtol=1e-3, atol=1e-3
    )
    ft.check_grads(lambda a: nd.rotate(X, a, mode="mirror"), (20.3,), rtol=1e-3, atol=1e-3)
    matrix = np.array([[0.9, 0.1], [-0.2, 1.1]])
    ft.check_grads(
        lambda m, o: nd.affine_transform(X, m, o, mode="mirror"),
        (matrix, np.array([0.3, 0.1])),
        rtol=1e-3,
        atol=1e-3,
    )


def test_extent_of_a_gaussian_needs_a_value() -> None:
    with pytest.raises(ConcretizationError, match="radius="):
        ft.jit(lambda s: ft.scipy.ndimage.gaussian_filter1d(X, s))(0.8)
    with pytest.raises(ConcretizationError, match="reshape=False"):
        ft.jit(lambda a: ft.scipy.ndimage.rotate(X, a))(20.0)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m, x: m.correlate1d(x, W3, mode="odd"), ValueError, "mode='odd'"),
        (lambda m, x: m.correlate1d(x, W), ShapeError, "weights of shape"),
        (lambda m, x: m.correlate1d(x, W3, origin=3), ValueError, "origin"),
        (lambda m, x: m.correlate1d(x, W3, output=X.copy()), UnsupportedOperationError, "output"),
        (lambda m, x: m.correlate(x, W3), ShapeError, "2 axes"),
        (lambda m, x: m.gaussian_filter1d(x, 1.0, order=-1), ValueError, "order"),
        (lambda m, x: m.gaussian_filter(x, (1.0, 1.0, 1.0)), ShapeError, "3 entries"),
        (lambda m, x: m.median_filter(x), ValueError, "size or a footprint"),
        (lambda m, x: m.rank_filter(x, 9, 3), ValueError, "rank 9"),
        (lambda m, x: m.percentile_filter(x, 130, 3), ValueError, "percentile 130"),
        (lambda m, x: m.map_coordinates(x, INSIDE, order=6), ValueError, "0 to 5"),
        (lambda m, x: m.map_coordinates(x, INSIDE, mode="odd"), ValueError, "mode='odd'"),
        (lambda m, x: m.map_coordinates(x, INSIDE[:1]), ShapeError, "2 axes"),
        (lambda m, x: m.affine_transform(x, np.eye(4)), ShapeError, "matrix of shape"),
        (lambda m, x: m.rotate(x, 3.0, axes=(1, 1)), ShapeError, "no plane"),
        (lambda m, x: m.mean(X, x), UnsupportedOperationError, "traced labels"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ft.vjp(lambda x: call(ft.scipy.ndimage, x), X)


def test_single_pixel_and_empty_results() -> None:
    nd = ft.scipy.ndimage
    one = np.array([[2.0]])
    for mode in ALL_MODES:
        found = ft.jit(lambda x, m=mode: nd.map_coordinates(x, np.zeros((2, 1)), mode=m))(one)
        np.testing.assert_allclose(found, [2.0])
    found = ft.jit(lambda x: nd.map_coordinates(x, np.zeros((2, 0))))(X)
    assert found.shape == (0,)
    np.testing.assert_array_equal(found, scipy.ndimage.map_coordinates(X, np.zeros((2, 0))))


INTEGERS = {
    "gaussian": lambda m, x, **o: m.gaussian_filter(x, 1.0, **o),
    "convolve": lambda m, x, **o: m.convolve(x, np.array([[1, -2], [3, 0], [1, 1]]), **o),
    "correlate1d": lambda m, x, **o: m.correlate1d(x, [1.5, -2.0, 0.25], **o),
    "uniform": lambda m, x, **o: m.uniform_filter(x, 3, **o),
    "maximum": lambda m, x, **o: m.maximum_filter(x, 3, **o),
    "median": lambda m, x, **o: m.median_filter(x, 3, **o),
    "sobel": lambda m, x, **o: m.sobel(x, **o),
    "laplace": lambda m, x, **o: m.laplace(x, **o),
    "gaussian_laplace": lambda m, x, **o: m.gaussian_laplace(x, 1.0, **o),
    "magnitude": lambda m, x, **o: m.gaussian_gradient_magnitude(x, 1.0, **o),
    "zoom": lambda m, x, **o: m.zoom(x, 2, **o),
    "shift": lambda m, x, **o: m.shift(x, 0.5, order=1, cval=3, **o),
    "rotate": lambda m, x, **o: m.rotate(x, 20.0, **o),
    "affine": lambda m, x, **o: m.affine_transform(x, np.diag([0.9, 1.1]), **o),
    "map": lambda m, x, **o: m.map_coordinates(x, [[1.2, 3.0], [2.0, 0.4]], **o),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", ["i4", "u1", "i8", "?"])
def test_images_of_integers_give_integers(name: str, dtype: str) -> None:
    """Compiled or not, an image of integers is filtered to the same integers."""
    if dtype == "?" and name in ("zoom", "shift", "rotate", "affine", "map"):
        pytest.skip("SciPy cuts off, so that 0.999... is False")
    image = (np.abs(X * 30) if dtype == "u1" else X * 30).astype(dtype)
    fun = INTEGERS[name]
    expected = fun(scipy.ndimage, image)
    found = ft.jit(lambda x: fun(ft.scipy.ndimage, x))(image)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(("dtype", "output"), [("f8", "i2"), ("f8", "f4"), ("i4", "f8")])
def test_output_is_the_dtype_of_the_result_only(name: str, dtype: str, output: str) -> None:
    image = (X * 30).astype(dtype)
    fun = INTEGERS[name]
    expected = fun(scipy.ndimage, image, output=np.dtype(output))
    found = ft.jit(lambda x: fun(ft.scipy.ndimage, x, output=np.dtype(output)))(image)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if output == "f4" else 1e-10, atol=1e-4)


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("prefilter", [True, False])
def test_nearest_goes_on_with_the_coefficients(order: int, prefilter: bool) -> None:
    """Between the border and where all weights fall on the last coefficient, and far beyond."""
    places = np.array([[-0.4, -1.7, 4.3, 9.3, 2.2, -60.4, 1e9], [0.2, -2.7, 5.4, 3.3, 7.3, 1.3, 2]])

    def at(m: Any, x: Any) -> Any:
        return m.map_coordinates(x, places, order=order, mode="nearest", prefilter=prefilter)

    check(Case(f"nearest {order} {prefilter}", at, X), "ndimage")


@pytest.mark.parametrize("dtype", ["f8", "i4", "u1"])
@pytest.mark.parametrize("name", ["minimum", "maximum", "sum_labels", "mean", "variance"])
@pytest.mark.parametrize("index", [None, 3, [1, 3], [[1, 2], [3, 2]]])
def test_measurements_have_scipys_dtype(name: str, dtype: str, index: Any) -> None:
    image = (np.abs(X) * 20).astype(dtype)
    expected = getattr(scipy.ndimage, name)(image, LABELS, index)
    found = ft.jit(lambda x: getattr(ft.scipy.ndimage, name)(x, LABELS, index))(image)
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_extremes_of_a_region_without_values_are_zero() -> None:
    for name in ("minimum", "maximum"):
        found = ft.jit(lambda x, name=name: getattr(ft.scipy.ndimage, name)(x, LABELS, [1, 9]))(X)
        np.testing.assert_array_equal(found, getattr(scipy.ndimage, name)(X, LABELS, [1, 9]))


# Filters that add up products, with weights that are 0; whole rows and parts of them.
LINEAR: dict[str, Any] = {
    **{f: lambda m, x, f=f: getattr(m, f)(x) for f in ("sobel", "prewitt", "laplace")},
    **{
        f"correlate1d {w}": lambda m, x, w=w: m.correlate1d(x, np.array(w), axis=0)
        for w in ([1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0, 2.0, 0, 0])
    },
    **{
        f"{f} {w} {mode}": lambda m, x, f=f, w=w, mode=mode: getattr(m, f)(
            x, np.array(w), mode=mode, cval=np.nan
        )
        for f in ("correlate", "convolve")
        for w in ([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]], [[0.0, 1.0]], [[0.0]], [[1.0, 2], [3, 4]])
        for mode in ("reflect", "constant")
    },
    "correlate axes": lambda m, x: m.correlate(x, np.array([1.0, 0.0, 2.0]), axes=(0,)),
    "gaussian_filter": lambda m, x: m.gaussian_filter(x, 0.7, order=1, truncate=2.0),
    "gaussian_gradient_magnitude": lambda m, x: m.gaussian_gradient_magnitude(x, 0.7, axes=(0,)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_weights_of_zero_treat_nan_and_infinity_as_in_scipy(name: str) -> None:
    """SciPy leaves them out of filters of several axes, and multiplies along one axis."""
    image = np.arange(56.0).reshape(7, 8) ** 1.3
    special = image.copy()
    special[2, 5], special[5, 1], special[0, 0] = -np.inf, np.inf, np.nan
    function = LINEAR[name]
    with np.errstate(all="ignore"):
        for x in (image, special):
            expected = function(scipy.ndimage, x)
            for run in (
                lambda x: function(ft.scipy.ndimage, x),
                lambda x: ft.vjp(lambda x: function(ft.scipy.ndimage, x), x)[0],
                ft.jit(lambda x: function(ft.scipy.ndimage, x)),
            ):
                np.testing.assert_allclose(run(x), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["constant", "wrap", "nearest"])
def test_affine_coordinates_are_rounded_as_scipys(mode):
    """A pixel that lies on an edge to rounding is on the same side of it."""
    image = np.arange(20.0).reshape(4, 5)
    matrix, offset = np.array([[0.8, 0.2], [-0.1, 1.1]]), np.array([0.2, -0.3])
    options = {"order": 1, "mode": mode, "cval": -99.0}
    found = ft.jit(lambda x: ft.scipy.ndimage.affine_transform(x, matrix, offset, **options))(image)
    expected = scipy.ndimage.affine_transform(image, matrix, offset, **options)
    # Rounding of sums of numbers up to 20; a pixel on the other side of an edge differs by 99.
    np.testing.assert_allclose(found, expected, atol=1e-12)
