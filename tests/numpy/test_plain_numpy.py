"""Ordinary NumPy code, without functrans.numpy, has right gradients: the list of functions.

Each row is a different NumPy function (twins of operators and aliases are not counted) called as
``np.name``; its gradient is compared with finite differences in reverse and in forward mode.
"""

import numpy as np
import pytest
from numpy_cases import Case, check_derivatives, check_second_order, leaves

import functrans as ft

R = np.random.default_rng(8)
U = R.uniform(0.2, 0.8, (2, 3))
B = R.uniform(1.3, 2.4, (2, 3))
V = np.array([0.7, -1.9, 0.4, 2.3, 1.1, -0.2])
W = R.uniform(0.5, 1.5, 6)
X = R.standard_normal((3, 4))
Y = R.standard_normal((4, 3))
S = R.standard_normal((3, 3))
P = S @ S.T + 3 * np.eye(3)
Z = X[:3, :3] + 1j * S
N = np.where(R.uniform(size=(3, 4)) > 0.75, np.nan, X)
N[:, 0] = X[:, 0]
M = X > 0


def real(out):
    """A real result of complex ones."""
    return np.real(out) * 2.0 + np.imag(out)


UFUNCS = {
    "absolute": (np.absolute, U - 0.5),
    "arccos": (np.arccos, U),
    "arccosh": (np.arccosh, B),
    "arcsin": (np.arcsin, U),
    "arcsinh": (np.arcsinh, U),
    "arctan": (np.arctan, U),
    "arctan2": (np.arctan2, U, B),
    "arctanh": (np.arctanh, U),
    "cbrt": (np.cbrt, U),
    "conjugate": (lambda x: real(np.conjugate(x * (1 + 2j))), U),
    "copysign": (np.copysign, U, U - 0.5),
    "cos": (np.cos, U),
    "cosh": (np.cosh, U),
    "deg2rad": (np.deg2rad, U),
    "degrees": (np.degrees, U),
    "exp": (np.exp, U),
    "exp2": (np.exp2, U),
    "expm1": (np.expm1, U),
    "fabs": (np.fabs, U - 0.5),
    "float_power": (np.float_power, U, B),
    "fmax": (np.fmax, U, U[::-1]),
    "fmin": (np.fmin, U, U[::-1]),
    "fmod": (np.fmod, B, U),
    "frexp": (lambda x: np.frexp(x)[0], U),
    "hypot": (np.hypot, U, B),
    "ldexp": (lambda x: np.ldexp(x, [1, 2, 3]), U),
    "log": (np.log, U),
    "log10": (np.log10, U),
    "log1p": (np.log1p, U),
    "log2": (np.log2, U),
    "logaddexp": (np.logaddexp, U, B),
    "logaddexp2": (np.logaddexp2, U, B),
    "maximum": (np.maximum, U, U[::-1]),
    "minimum": (np.minimum, U, U[::-1]),
    "modf": (lambda x: np.modf(x)[0], B),
    "nextafter": (lambda x: np.nextafter(x, 9.0), U),
    "positive": (np.positive, U),
    "rad2deg": (np.rad2deg, U),
    "radians": (np.radians, U),
    "reciprocal": (np.reciprocal, U),
    "sign": (lambda x: np.sign(x) * x, U),
    "sin": (np.sin, U),
    "sinh": (np.sinh, U),
    "sqrt": (np.sqrt, U),
    "square": (np.square, U),
    "tan": (np.tan, U),
    "tanh": (np.tanh, U),
    "floor": (lambda x: np.floor(x) * x, B),
    "ceil": (lambda x: np.ceil(x) * x, B),
    "trunc": (lambda x: np.trunc(x) * x, B),
    "rint": (lambda x: np.rint(x) * x, B),
    "heaviside": (lambda x: np.heaviside(x, 0.5) * x, X),
    "vecdot": (np.vecdot, U, B),
    "matvec": (np.matvec, U, B[0]),
    "vecmat": (np.vecmat, B[0], U.T),
}

