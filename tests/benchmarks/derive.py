"""Contenders made from one formula that every library runs unchanged.

A formula is ``fun(ops, *arrays)``: it calls ``ops.xp`` (the library's NumPy-like module) and, where
the libraries differ, the functions of ``Ops``. ``primal``, ``gradient`` and ``jacfwd`` turn it
into contenders of functrans, autograd, torch and jax, each written as a user of that library
would; ``curvature`` has ``hessian`` and ``hvp``. Libraries are imported inside the builders: a
worker has only its own.
Layer: above ``record``; workloads build on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.benchmarks.record import Contender

if TYPE_CHECKING:
    from tests.benchmarks.record import Build, Inputs

    Formula = Callable[..., Any]
    Transform = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Ops:
    """What a formula may use besides operators.

    Attributes:
      xp: the library's NumPy-like module.
      logsumexp: ``(x, axis)``.
      scan: ``(step, carry, xs, length) -> (carry, ys)`` as ``jax.lax.scan``; a Python loop where
        the library has none.
    """

    xp: Any
    logsumexp: Callable[..., Any]
    scan: Callable[..., Any]


def loop_scan(stack: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``scan`` as a Python loop that joins the outputs with ``stack``."""

    def scan(step: Callable[..., Any], carry: Any, xs: Any, length: int) -> tuple[Any, Any]:
        ys = []
        for index in range(length):
            carry, y = step(carry, None if xs is None else xs[index])
            ys.append(y)
        return carry, None if ys[0] is None else stack(ys)

    return scan


