"""In-place operations under hooks for saved tensors: derivatives read what was overwritten."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans.compat.torch.nn.functional as F  # noqa: N812  # the name that torch users give
from functrans.autograd import Tensor, from_numpy, grad, no_grad, tensor
from functrans.autograd.checkpoint import checkpoint
from functrans.autograd.graph import save_to_disk, saved_tensors_hooks

X = np.array([[0.31, 0.62, 0.83], [0.44, 0.75, 0.26]])
W = np.array([[0.52, 0.13, 0.94], [0.65, 0.36, 0.77]])
SQUARE = np.array([[0.5, 0.3, 0.8], [0.1, 0.9, 0.4], [0.7, 0.6, 0.2]])
ROW = tensor([1])
LINE = tensor([[1, 0, 1]])
MASK = tensor(X > 0.5)

OPERANDS: dict[str, Callable[[Any, Any], Any]] = {
    "addbmm_": lambda x, w: x[:, :2].addbmm_(w[None], w.t()[None]),
    "addcdiv_": lambda x, w: x.addcdiv_(w, w + 1, value=2),
    "addcmul_": lambda x, w: x.addcmul_(w, w, value=2),
    "addmm_": lambda x, w: x.addmm_(w, tensor(SQUARE)),
    "addmv_": lambda x, w: x[0].addmv_(tensor(SQUARE), w[0]),
    "addr_": lambda x, w: x.addr_(w[:, 0], w[0]),
    "baddbmm_": lambda x, w: x[None].baddbmm_(w[None], tensor(SQUARE)[None]),
    "clamp_": lambda x, w: x.clamp_(0.4, w),
    "clip_": lambda x, w: x.clip_(w, 0.8),
    "clamp_max_": lambda x, w: x.clamp_max_(0.5),
    "clamp_min_": lambda x, w: x.clamp_min_(0.5),
    "cumprod_": lambda x, w: x.cumprod_(1),
    "cumsum_": lambda x, w: x.cumsum_(1),
    "fill_": lambda x, w: x.fill_(w[0, 0]),
    "fill_diagonal_": lambda x, w: x.fill_diagonal_(0.4),
    "index_add_": lambda x, w: x.index_add_(0, ROW, w[:1], alpha=2),
    "index_copy_": lambda x, w: x.index_copy_(0, ROW, w[:1]),
    "index_fill_": lambda x, w: x.index_fill_(0, ROW, 0.5),
    "index_put_": lambda x, w: x.index_put_((ROW,), w[:1]),
    "index_reduce_": lambda x, w: x.index_reduce_(0, ROW, w[:1], "prod"),
    "ldexp_": lambda x, w: x.ldexp_(w),
    "lerp_": lambda x, w: x.lerp_(w, 0.3),
    "logit_": lambda x, w: x.logit_(1e-3),
    "masked_fill_": lambda x, w: x.masked_fill_(MASK, w[0, 0]),
    "masked_scatter_": lambda x, w: x.masked_scatter_(MASK, w),
    "nan_to_num_": lambda x, w: x.nan_to_num_(0.0),
    "polygamma_": lambda x, w: x.polygamma_(1),
    "pow_": lambda x, w: x.pow_(w),
    "put_": lambda x, w: x.put_(tensor([1, 4]), w[0, :2]),
    "renorm_": lambda x, w: x.renorm_(2, 0, 0.5),
    "scatter_": lambda x, w: x.scatter_(0, LINE, w[:1]),
    "scatter_add_": lambda x, w: x.scatter_add_(0, LINE, w[:1]),
    "scatter_reduce_": lambda x, w: x.scatter_reduce_(0, LINE, w[:1], "prod"),
    "as_strided_": lambda x, w: x.as_strided_((2,), (1,)),
    "squeeze_": lambda x, w: x.squeeze_(0),
    "swapaxes_": lambda x, w: x.swapaxes_(0, 1),
    "swapdims_": lambda x, w: x.swapdims_(0, 1),
    "transpose_": lambda x, w: x.transpose_(0, 1),
    "unsqueeze_": lambda x, w: x.unsqueeze_(0),
    "acosh_": lambda x, w: x.add_(1).acosh_(),
    "arccosh_": lambda x, w: x.add_(1).arccosh_(),
    "igamma_": lambda x, w: x.zero_().add_(0.3).igamma_(w),
    "igammac_": lambda x, w: x.zero_().add_(0.3).igammac_(w),
}
"""How operations are called that are neither ``x.f_()`` nor ``x.f_(w)``."""

WITHOUT = frozenset(
    [
        "apply_",
        "bernoulli_",
        "cauchy_",
        "detach_",
        "eq_",
        "exponential_",
        "ge_",
        "geometric_",
        "greater_",
        "greater_equal_",
        "gt_",
        "heaviside_",
        "le_",
        "less_",
        "less_equal_",
        "log_normal_",
        "lt_",
        "ne_",
        "normal_",
        "not_equal_",
        "random_",
        "resize_",
        "resize_as_",
        "set_",
        "requires_grad_",
        "share_memory_",
        "uniform_",
        "logical_and_",
        "logical_not_",
        "logical_or_",
        "logical_xor_",
        "bitwise_and_",
        "bitwise_left_shift_",
        "bitwise_not_",
        "bitwise_or_",
        "bitwise_right_shift_",
        "bitwise_xor_",
        "gcd_",
        "lcm_",
        "nextafter_",
    ]
)
"""In-place operations without derivative, and those of integers only."""


def _called(name: str) -> Callable[[Any, Any], Any]:
    def call(x: Any, w: Any) -> Any:
        method = getattr(x, name)
        try:
            return method()
        except TypeError:
            return method(w)

    return OPERANDS.get(name, call)


def _activation(function: Any) -> Callable[[Any, Any], Any]:
    needed = {"threshold": (0.5, 0.1)}.get(function.__name__, ())
    return lambda x, w: function(x, *needed, inplace=True)


def _random(function: Any) -> bool:
    return "dropout" in function.__name__ or function.__name__ == "rrelu"


CASES: dict[str, Callable[[Any, Any], Any]] = {
    name: _called(name)
    for name in dir(Tensor)
    if name.endswith("_") and not name.startswith("_") and name not in WITHOUT
}
CASES |= {
    f"F.{name}": _activation(function)
    for name, function in vars(F).items()
    if inspect.isfunction(function)
    and "inplace" in inspect.signature(function).parameters
    and not _random(function)
}
CASES |= {
    "a part": lambda x, w: x[:, 1:].square_(),
    "itself": lambda x, w: x.mul_(x),
    "by a part of itself": lambda x, w: x.mul_(x[:1]),
    "augmented": lambda x, w: x.__imul__(w),
    "item": lambda x, w: x.__setitem__(0, x[1] * w[0]),
    "several": lambda x, w: x.sin_().mul_(w).square_().exp_().pow_(2),
    "dropout": lambda x, w: F.dropout(x, 0.0, inplace=True).square_(),
}


def program(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A number that depends on what was written, and on what was there before."""

    def run(x: Any, w: Any) -> Any:
        y = x * 1
        before = y.exp()
        write(y, w)
        return (y.reshape(-1).sin() * tensor(np.cos(np.arange(y.numel())))).sum() + before.sum()

    return run


