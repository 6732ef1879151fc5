"""Writes to real views of complex tensors and to complex views of real ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import functrans.compat.torch as torch
from cases import each
from functrans.autograd import func, grad, no_grad, tensor

Z = np.array([[0.3 + 0.8j, -0.6 + 0.2j, 0.5 - 0.9j], [1.1 - 0.4j, 0.7 + 0.6j, -0.2 + 1.3j]])
DZ = np.cos(np.arange(6.0)).reshape(2, 3) + 1j * np.sin(2 + np.arange(6.0)).reshape(2, 3)
U = np.linspace(-0.8, 1.4, 24).reshape(2, 3, 4)
DU = np.sin(1 + np.arange(24.0)).reshape(2, 3, 4)

OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "whole": lambda z: z,
    "a part": lambda z: z[:, 1:],
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "view_as_real": torch.view_as_real,
    "a row of pairs": lambda z: torch.view_as_real(z)[0],
    "one of each pair": lambda z: torch.view_as_real(z)[..., 1],
    "a slice of real": lambda z: z.real[:, ::2],
    "a column of imag": lambda z: z.imag[:, 1],
    "real of a slice": lambda z: z[1].real,
    "imag of the transposed": lambda z: z.t().imag[1:],
    "pairs of the transposed": lambda z: torch.view_as_real(z.t())[1:, :, 0],
    "diagonal": lambda z: torch.view_as_real(z).diagonal(0, 0, 1),
    "unfolded": lambda z: z.real.unfold(1, 2, 2),
    "pairs and back": lambda z: torch.view_as_complex(torch.view_as_real(z))[:, :2],
    "real of pairs and back": lambda z: torch.view_as_complex(torch.view_as_real(z)[1:]).real,
}
OF_REAL: dict[str, Callable[[Any], Any]] = {
    "view_as_complex": lambda u: torch.view_as_complex(u.view(2, 3, 2, 2)),
    "a slice of it": lambda u: torch.view_as_complex(u.view(2, 3, 2, 2))[1:, ::2],
    "its real part": lambda u: torch.view_as_complex(u.view(2, 6, 2)).real,
    "its imag": lambda u: torch.view_as_complex(u[..., 2:]).imag[0],
}
CASES = {
    **{f"complex, {name}": (view, Z, DZ) for name, view in OF_COMPLEX.items()},
    **{f"real, {name}": (view, U, DU) for name, view in OF_REAL.items()},
}


def _masked(p: Any) -> Any:
    places = np.arange(p.numel()).reshape(p.shape)
    return p.masked_fill_(tensor(places % 2 == 0), 0.5)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda p, s: p.mul_(3.0),
    "by a tensor": lambda p, s: p.mul_(s),
    "square_": lambda p, s: p.square_(),
    "fill_": lambda p, s: p.fill_(0.25),
    "fill_ with a tensor": lambda p, s: p.fill_(s),
    "copy_": lambda p, s: p.copy_((p * 2 + s).flip(0)),
    "masked_fill_": lambda p, s: _masked(p),
    "item of itself": lambda p, s: p.__setitem__(-1, p[0] * 2 + s),
    "constant": lambda p, s: p.__setitem__((0, ...), 1.0),
    "mask": lambda p, s: p.__setitem__(tensor([True] + [False] * (p.shape[0] - 1)), s),
}


def program(view: Callable[[Any], Any], put: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A real number that depends on a written tensor, another view of it, and its old value."""

    def run(x: Any) -> Any:
        a = x * 1
        before = (x * x).sum()
        other = a[0]
        part = view(a)
        put(part, before.real if part.dtype.kind == "f" else before)
        weights = np.cos(np.arange(a.numel())).reshape(a.shape)
        total = (a * a * tensor(weights)).sum() + (other * other).sum() + before
        return total.real + 0.3 * total.imag if total.dtype.kind == "c" else total

    return run


@each("name", CASES)
@each("kind", WRITES, by="kind")
def test_a_write_to_a_part_of_numbers_has_the_gradient_of_differences(name: str, kind: str) -> None:
    view, point, direction = CASES[name]
    run = program(view, WRITES[kind])

    def value(t: float) -> float:
        with no_grad():
            return float(run(tensor(point + t * direction)))

    h = 1e-4
    slope = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    x = tensor(point, requires_grad=True)
    (first,) = grad(run(x), x, create_graph=True)
    for gradient in (first, func.grad(run)(tensor(point))):
        found = (np.conj(gradient.detach().numpy()) * direction).sum().real
        assert_allclose(found, slope, 1e-8, 1e-8)
