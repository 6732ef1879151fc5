"""Functions of ``functrans.compat.torch`` against torch: windows, differences, polynomials."""

from __future__ import annotations

import numpy as np
import pytest

import functrans.compat.torch as ours

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:A window was not provided")

X = np.random.RandomState(0).standard_normal((3, 40))


def _agree(call, *arrays, rtol=1e-9):
    found = []
    for lib in (torch, ours):
        operands = [lib.from_numpy(a.copy()).requires_grad_() for a in arrays]
        out = call(lib, *operands)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        total = 0.0
        for y in outs:
            if y.requires_grad:
                total = total + (abs(y) ** 2).sum()
        if isinstance(total, lib.Tensor):
            total.backward()
        found.append(
            [y.detach().numpy() for y in outs]
            + [None if x.grad is None else x.grad.numpy() for x in operands]
        )
    for a, b in zip(*found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
def test_window(name, periodic, length):
    def call(lib):
        return getattr(lib, f"{name}_window")(length, periodic, dtype=lib.float64)

    _agree(call, rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"n_fft": 8, "return_complex": True},
        {"n_fft": 7, "hop_length": 3, "center": False, "return_complex": True},
        {"n_fft": 10, "win_length": 6, "normalized": True, "return_complex": True},
        {"n_fft": 8, "onesided": False, "pad_mode": "constant", "return_complex": True},
    ],
)
@pytest.mark.parametrize("has_window", [False, True])
def test_stft(options, has_window):
    def call(lib, x):
        width = options.get("win_length", options["n_fft"])
        window = lib.hann_window(width, dtype=lib.float64) if has_window else None
        return lib.stft(x, window=window, **options)

    _agree(call, X)


@pytest.mark.parametrize(
    "options", [{}, {"dim": 1}, {"spacing": 0.5}, {"dim": (0,), "edge_order": 2}]
)
def test_gradient(options):
    _agree(lambda lib, x: lib.gradient(x, **options), X)


def test_gradient_with_coordinates():
    places = np.array([0.0, 1.0, 3.0, 4.0])

    def call(lib, x):
        return lib.gradient(x, spacing=(lib.from_numpy(places),), dim=1)

    _agree(call, X[:, :4].copy())


def test_cumulative_trapezoid():
    _agree(lambda lib, y: lib.cumulative_trapezoid(y, dx=0.5), X)
    _agree(lambda lib, y, x: lib.cumulative_trapezoid(y, x), X, X + 1)
    _agree(lambda lib, y, x: lib.cumulative_trapezoid(y, x, dim=0), X, X[:, 0].copy())


def test_histogram():
    for options in ({"bins": 5}, {"bins": 4, "range": (-1.0, 1.0), "density": True}):
        theirs = torch.histogram(torch.from_numpy(X), **options)
        mine = ours.histogram(ours.from_numpy(X), **options)
        np.testing.assert_allclose(mine.hist.numpy(), theirs.hist.numpy())
        np.testing.assert_allclose(mine.bin_edges.numpy(), theirs.bin_edges.numpy())


@pytest.mark.parametrize("kind", "tuvw")
@pytest.mark.parametrize("prefix", ["", "shifted_"])
def test_chebyshev_polynomials(kind, prefix):
    x = np.linspace(0.05, 0.95, 8)
    for degree in range(6):
        name = f"{prefix}chebyshev_polynomial_{kind}"
        theirs = getattr(torch.special, name)(torch.from_numpy(x), degree)
        mine = getattr(ours.special, name)(ours.from_numpy(x), degree)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-10)


def test_polynomials_of_several_degrees():
    degrees = np.arange(5)
    theirs = torch.special.hermite_polynomial_h(torch.tensor(0.3), torch.from_numpy(degrees))
    mine = ours.special.hermite_polynomial_h(ours.tensor(0.3), ours.from_numpy(degrees))
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)


def test_spherical_bessel():
    _agree(lambda lib, x: lib.special.spherical_bessel_j0(x).detach(), np.linspace(-9, 9, 41))
