"""Recomputing in the backward pass instead of storing: ``checkpoint`` and its policies.

Here: the primitive ``checkpoint``, the transform, ``checkpoint_policies``, ``checkpoint_name``. Not
here: the choice of what is stored, given a policy (``passes.remat``).

The linear part of a checkpointed call is one equation, which takes the arguments (and what the
policy keeps), computes the residuals again, and applies the linear program. It stays one equation
when it is transposed, so that no simplification merges the second computation with the first.

Layer: ``control``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from functrans import pytrees as tree
from functrans.control.binomial import Binomial, binomial
from functrans.control.bodies import finish_results, flatten_operands, stage_body
from functrans.control.calls import (
    Binder,
    call_batch,
    call_jvp,
    call_prune,
    call_transpose,
    kept_residuals,
)
from functrans.control.native import run
from functrans.control.revolve import bind_loops
from functrans.core.arguments import name_of, named
from functrans.core.avals import Aval
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, bind
from functrans.core.jaxpr import Jaxpr
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive
from functrans.core.transformed import transform
from functrans.core.values import Array, P, R
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import Flags, derivation, derived, linearize_jaxpr, spread
from functrans.passes.remat import Policy, name_p, split_residuals
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.convolution import conv_general_p
from functrans.primitives.dot import dot_general_p

# policies ---------------------------------------------------------------------------------------


def everything_saveable(primitive: Primitive, *avals: object, **params: object) -> bool:
    """Store all residuals, as without ``checkpoint``."""
    return True


def nothing_saveable(primitive: Primitive, *avals: object, **params: object) -> bool:
    """Store the arguments only."""
    return False


def dots_saveable(primitive: Primitive, *avals: object, **params: object) -> bool:
    """Store results of matrix products and convolutions."""
    return primitive in (dot_general_p, conv_general_p)


def dots_with_no_batch_dims_saveable(primitive: Primitive, *avals: object, **params: Any) -> bool:
    """Store results of matrix products that are not batched."""
    return primitive is dot_general_p and not any(params["batch"])


def save_only_these_names(*names: str) -> Policy:
    """A policy that stores values marked with one of some names."""
    chosen = frozenset(names)

    def policy(primitive: Primitive, *avals: object, **params: object) -> bool:
        return primitive is name_p and params["name"] in chosen

    return policy


def save_any_names_but_these(*names: str) -> Policy:
    """A policy that stores values marked with any name but some."""
    excluded = frozenset(names)

    def policy(primitive: Primitive, *avals: object, **params: object) -> bool:
        return primitive is name_p and params["name"] not in excluded

    return policy


def save_anything_except_these_names(*names: str) -> Policy:
    """A policy that stores all residuals except values marked with one of some names."""
    excluded = frozenset(names)

    def policy(primitive: Primitive, *avals: object, **params: object) -> bool:
        return not (primitive is name_p and params["name"] in excluded)

    return policy


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """A policy that stores what either of two does."""

    def policy(primitive: Primitive, *avals: object, **params: object) -> bool:
        return first(primitive, *avals, **params) or second(primitive, *avals, **params)

    return policy


class checkpoint_policies:  # noqa: N801  # a namespace under JAX's name
    """What a checkpointed function stores: ``(primitive, *avals, **params) -> bool``."""

    everything_saveable = staticmethod(everything_saveable)
    nothing_saveable = staticmethod(nothing_saveable)
    dots_saveable = staticmethod(dots_saveable)
    checkpoint_dots = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(dots_with_no_batch_dims_saveable)
    save_only_these_names = staticmethod(save_only_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)
    binomial = staticmethod(binomial)


def checkpoint_name(x: Array, name: str) -> float:
    """Mark the arrays of a pytree for policies that go by name.

    Args:
      x: pytree of arrays.
      name: the name.

    Example:
      >>> checkpoint_name(2.0, "activations")
      2.0
    """
    return tree.map(
        lambda leaf: bind(name_p, leaf, name=name)[0] if isinstance(leaf, Tracer) else leaf, x
    )


# the primitive ----------------------------------------------------------------------------------


def _checkpoint_impl(*operands: object, jaxpr: Jaxpr, policy: Policy | None) -> tuple[Any, ...]:
    return tuple(run(jaxpr, operands))


def _checkpoint_aval(*avals: Aval, jaxpr: Jaxpr, policy: Policy | None) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _checkpoint_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, policy: Policy | None
) -> tuple[Any, ...]:
    return call_jvp(_binder(policy), jaxpr, primals, tangents)


@derivation
def _programs(jaxpr: Jaxpr, needs: Flags, policy: Policy | None) -> tuple[Jaxpr, Jaxpr, Flags]:
    """Programs ``(*args) -> (*outs, *kept)`` and ``(*args, *kept, *tangents) -> tangents``."""
    parts = linearize_jaxpr(jaxpr, needs)
    n = len(jaxpr.outvars)
    forward, recompute = split_residuals(parts.primal, n, policy or nothing_saveable)
    m = len(recompute.invars)

    def linear(*args: object) -> list[Any]:
        residuals = evaluate(recompute, args[:m])
        return evaluate(parts.linear, [*residuals, *args[m:]])

    avals = [*recompute.in_avals, *parts.linear.in_avals[parts.n_residuals :]]
    label = f"linear part of checkpoint of {jaxpr.name}"
    program = stage(linear, avals, label, name=parts.linear.name)
    return simplify(forward), simplify(program), parts.out_nonzero


def _checkpoint_linearize(
    needs: Flags, operands: Sequence[Array | complex], *, jaxpr: Jaxpr, policy: Policy | None
) -> tuple[tuple[Any, ...], LinearProgram]:
    forward, program, out_nonzero = _programs(jaxpr, needs, policy)
    results = _binder(policy)(forward, *operands)
    n = len(jaxpr.outvars)
    residuals = kept_residuals([*operands, *results[n:]], operands, needs)

    def linear(*args: object) -> list[Any]:
        outs = _binder(policy)(program, *args)
        return spread(out_nonzero, outs, lambda i: zeros(jaxpr.out_avals[i].strong()))

    avals = tuple(map(aval_of, residuals)) + program.in_avals[len(residuals) :]
    whole = derived(
        jaxpr,
        ("checkpoint linear", needs, policy, avals),
        lambda: stage(linear, avals, f"linear part of checkpoint of {jaxpr.name}"),
    )
    targets = tuple(i for i, need in enumerate(needs) if need)
    return tuple(results[:n]), LinearProgram(whole, targets, tuple(residuals))


def _checkpoint_transpose(
    cts: Sequence[Array],
    operands: Sequence[Array | complex],
    *,
    jaxpr: Jaxpr,
    policy: Policy | None,
) -> tuple[Any, ...]:
    return call_transpose(_binder(policy), jaxpr, cts, operands)


def _checkpoint_batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    jaxpr: Jaxpr,
    policy: Policy | None,
) -> tuple[Any, ...]:
    return call_batch(_binder(policy), jaxpr, size, operands, dims)


def _checkpoint_prune(used: Flags, *, jaxpr: Jaxpr, policy: Policy | None) -> tuple[Any, ...]:
    return call_prune(_binder(policy), jaxpr, used)


checkpoint_p = Primitive(
    "checkpoint",
    impl=_checkpoint_impl,
    abstract_eval=_checkpoint_aval,
    jvp=Joint(_checkpoint_jvp),
    linearize=_checkpoint_linearize,
    transpose=_checkpoint_transpose,
    takes_masks=True,
    batch=_checkpoint_batch,
    prune=_checkpoint_prune,
    holds_programs=True,
    lower=Structured("call"),
)


def _binder(policy: Policy | None) -> Binder:
    return Binder(checkpoint_p, (("policy", policy),))


# the transform ----------------------------------------------------------------------------------


@overload
def checkpoint(
    fun: np.ufunc, *, policy: Policy | None = None, static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@transform
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Make a function whose reverse mode computes intermediate values again, to save memory.

    The function is staged; between the forward and the backward pass only its arguments are kept,
    and what the policy stores.

    Args:
      fun: function of pytrees of arrays.
      policy: what to store besides; one of ``checkpoint_policies``, by default nothing.
      static_argnums: positions of arguments that are passed as they are.

    Returns:
      Function of the same arguments. Without ``fun``, a decorator.

    Raises:
      ConcretizationError: (when called) ``fun`` asks for the value of an argument.

    Example:
      >>> import functrans as ft
      >>> ft.grad(checkpoint(lambda x: x**3))(2.0)
      array(12.)

    Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 12.
    """
    if fun is None:
        return functools.partial(checkpoint, policy=policy, static_argnums=static_argnums)
    fun = traced_form("checkpoint", fun)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @named("checkpoint", fun)
    def checkpointed(*args: object, **kwargs: object) -> Any:
        label = f"checkpoint of {name_of(fun)}"
        args, kwargs = tuple(map(tree.fold_float0, args)), tree.fold_float0(kwargs)
        static = {i % len(args) for i in numbers if -len(args) <= i < len(args)}
        traced = [arg for i, arg in enumerate(args) if i not in static]

        def rest(own: Sequence[Any], named: dict[str, Any]) -> Any:
            given = iter(own)
            full = [arg if i in static else next(given) for i, arg in enumerate(args)]
            return fun(*full, **named)

        rest.__name__ = name_of(fun)
        leaves, treedef, _ = flatten_operands(label, (traced, kwargs), "args")
        names: list[str] = []
        for i, arg in enumerate(args):
            if i not in static:
                names.extend(tree.key_paths(arg, f"args[{i}]"))
        names.extend(tree.key_paths(kwargs, "kwargs"))
        body = stage_body(label, rest, treedef, [aval_of(leaf) for leaf in leaves], names)
        operands = [*body.captured, *leaves]
        outs: Sequence[Any]
        if isinstance(policy, Binomial):
            outs = bind_loops(body.jaxpr, operands, policy.n)
        else:
            outs = bind(checkpoint_p, *operands, jaxpr=body.jaxpr, policy=policy)
        return finish_results(outs, operands, body.treedef)

    return checkpointed


remat = checkpoint

PRIMITIVES: tuple[Primitive, ...] = (checkpoint_p,)