def slope(run: Callable[[Any, Any], Any]) -> float:
    """The derivative in a direction, by differences of values."""

    def value(t: float) -> float:
        with no_grad():
            return float(run(tensor(X + t * DX), tensor(W + t * DW)))

    h = 1e-5
    return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)


DX, DW = np.cos(np.arange(6.0)).reshape(2, 3), np.sin(1 + np.arange(6.0)).reshape(2, 3)


class Wide:
    """Hooks that keep numbers of another dtype."""

    @staticmethod
    def pack(x: Any) -> Any:
        return x.dtype, x.detach().numpy().astype(np.longdouble)

    @staticmethod
    def unpack(kept: Any) -> Any:
        dtype, value = kept
        return from_numpy(np.asarray(value.astype(dtype)))


def _hooked(hooks: Callable[[], Any], run: Callable[..., Any], x: Any, w: Any) -> Any:
    with hooks():
        return run(x, w)


WAYS: dict[str, Callable[..., Any]] = {
    "without": lambda run, x, w, path: run(x, w),
    "identity": lambda run, x, w, path: _hooked(
        lambda: saved_tensors_hooks(lambda t: t, lambda t: t), run, x, w
    ),
    "wide": lambda run, x, w, path: _hooked(
        lambda: saved_tensors_hooks(Wide.pack, Wide.unpack), run, x, w
    ),
    "file": lambda run, x, w, path: _hooked(lambda: save_to_disk(str(path)), run, x, w),
    "checkpoint": lambda run, x, w, path: checkpoint(run, x, w, use_reentrant=False),
}


@pytest.mark.parametrize("name", CASES)
def test_an_overwritten_value_is_kept_as_it_was(name: str, tmp_path: Path) -> None:
    run = program(CASES[name])
    expected = slope(run)
    for way, call in WAYS.items():
        x, w = tensor(X, requires_grad=True), tensor(W, requires_grad=True)
        total = call(run, x, w, tmp_path)
        try:
            gradients = grad(total, (x, w), allow_unused=True)
        except RuntimeError as error:
            if name not in MAY_BE_REFUSED or "modified by an inplace" not in str(error):
                raise
            continue
        found = sum(
            (g.numpy() * d).sum() for g, d in zip(gradients, (DX, DW), strict=True) if g is not None
        )
        assert_allclose(found, expected, 1e-7, 1e-9, err_msg=way)


MAY_BE_REFUSED = ("itself", "by a part of itself", "item")
"""What another operation saved is overwritten, too."""