REDUCTIONS = {
    "sum": (np.sum, X),
    "prod": (np.prod, V),
    "max": (np.max, X),
    "min": (np.min, X),
    "mean": (lambda x: np.mean(x, axis=0), X),
    "var": (np.var, X),
    "std": (np.std, X),
    "average": (lambda x, w: np.average(x, weights=w), V, W),
    "median": (np.median, X),
    "quantile": (lambda x: np.quantile(x, 0.3, axis=1), X),
    "percentile": (lambda x: np.percentile(x, [20.0, 70.0]), X),
    "ptp": (np.ptp, X),
    "cov": (np.cov, X),
    "corrcoef": (np.corrcoef, X),
    "cumsum": (np.cumsum, X),
    "cumprod": (np.cumprod, V),
    "cumulative_sum": (np.cumulative_sum, V),
    "cumulative_prod": (np.cumulative_prod, V),
    "diff": (np.diff, X),
    "ediff1d": (np.ediff1d, X),
    "gradient": (np.gradient, V),
    "trapezoid": (np.trapezoid, X),
    "nansum": (np.nansum, N),
    "nanprod": (np.nanprod, N),
    "nanmax": (np.nanmax, N),
    "nanmin": (np.nanmin, N),
    "nanmean": (np.nanmean, N),
    "nanvar": (np.nanvar, N),
    "nanstd": (np.nanstd, N),
    "nanmedian": (np.nanmedian, N),
    "nanquantile": (lambda x: np.nanquantile(x, 0.4), N),
    "nanpercentile": (lambda x: np.nanpercentile(x, 60.0, axis=1), N),
    "nancumsum": (np.nancumsum, N),
    "nancumprod": (np.nancumprod, N),
    "histogram": (lambda x, w: np.histogram(x, 3, weights=w), V, W),
    "bincount": (lambda w: np.bincount([0, 2, 1, 2, 0, 4], w), W),
}

SHAPES = {
    "reshape": (lambda x: np.reshape(x, (2, 6)), X),
    "ravel": (np.ravel, X),
    "transpose": (np.transpose, X),
    "matrix_transpose": (np.matrix_transpose, X),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), X),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), X),
    "rollaxis": (lambda x: np.rollaxis(x, 1), X),
    "squeeze": (np.squeeze, X[:1]),
    "expand_dims": (lambda x: np.expand_dims(x, 0), X),
    "atleast_1d": (np.atleast_1d, np.asarray(1.5)),
    "atleast_2d": (np.atleast_2d, V),
    "atleast_3d": (np.atleast_3d, X),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3, 4)), X),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y), X, X[0]),
    "flip": (np.flip, X),
    "fliplr": (np.fliplr, X),
    "flipud": (np.flipud, X),
    "rot90": (np.rot90, X),
    "roll": (lambda x: np.roll(x, 2), X),
    "resize": (lambda x: np.resize(x, (2, 4)), V),
    "concatenate": (lambda x, y: np.concatenate([x, y]), V, W),
    "stack": (lambda x, y: np.stack([x, y]), V, W),
    "vstack": (lambda x, y: np.vstack([x, y]), V, W),
    "hstack": (lambda x, y: np.hstack([x, y]), V, W),
    "dstack": (lambda x, y: np.dstack([x, y]), V, W),
    "column_stack": (lambda x, y: np.column_stack([x, y]), V, W),
    "append": (np.append, V, W),
    "block": (lambda x: np.block([[x, x], [x, 2 * x]]), X),
    "split": (lambda x: np.split(x, 3), V),
    "array_split": (lambda x: np.array_split(x, 4), V),
    "vsplit": (lambda x: np.vsplit(x, 3), X),
    "hsplit": (lambda x: np.hsplit(x, 2), X),
    "unstack": (np.unstack, X),
    "tile": (lambda x: np.tile(x, 2), X),
    "repeat": (lambda x: np.repeat(x, 2), X),
    "delete": (lambda x: np.delete(x, 1), V),
    "insert": (lambda x: np.insert(x, 1, x[0]), V),
    "pad": (lambda x: np.pad(x, 2, "reflect"), V),
    "where": (lambda x, y: np.where(M, x, y), X, X + 1),
    "take": (lambda x: np.take(x, [0, 5, 0]), V),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(x), -1), V),
    "compress": (lambda x: np.compress([True, False, True], x), V),
    "extract": (lambda x: np.extract(M, x), X),
    "choose": (lambda x: np.choose([1, 0, 1], [x[:3], x[3:]]), V),
    "select": (lambda x: np.select([x > 1, x > 0], [x**2, x]), V),
    "diag": (np.diag, S),
    "diagonal": (np.diagonal, X),
    "diagflat": (np.diagflat, V[:3]),
    "tril": (np.tril, X),
    "triu": (np.triu, X),
    "sort": (np.sort, X),
    "partition": (lambda x: np.partition(x, 0)[0], V),
    "unique": (np.unique, V),
    "meshgrid": (lambda x, y: np.meshgrid(x, y), V, W),
    "full_like": (lambda x: np.full_like(x, x[0]), V),
    "copy": (np.copy, X),
    "linspace": (lambda x: np.linspace(x, 3.0, 4), V),
    "clip": (lambda x: np.clip(x, -0.5, 0.5), X),
    "vander": (np.vander, V),
    "piecewise": (lambda x: np.piecewise(x, [x < 0], [np.sin, np.cos]), V),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.cumsum, 0, x), X),
}