def part(module: str, name: str) -> Callable[..., Any]:
    """``module.name``, or a function that reports its absence when a workload calls it."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):

        def absent(*_args: Any, **_options: Any) -> Any:
            raise NotImplementedError(f"{module}.{name} does not exist")

        return absent


def functrans_ops() -> Ops:
    """Vocabulary of functrans."""
    import functrans.numpy as fnp

    logsumexp = part("functrans.scipy.special", "logsumexp")
    return Ops(fnp, logsumexp, part("functrans.lax", "scan"))


def jax_ops() -> Ops:
    """Vocabulary of jax."""
    import jax
    import jax.numpy as jnp

    return Ops(jnp, jax.scipy.special.logsumexp, jax.lax.scan)


def autograd_ops() -> Ops:
    """Vocabulary of autograd."""
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    return Ops(anp, logsumexp, loop_scan(anp.stack))


def torch_ops() -> Ops:
    """Vocabulary of torch."""
    import torch

    return Ops(torch, torch.logsumexp, loop_scan(torch.stack))


def argnums(names: Sequence[str]) -> int | tuple[int, ...]:
    """Positions to differentiate: ``0`` for one argument (the result is then no tuple)."""
    return 0 if len(names) == 1 else tuple(range(len(names)))


def take(inputs: Inputs, names: Sequence[str]) -> list[Any]:
    """Values of ``names`` in ``inputs``, in order."""
    return [inputs[name] for name in names]


def on_numpy(
    transform: Transform, ops: Callable[[], Ops], fun: Formula, names: Sequence[str]
) -> Build:
    """Build ``transform(fun)`` of a library that takes and returns NumPy arrays."""

    def build(inputs: Inputs) -> Callable[[], Any]:
        return partial(transform(partial(fun, ops())), *take(inputs, names))

    return build


def on_jax(transform: Transform, fun: Formula, names: Sequence[str]) -> Build:
    """Build ``transform(fun)`` of jax on device arrays, blocking until the result is there."""

    def build(inputs: Inputs) -> Callable[[], Any]:
        import jax
        import jax.numpy as jnp

        function = transform(partial(fun, jax_ops()))
        arrays = [jnp.asarray(array) for array in take(inputs, names)]
        if len(arrays) == 1:
            array = arrays[0]
            return lambda: function(array).block_until_ready()
        return lambda: jax.block_until_ready(function(*arrays))

    return build


def tensors(inputs: Inputs, names: Sequence[str], requires_grad: bool = False) -> list[Any]:
    """Torch tensors that hold copies of the named inputs."""
    import torch

    return [torch.tensor(inputs[name], requires_grad=requires_grad) for name in names]


def method(module: str, name: str, **options: Any) -> Transform:
    """Transform ``module.name(fun, **options)``; the module is imported when it is applied."""

    def transform(fun: Callable[..., Any]) -> Callable[..., Any]:
        return getattr(importlib.import_module(module), name)(fun, **options)

    return transform


def then_jit(transform: Transform, module: str) -> Transform:
    """``module.jit`` after ``transform``."""
    compiler = method(module, "jit")
    return lambda fun: compiler(transform(fun))


def functrans_pair(
    transform: Transform, fun: Formula, names: Sequence[str]
) -> tuple[Contender, Contender]:
    """Functrans, uncompiled and compiled."""
    compiled = then_jit(transform, "functrans")
    return (
        Contender("functrans", "eager", on_numpy(transform, functrans_ops, fun, names)),
        Contender("functrans", "jit", on_numpy(compiled, functrans_ops, fun, names)),
    )


def jax_pair(
    transform: Transform, fun: Formula, names: Sequence[str]
) -> tuple[Contender, Contender]:
    """Jax, uncompiled and compiled."""
    return (
        Contender("jax", "eager", on_jax(transform, fun, names)),
        Contender("jax", "jit", on_jax(then_jit(transform, "jax"), fun, names)),
    )


def gradient(
    fun: Formula, names: Sequence[str], constants: Sequence[str] = ()
) -> tuple[Contender, ...]:
    """Reverse-mode gradient of the scalar ``fun(ops, *names, *constants)`` in all ``names``."""
    everything = (*names, *constants)
    positions = argnums(names)

    def build_torch(inputs: Inputs) -> Callable[[], Any]:
        import torch

        leaves = tensors(inputs, names, requires_grad=True)
        fixed = tensors(inputs, constants)
        function = partial(fun, torch_ops())
        return lambda: torch.autograd.grad(function(*leaves, *fixed), leaves)

    autograd = method("autograd", "grad", argnum=positions)
    return (
        *functrans_pair(method("functrans", "grad", argnums=positions), fun, everything),
        Contender("autograd", "eager", on_numpy(autograd, autograd_ops, fun, everything)),
        Contender("torch", "eager", build_torch),
        *jax_pair(method("jax", "grad", argnums=positions), fun, everything),
    )


def primal(fun: Formula, names: Sequence[str]) -> tuple[Contender, ...]:
    """Plain evaluation of ``fun(ops, *names)``; for torch without recording."""

    def build_torch(inputs: Inputs) -> Callable[[], Any]:
        return partial(fun, torch_ops(), *tensors(inputs, names))

    def unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return (
        *functrans_pair(unchanged, fun, names),
        Contender("autograd", "eager", on_numpy(unchanged, autograd_ops, fun, names)),
        Contender("torch", "eager", build_torch),
        *jax_pair(unchanged, fun, names),
    )


def jacfwd(fun: Formula, name: str, constants: Sequence[str] = ()) -> tuple[Contender, ...]:
    """Forward-mode Jacobian of the tall function ``fun(ops, name, *constants)`` in ``name``."""
    names = (name, *constants)

    def build_torch(inputs: Inputs) -> Callable[[], Any]:
        import torch

        jacobian = torch.func.jacfwd(partial(fun, torch_ops()))
        return partial(jacobian, *tensors(inputs, names))

    def build_autograd(inputs: Inputs) -> Callable[[], Any]:
        import numpy as np

        import autograd

        x, *fixed = take(inputs, names)
        ops = autograd_ops()
        pushforward = autograd.make_jvp(lambda x: fun(ops, x, *fixed))
        basis = np.eye(len(x))

        def jacobian() -> Any:
            push = pushforward(x)
            return np.stack([push(direction)[1] for direction in basis], axis=-1)

        return jacobian

    return (
        *functrans_pair(method("functrans", "jacfwd"), fun, names),
        Contender("autograd", "eager", build_autograd),
        Contender("torch", "eager", build_torch),
        *jax_pair(method("jax", "jacfwd"), fun, names),
    )
