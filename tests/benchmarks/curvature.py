"""Contenders for Hessians and Hessian-vector products of one formula.

The continuation of ``derive`` for second derivatives, which the libraries spell differently.
Layer: above ``derive``; workloads build on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.benchmarks.derive import (
    autograd_ops,
    functrans_ops,
    functrans_pair,
    jax_pair,
    method,
    on_numpy,
    take,
    tensors,
    torch_ops,
)
from tests.benchmarks.record import Contender

if TYPE_CHECKING:
    from tests.benchmarks.derive import Formula, Transform
    from tests.benchmarks.record import Build, Inputs


def _functrans_functional(fun: Formula, name: str, constants: Sequence[str]) -> Build:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from functrans import functional

        fixed = take(inputs, constants)
        ops = functrans_ops()
        return partial(functional.hessian, lambda x: fun(ops, x, *fixed), inputs[name])

    return build


def _torch_functional(fun: Formula, name: str, constants: Sequence[str]) -> Build:
    def build(inputs: Inputs) -> Callable[[], Any]:
        from torch.autograd import functional

        (x,) = tensors(inputs, (name,))
        fixed = tensors(inputs, constants)
        ops = torch_ops()
        return partial(functional.hessian, lambda x: fun(ops, x, *fixed), x, vectorize=False)

    return build


def _torch_func(fun: Formula, names: Sequence[str]) -> Build:
    def build(inputs: Inputs) -> Callable[[], Any]:
        import torch

        return partial(torch.func.hessian(partial(fun, torch_ops())), *tensors(inputs, names))

    return build


def hessian(fun: Formula, name: str, constants: Sequence[str] = ()) -> tuple[Contender, ...]:
    """Hessian of the scalar ``fun(ops, name, *constants)`` in the array ``name``.

    ``eager`` is ``functional.hessian`` of functrans and of torch (``vectorize=False``), ``func``
    is ``functrans.hessian`` and ``torch.func.hessian``.
    """
    names = (name, *constants)
    func, compiled = functrans_pair(method("functrans", "hessian"), fun, names)
    autograd = on_numpy(method("autograd", "hessian"), autograd_ops, fun, names)
    return (
        Contender("functrans", "eager", _functrans_functional(fun, name, constants)),
        Contender("functrans", "func", func.build),
        compiled,
        Contender("autograd", "eager", autograd),
        Contender("torch", "eager", _torch_functional(fun, name, constants)),
        Contender("torch", "func", _torch_func(fun, names)),
        *jax_pair(method("jax", "hessian"), fun, names),
    )


def forward_over_reverse(module: str) -> Transform:
    """Turn ``f(x, *constants)`` into ``(x, v, *constants) -> H v``, ``jvp`` of ``grad``."""

    def transform(fun: Callable[..., Any]) -> Callable[..., Any]:
        library = importlib.import_module(module)

        def product(x: Any, v: Any, *constants: Any) -> Any:
            gradient = library.grad(lambda x: fun(x, *constants))
            return library.jvp(gradient, (x,), (v,))[1]

        return product

    return transform


def hvp(
    fun: Formula, name: str, vector: str, constants: Sequence[str] = ()
) -> tuple[Contender, ...]:
    """Hessian-vector product: forward over reverse; double backward in torch and autograd."""
    names = (name, vector, *constants)

    def build_torch(inputs: Inputs) -> Callable[[], Any]:
        import torch

        (x,) = tensors(inputs, (name,), requires_grad=True)
        v, *fixed = tensors(inputs, (vector, *constants))
        ops = torch_ops()

        def product() -> Any:
            (slope,) = torch.autograd.grad(fun(ops, x, *fixed), x, create_graph=True)
            return torch.autograd.grad(slope, x, v)

        return product

    def build_autograd(inputs: Inputs) -> Callable[[], Any]:
        import autograd

        x, v, *fixed = take(inputs, names)
        ops = autograd_ops()
        product = autograd.hessian_vector_product(lambda x: fun(ops, x, *fixed))
        return partial(product, x, v)

    return (
        *functrans_pair(forward_over_reverse("functrans"), fun, names),
        Contender("autograd", "eager", build_autograd),
        Contender("torch", "eager", build_torch),
        *jax_pair(forward_over_reverse("jax"), fun, names),
    )