OTHERS = {
    "interp": (lambda x, fp: np.interp(x, [-1.0, 0.0, 2.0], fp), V, W[:3]),
    "polyval": (np.polyval, V, W),
    "polymul": (np.polymul, V, W),
    "polyadd": (np.polyadd, V, W[:2]),
    "polyder": (np.polyder, V),
    "polyint": (np.polyint, V),
    "sinc": (np.sinc, V),
    "i0": (np.i0, V),
    "unwrap": (np.unwrap, 3 * V),
    "nan_to_num": (np.nan_to_num, X),
    "real": (lambda x: np.real(x * (1 + 2j)), X),
    "imag": (lambda x: np.imag(x * (1 + 2j)), X),
    "angle": (lambda x: np.angle(x + 1j), X),
    "round": (lambda x: np.round(x, 1) * x, X),
    "fix": (lambda x: np.fix(x) * x, X),
}

PRODUCTS = {
    "dot": (np.dot, X, Y),
    "vdot": (np.vdot, X, X + 1),
    "inner": (np.inner, X, X),
    "outer": (np.outer, V, W),
    "tensordot": (lambda x, y: np.tensordot(x, y, 1), X, Y),
    "einsum": (lambda x, y: np.einsum("ij,jk->ki", x, y), X, Y),
    "kron": (np.kron, X, V),
    "cross": (np.cross, Y, V[:3]),
    "convolve": (np.convolve, V, W[:3]),
    "correlate": (np.correlate, V, W[:3]),
    "trace": (np.trace, S),
    "linalg.multi_dot": (lambda x, y: np.linalg.multi_dot([x, y, x]), X, Y),
    "linalg.matmul": (np.linalg.matmul, X, Y),
    "linalg.vecdot": (np.linalg.vecdot, X, X + 1),
    "linalg.matrix_power": (lambda x: np.linalg.matrix_power(x, 3), S),
}

LINALG = {
    "solve": (np.linalg.solve, P, S),
    "inv": (np.linalg.inv, P),
    "det": (np.linalg.det, S),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], P),
    "cholesky": (lambda x: np.linalg.cholesky((x + x.T) / 2), P),
    "qr": (lambda x: np.linalg.qr(x)[1], S),
    "svd": (lambda x: np.linalg.svd(x)[1], X),
    "svdvals": (np.linalg.svdvals, X),
    "eigh": (lambda x: np.linalg.eigh((x + x.T) / 2)[0], P),
    "eigvalsh": (lambda x: np.linalg.eigvalsh((x + x.T) / 2), P),
    "eig": (lambda x: np.sort(np.abs(np.linalg.eig(x)[0])), P),
    "eigvals": (lambda x: np.sort(np.abs(np.linalg.eigvals(x))), P),
    "lstsq": (lambda a, b: np.linalg.lstsq(a, b)[0], Y, V[:4]),
    "pinv": (np.linalg.pinv, X),
    "norm": (np.linalg.norm, X),
    "vector_norm": (np.linalg.vector_norm, X),
    "matrix_norm": (np.linalg.matrix_norm, X),
    "cond": (np.linalg.cond, P),
    "tensorinv": (lambda x: np.linalg.tensorinv(x, 1), P),
    "tensorsolve": (lambda a, b: np.linalg.tensorsolve(a, b), P, V[:3]),
}

