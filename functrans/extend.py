"""``ft.extend``: what authors of primitives and of transforms need.

Here: records of primitives with their families and kinds of lowering, programs and their parts,
``bind``, and the passes as functions of programs: ``stage``, ``evaluate``, ``simplify``,
``jvp_jaxpr``, ``linearize_jaxpr``, ``transpose_jaxpr``, ``batch_jaxpr``. Not here: what they are
(``ir``, ``primitives.family``, ``passes.programs``), and the transforms of functions.

A program comes from ``functrans.make_jaxpr(f)(*args)`` or from ``stage``. A pass takes one and
returns another of the kind that ``functrans.check_jaxpr`` accepts, so that passes compose. Programs
are values: no pass changes one.

Layer: ``lax``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.arguments import check_argnums, check_callable, name_of, result_leaf
from functrans.core.avals import ShapedArray as ShapedArray
from functrans.core.avals import Zero as Zero
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import aval_of as aval_of
from functrans.core.dispatch import bind as bind
from functrans.core.jaxpr import Atom as Atom
from functrans.core.jaxpr import Equation as Equation
from functrans.core.jaxpr import Jaxpr as Jaxpr
from functrans.core.jaxpr import Literal as Literal
from functrans.core.jaxpr import Var as Var
from functrans.core.jaxpr import subjaxprs as subjaxprs
from functrans.core.lowering import Expansion as Expansion
from functrans.core.lowering import IndexMap as IndexMap
from functrans.core.lowering import Pointwise as Pointwise
from functrans.core.lowering import Read as Read
from functrans.core.lowering import Reduction as Reduction
from functrans.core.lowering import Routine as Routine
from functrans.core.lowering import Structured as Structured
from functrans.core.primitive import Joint as Joint
from functrans.core.primitive import LinearOperand as LinearOperand
from functrans.core.primitive import Primitive as Primitive
from functrans.core.primitive import Work as Work
from functrans.core.primitive import is_linear as is_linear
from functrans.core.primitive import linear as linear
from functrans.core.primitive import multilinear as multilinear
from functrans.core.primitive import nondifferentiable as nondifferentiable
from functrans.errors import NonDifferentiableError
from functrans.namespaces import listing as _listing
from functrans.passes import evaluate as evaluation
from functrans.passes import programs, staging
from functrans.passes import simplify as simplification
from functrans.passes.cotangents import zeros
from functrans.passes.nodes import LinearProgram as LinearProgram
from functrans.primitives.elementwise import mul_strong_zero as mul_strong_zero
from functrans.primitives.family import arithmetic as arithmetic
from functrans.primitives.family import binary as binary
from functrans.primitives.family import elementwise_primitive as elementwise_primitive
from functrans.primitives.family import ternary as ternary
from functrans.primitives.family import unary as unary
from functrans.primitives.family import user_function as user_function
from functrans.transforms.inspect import run_program

Positions = int | Sequence[int] | None


# making and running -------------------------------------------------------------------------------


def stage(fun: Callable[..., Any], avals: Sequence[ShapedArray], name: str = "") -> Jaxpr:
    """Trace a function of arrays into a program; ``functrans.make_jaxpr`` is that for pytrees.

    Args:
      fun: takes one array per aval, returns an array or a tuple or list of arrays.
      avals: shapes and dtypes of the arguments.
      name: name of the program; by default that of ``fun``.

    Returns:
      The program. Arrays that ``fun`` refers to are its constants.

    Raises:
      TypeError: ``fun`` is no function, or an aval is no ``ShapedArray``.
      ConcretizationError: ``fun`` asks for the value of an argument.

    Example:
      >>> import numpy as np
      >>> print(stage(np.sin, [ShapedArray((3,), np.dtype(float))]))
      { lambda ; a:f64[3]. let
          b:f64[3] = sin a
        in (b,) }
    """
    check_callable("stage", fun)
    for i, aval in enumerate(avals):
        if not isinstance(aval, ShapedArray):
            raise TypeError(
                f"stage: avals[{i}] is of type {type(aval).__name__}, expected a ShapedArray; of "
                "an array x it is aval_of(x)"
            )
    label = f"stage of {name_of(fun)}"

    def flat(*args: object) -> list[Any]:
        result = fun(*args)
        outs = result if isinstance(result, (tuple, list)) else (result,)
        return [result_leaf(out, label, result, i) for i, out in enumerate(outs)]

    return staging.stage(flat, avals, label, name=name or name_of(fun))


def evaluate(jaxpr: Jaxpr, args: Sequence[Any], consts: Sequence[Any] | None = None) -> list[Any]:
    """Run a program; under the trace of a traced argument its equations belong to that.

    Args:
      jaxpr: the program.
      args: one array per argument.
      consts: values for its constants, in place of its own.

    Returns:
      One array per result.

    Raises:
      TypeError: it is no program, or the number of arguments or constants is another.
      ShapeError: an argument has another shape, or a dtype that cannot be converted.

    Example:
      >>> import functrans as ft
      >>> program = ft.make_jaxpr(lambda x: x * x)(1.0)
      >>> evaluate(program, [3.0])
      [array(9.)]
      >>> ft.grad(lambda x: evaluate(program, [x])[0])(3.0)
      array(6.)
    """
    return run_program("evaluate", _program("evaluate", jaxpr), consts, args)


def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """The program with constants folded, equal equations merged and dead ones dropped.

    Args:
      jaxpr: the program.

    Returns:
      A program with the same arguments and results that computes the same bits.

    Raises:
      TypeError: it is no program.

    Example:
      >>> import functrans as ft
      >>> print(simplify(ft.make_jaxpr(lambda x: (x * 1.0) * (x * 1.0))(2.0)))
      { lambda ; a:f64*[]. let
          b:f64*[] = multiply a a
        in (b,) }
    """
    return simplification.simplify(_program("simplify", jaxpr))


# passes -------------------------------------------------------------------------------------------


def jvp_jaxpr(jaxpr: Jaxpr, argnums: Positions = None) -> Jaxpr:
    """The program of values and tangents.

    Args:
      jaxpr: program ``(*args) -> (*outs)``.
      argnums: positions of the arguments that have tangents; by default all floating ones.

    Returns:
      Program ``(*args, *tangents) -> (*outs, *out_tangents)``: one tangent for each of ``argnums``,
      in the order of the arguments, and one for each floating result.

    Raises:
      TypeError: it is no program, or ``argnums`` are no integers.
      ValueError: there is no such argument, or it is named twice.
      NonDifferentiableError: an argument of ``argnums`` is not floating.

    Example:
      >>> import functrans as ft
      >>> print(jvp_jaxpr(ft.make_jaxpr(lambda x: x * x)(1.0)))
      { lambda ; a:f64*[] b:f64[]. let
          c:f64*[] = multiply a a
          d:f64[] = multiply b a
          e:f64[] = add d d
        in (c, e) }
    """
    flags = _differentiated("jvp_jaxpr", jaxpr, argnums)
    return programs.jvp_jaxpr(jaxpr, flags, _floating(jaxpr.out_avals))[0]


def linearize_jaxpr(jaxpr: Jaxpr, argnums: Positions = None) -> tuple[Jaxpr, Jaxpr]:
    """Split a program into its values and the linear map of its tangents.

    Args:
      jaxpr: program ``(*args) -> (*outs)``.
      argnums: positions of the arguments that have tangents; by default all floating ones.

    Returns:
      Program ``(*args) -> (*outs, *residuals)`` and program ``(*residuals, *tangents) ->
      (*out_tangents)``, which is linear in the tangents and runs as often as wanted. Both have
      tangents as ``jvp_jaxpr`` has them.

    Raises:
      TypeError: it is no program, or ``argnums`` are no integers.
      ValueError: there is no such argument, or it is named twice.
      NonDifferentiableError: an argument of ``argnums`` is not floating.

    Example:
      >>> import functrans as ft
      >>> values, tangents = linearize_jaxpr(ft.make_jaxpr(lambda x: x * x)(1.0))
      >>> print(values)
      { lambda ; a:f64*[]. let
          b:f64*[] = multiply a a
        in (b, a) }
      >>> print(tangents)
      { lambda ; a:f64*[] b:f64[]. let
          c:f64[] = multiply b a
          d:f64[] = add c c
        in (d,) }
    """
    flags = _differentiated("linearize_jaxpr", jaxpr, argnums)
    found = programs.linearize_jaxpr(jaxpr, flags, _floating(jaxpr.out_avals))
    return found.primal, found.linear


def transpose_jaxpr(jaxpr: Jaxpr, argnums: Positions = None) -> Jaxpr:
    """The transposed program of one that is linear in some arguments.

    Args:
      jaxpr: program ``(*args) -> (*outs)``.
      argnums: positions of the arguments in which it is linear, jointly; by default all floating
        ones.

    Returns:
      Program ``(*others, *cotangents) -> (*arg_cotangents)``: the other arguments, then a cotangent
      for each floating result; and a cotangent for each of ``argnums``, in the order of the
      arguments.

    Raises:
      TypeError: it is no program, or ``argnums`` are no integers.
      ValueError: there is no such argument, or it is named twice.
      NonDifferentiableError: an argument of ``argnums`` is not floating, or an equation is not
        linear in them.

    Example:
      >>> import functrans as ft
      >>> values, tangents = linearize_jaxpr(ft.make_jaxpr(lambda x: 3.0 * x * x)(1.0))
      >>> pullback = transpose_jaxpr(tangents, argnums=-1)
      >>> y, *residuals = evaluate(values, [2.0])
      >>> evaluate(pullback, [*residuals, 1.0])
      [array(12.)]
    """
    flags = _differentiated("transpose_jaxpr", jaxpr, argnums)
    program, is_nonzero = programs.transpose_jaxpr(jaxpr, flags, _floating(jaxpr.out_avals))
    if all(is_nonzero):
        return program
    avals = programs.select(programs.tangent_avals(jaxpr.in_avals), flags)

    def with_zeros(*args: object) -> list[Any]:
        cts = evaluation.evaluate(program, args)
        return programs.spread(is_nonzero, cts, lambda i: zeros(avals[i]))

    return staging.stage(with_zeros, program.in_avals, program.name, name=program.name)


def batch_jaxpr(
    jaxpr: Jaxpr, size: int, argnums: Positions = None, axis_name: str | None = None
) -> Jaxpr:
    """The program on arrays with one more axis in front.

    Args:
      jaxpr: program ``(*args) -> (*outs)`` for one element of the batch.
      size: extent of the new axis.
      argnums: positions of the arguments that have it; by default all.
      axis_name: name by which collectives in the program know it.

    Returns:
      Program with the same arguments and results. Those of ``argnums``, and all results, have the
      new axis.

    Raises:
      TypeError: it is no program, or ``size`` or ``argnums`` are no integers.
      ValueError: ``size`` is negative, there is no such argument, or it is named twice.
      UnsupportedOperationError: a primitive has no batching rule.

    Example:
      >>> import functrans as ft
      >>> print(batch_jaxpr(ft.make_jaxpr(lambda x, y: x * y)(1.0, 2.0), 3, argnums=0))
      { lambda ; a:f64[3] b:f64*[]. let
          c:f64[3] = multiply a b
        in (c,) }
    """
    flags = _flags("batch_jaxpr", jaxpr, argnums, range(len(_program("batch_jaxpr", jaxpr).invars)))
    extent = operator.index(size)
    if extent < 0:
        raise ValueError(f"batch_jaxpr: size must not be negative, got {extent}")
    return programs.batch_jaxpr(jaxpr, extent, flags, True, axis_name)[0]


def _program(who: str, jaxpr: object) -> Jaxpr:
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(
            f"{who}: expected a Jaxpr, got {type(jaxpr).__name__}; functrans.make_jaxpr(f)(*args) "
            "makes one of a function"
        )
    return jaxpr


def _floating(avals: Sequence[Any]) -> tuple[bool, ...]:
    return tuple([is_differentiable_dtype(aval.dtype) for aval in avals])


def _differentiated(who: str, jaxpr: Jaxpr, argnums: Positions) -> tuple[bool, ...]:
    """Per argument, whether it has a tangent."""
    avals = _program(who, jaxpr).in_avals
    is_floating = _floating(avals)
    if argnums is None and not any(is_floating):
        raise NonDifferentiableError(f"{who}: the program has no floating argument")
    flags = _flags(who, jaxpr, argnums, [i for i, flag in enumerate(is_floating) if flag])
    for i, aval in enumerate(avals):
        if flags[i] and not is_floating[i]:
            raise NonDifferentiableError(
                f"{who}: argument {i} is {aval}, which has no tangent; leave it out of argnums"
            )
    return flags


def _flags(who: str, jaxpr: Jaxpr, argnums: Positions, default: Sequence[int]) -> tuple[bool, ...]:
    """Per argument of a program, whether ``argnums`` names it."""
    n = len(jaxpr.invars)
    if argnums is None:
        given: Any = tuple(default)
    else:
        given = check_argnums(who, tuple(argnums) if isinstance(argnums, range) else argnums)
    numbers = given if isinstance(given, tuple) else (given,)
    for number in numbers:
        if not -n <= number < n:
            raise ValueError(
                f"{who}: argnums={argnums!r} asks for argument {number}, but the program takes {n}"
            )
    found = {number % n for number in numbers}
    if len(found) < len(numbers):
        raise ValueError(f"{who}: argnums={argnums!r} names an argument twice")
    return tuple([i in found for i in range(n)])


__all__ = [
    "Atom", "Equation", "Expansion", "IndexMap", "Jaxpr", "Joint", "LinearOperand",
    "LinearProgram", "Literal", "Pointwise", "Primitive", "Read", "Reduction", "Routine",
    "ShapedArray", "Structured", "Var", "Work", "Zero", "arithmetic", "aval_of", "batch_jaxpr",
    "binary", "bind", "elementwise_primitive", "evaluate", "is_linear", "jvp_jaxpr", "linear",
    "linearize_jaxpr", "mul_strong_zero", "multilinear", "nondifferentiable", "simplify", "stage",
    "subjaxprs", "ternary", "transpose_jaxpr", "unary", "user_function",
]  # fmt: skip
__dir__ = _listing(__all__)
