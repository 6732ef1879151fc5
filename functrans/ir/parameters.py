"""What static parameters may be, for the checker of programs.

Here: ``parameters_problem``, by a vocabulary: a parameter's name means the same in all primitives.
Not here: what one primitive alone asks of its parameters, which its field ``check`` says, and what
abstract evaluation finds by itself.

Rules and lowerings rely on canonical parameters: an axis counts from the front, a flag is a
``bool``, an extent no float. Functions that users call see to that. A file may hold anything.

Layer: ``ir``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.caching import remembered
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.lowering import Structured
from functrans.core.primitive import Primitive

Kind = Callable[[Any, Equation], str]
"""What is wrong with the value of a parameter of an equation; empty when nothing is."""


def _ndim(eqn: Equation) -> int:
    """How many axes there are: of the first operand, or of the array that results fill."""
    shape = eqn.params.get("shape")
    if type(shape) is tuple:
        return len(shape)
    aval = eqn.inputs[0].aval if eqn.inputs else None
    return aval.ndim if type(aval) is ShapedArray else 0


def _flag(value: bool, eqn: Equation) -> str:
    return "" if type(value) is bool else "is not True or False"


def _flags(value: tuple[bool, ...], eqn: Equation) -> str:
    is_good = type(value) is tuple and all(type(x) is bool for x in value)
    return "" if is_good else "is not a tuple of True and False"


def _axis(value: int, eqn: Equation) -> str:
    out = eqn.outputs[0].aval if eqn.outputs else None
    ndim = max(_ndim(eqn), out.ndim if type(out) is ShapedArray else 0)
    return (
        "" if type(value) is int and 0 <= value < ndim else f"is not an axis from 0 to {ndim - 1}"
    )


def _axes(value: tuple[int, ...], eqn: Equation) -> str:
    ndim = _ndim(eqn)
    if _integers(0)(value, eqn) or len(set(value)) != len(value) or max(value, default=-1) >= ndim:
        return f"is not a tuple of different axes from 0 to {ndim - 1}"
    return ""


def _pair_of_axes(value: tuple[Any, ...], eqn: Equation) -> str:
    is_pair = type(value) is tuple and len(value) == 2
    if not is_pair or any(_integers(0)(v, eqn) or len(set(v)) != len(v) for v in value):
        return "is not a pair of tuples of different axes"
    return ""


def _integer(least: int | None, may_be_none: bool = False) -> Kind:
    def problem(value: int, eqn: Equation) -> str:
        if value is None and may_be_none:
            return ""
        if type(value) is int and abs(value) < 1 << 48 and (least is None or value >= least):
            return ""
        return "is not an integer" + ("" if least is None else f" of at least {least}")

    return problem


def _integers(least: int | None) -> Kind:
    each = _integer(least)

    def problem(value: tuple[int, ...], eqn: Equation) -> str:
        if type(value) is tuple and not any(each(x, eqn) for x in value):
            return ""
        return "is not a tuple of integers" + ("" if least is None else f" of at least {least}")

    return problem


def _rows(width: int) -> Kind:
    row = _integers(None)

    def problem(value: tuple[Any, ...], eqn: Equation) -> str:
        is_good = type(value) is tuple and not any(row(x, eqn) or len(x) != width for x in value)
        return "" if is_good else f"is not a tuple of tuples of {width} integers"

    return problem


def _word(*words: str) -> Kind:
    def problem(value: str, eqn: Equation) -> str:
        return "" if value in words else f"is none of {', '.join(map(repr, words))}"

    return problem


def _pair(value: tuple[Any, ...], eqn: Equation) -> str:
    return _integers(0)(value, eqn) or ("" if len(value) == 2 else "is no pair")


def _label(value: object, eqn: Equation) -> str:
    """What is no label is something that the primitive checks itself."""
    return "" if type(value) is str or eqn.primitive.check is not None else "is no text"


def _is_a(*types: type) -> Kind:
    def problem(value: float | Jaxpr, eqn: Equation) -> str:
        return "" if isinstance(value, types) else f"is no {types[0].__name__}"

    return problem


def _dtype(value: np.dtype, eqn: Equation) -> str:
    if isinstance(value, np.dtype) and value.isnative:
        return ""
    return "is no dtype of this machine's byte order"


def _programs(value: tuple[Any, ...], eqn: Equation) -> str:
    is_good = type(value) is tuple and value and all(type(x) is Jaxpr for x in value)
    return "" if is_good else "is no tuple of programs"


KINDS: Mapping[str, Kind] = MappingProxyType({
    "axis": _axis,
    "axes": _axes,
    **dict.fromkeys(("batch", "contract"), _pair_of_axes),
    **dict.fromkeys(("shape", "sizes", "extents"), _integers(0)),
    **dict.fromkeys(("strides", "lhs_dilation", "rhs_dilation"), _integers(1)),
    "bands": _pair,
    "kth": _integers(0),
    "padding": _rows(2),
    "config": _rows(3),
    **dict.fromkeys(("n_consts", "n_carry", "n_cond_consts", "n_body_consts"), _integer(0)),
    **dict.fromkeys(("n_extra", "n_known", "n_product", "n_residuals"), _integer(0)),
    **dict.fromkeys(("n", "k", "size"), _integer(0)),
    **dict.fromkeys(("batch_group_count", "feature_group_count", "unroll"), _integer(1)),
    "length": _integer(0, may_be_none=True),
    **dict.fromkeys(("reverse", "stable", "inverse", "unique_indices", "check"), _flag),
    **dict.fromkeys(("lower", "unit_diagonal", "hermitian", "vectors"), _flag),
    **dict.fromkeys(("full_matrices", "compute_uv", "is_discrete", "has_e", "has_s"), _flag),
    **dict.fromkeys(("batched", "wanted"), _flags),
    "trans": _word("N", "T", "C"),
    "uplo": _word("L", "U"),
    "side": _word("left", "right"),
    "rcond": _is_a(float),
    "dtype": _dtype,
    **dict.fromkeys(("jaxpr", "cond_jaxpr", "body_jaxpr", "matvec", "vecmat"), _is_a(Jaxpr)),
    "branches": _programs,
    "name": _label,
})  # fmt: skip
"""By the name of the parameter."""

OWN = frozenset({
    # what a family or one primitive alone knows: words, records, tables, Python functions
    "mode", "op", "index", "patterns", "ranges", "transposed", "pullback", "policy",
    "callback", "call", "forward", "backward", "factor", "vmap_method", "result_avals", "out_avals",
    "rule",
})  # fmt: skip
"""Names that have no common meaning; the primitive checks them."""


@remembered(1024)
def _expected(primitive: Primitive) -> tuple[frozenset[str], frozenset[str], bool]:
    """Parameters that an equation must have, those that it may have, and whether any others."""
    must, may, is_open = set(), set(), False
    for name, parameter in inspect.signature(primitive.abstract_eval).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            may.add(name)
            if parameter.default is parameter.empty:
                must.add(name)
        is_open = is_open or parameter.kind is parameter.VAR_KEYWORD
    if is_open:  # the evaluation says which
        own = _keywords(primitive.impl)
        if own is not None:
            return own, own, False
    return frozenset(must), frozenset(may), is_open


def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """The keywords of a function that takes no others; ``None`` where it does or hides them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def parameters_problem(eqn: Equation) -> str:
    """What is wrong with the parameters of an equation; empty when nothing is."""
    must, may, is_open = _expected(eqn.primitive)
    if missing := must - eqn.params.keys():
        return f"it has no parameter {', '.join(sorted(missing))}"
    if not is_open and (unknown := eqn.params.keys() - may):
        return f"{eqn.primitive.name} has no parameter {', '.join(sorted(unknown))}"
    for name, value in eqn.params.items():
        kind = KINDS.get(name)
        problem = kind(value, eqn) if kind is not None else ""
        if problem:
            return f"parameter {name}={value!r} {problem}"
    check = eqn.primitive.check
    if check is None and type(eqn.primitive.lower) is Structured:
        check = check_call
    if check is not None:
        try:
            check(*(atom.aval for atom in eqn.inputs), **eqn.params)
        except Exception as error:  # whatever a rule raises is a finding
            return f"{type(error).__name__}: {error}"
    return ""


def check_fits(what: str, avals: Sequence[Any], expected: Sequence[Any]) -> None:
    """Refuse types that are not those expected, in number, shape or dtype.

    Raises:
      TypeError: names the position and both types.
    """
    if len(avals) != len(expected):
        raise TypeError(f"{what}: {len(avals)} instead of {len(expected)}")
    for i, (aval, wanted) in enumerate(zip(avals, expected, strict=True)):
        if aval.strong() != wanted.strong():
            raise TypeError(f"{what} {i}: {aval} instead of {wanted}")


def check_number(what: str, *avals: object) -> None:
    """Refuse what is not one integer.

    Raises:
      TypeError: says what it is.
    """
    (aval,) = avals
    if type(aval) is not ShapedArray or aval.shape or aval.dtype.kind not in "iub":
        raise TypeError(f"{what} is {aval}, not an integer")


def check_call(*avals: ShapedArray, jaxpr: Jaxpr, **_: object) -> None:
    """The check of an equation that runs its program once, on its operands.

    Raises:
      TypeError: operands and arguments differ.
    """
    check_fits("argument of its program", jaxpr.in_avals, avals)