FFT = {
    "fft": (lambda x: real(np.fft.fft(x)), X),
    "ifft": (lambda x: real(np.fft.ifft(x)), X),
    "rfft": (lambda x: real(np.fft.rfft(x)), X),
    "irfft": (lambda x: np.fft.irfft(x * (1 + 1j)), X),
    "hfft": (lambda x: np.fft.hfft(x * (1 + 1j)), X),
    "ihfft": (lambda x: real(np.fft.ihfft(x)), X),
    "fft2": (lambda x: real(np.fft.fft2(x)), X),
    "ifft2": (lambda x: real(np.fft.ifft2(x)), X),
    "rfft2": (lambda x: real(np.fft.rfft2(x)), X),
    "irfft2": (lambda x: np.fft.irfft2(x + 1j), X),
    "fftn": (lambda x: real(np.fft.fftn(x)), X),
    "ifftn": (lambda x: real(np.fft.ifftn(x)), X),
    "rfftn": (lambda x: real(np.fft.rfftn(x)), X),
    "irfftn": (lambda x: np.fft.irfftn(x + 1j), X),
    "fftshift": (np.fft.fftshift, X),
    "ifftshift": (np.fft.ifftshift, X),
}

FAMILIES = {
    "ufuncs": (UFUNCS, 45),
    "reductions and cumulatives": (REDUCTIONS, 15),
    "shape, joining, indexing": (SHAPES, 25),
    "products": (PRODUCTS, 12),
    "linalg": (LINALG, 12),
    "fft": (FFT, 8),
    "others": (OTHERS, 0),
}
# Python writes these as operators, so that they are not counted.
OPERATOR_TWINS = {
    "absolute",
    "add",
    "divide",
    "divmod",
    "floor_divide",
    "matmul",
    "multiply",
    "negative",
    "positive",
    "power",
    "remainder",
    "subtract",
    "true_divide",
}
CASES = [
    Case(f"{family}: {name}", function, *args, rtol=1e-5)
    for family, (table, _) in FAMILIES.items()
    for name, (function, *args) in table.items()
]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_gradient_of_plain_numpy_is_right(case: Case) -> None:
    check_derivatives(case)
    check_second_order(case)

    def scalar(*args):
        total = 0.0
        for out in leaves(case.function(*args)):
            if out.dtype.kind == "f":
                total = total + np.sum(out * np.cos(np.arange(out.size)).reshape(out.shape))
        return total

    gradients = ft.grad(scalar, tuple(range(len(case.args))))(*case.args)
    rng = np.random.default_rng(5)
    for i, (x, g) in enumerate(zip(case.args, gradients, strict=True)):
        t = rng.standard_normal(x.shape)
        moved = [[*case.args[:i], x + h * t, *case.args[i + 1 :]] for h in (1e-6, -1e-6)]
        slope = (scalar(*moved[0]) - scalar(*moved[1])) / 2e-6
        assert g.shape == x.shape
        np.testing.assert_allclose(np.sum(g * t), slope, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_family_has_enough_functions(family: str) -> None:
    table, least = FAMILIES[family]
    assert len(set(table) - OPERATOR_TWINS) >= least


def test_there_are_at_least_120_functions() -> None:
    names = [name for table, _ in FAMILIES.values() for name in table if name not in OPERATOR_TWINS]
    assert len(names) == len(set(names))
    assert len(names) >= 120
    functions = set()
    for family, (table, _) in FAMILIES.items():
        module = {"linalg": np.linalg, "fft": np.fft}.get(family, np)
        for name in set(table) - OPERATOR_TWINS:
            space, _, own = name.rpartition(".")
            functions.add(getattr(getattr(np, space) if space else module, own))
    assert len(functions) >= 120  # different objects, so that no alias is counted
