"""How an operation becomes a method, a function and an in-place form.

Here: ``Row`` and what is made of a table of rows; what operations have in common: copies, constant
results, dtypes of integers. Not here: the operations (modules beside this one).

The function and the method of an operation are one definition. Its in-place form computes the
result and writes it to the tensor's memory. NumPy's names ``axis`` and ``keepdims`` are accepted
for ``dim`` and ``keepdim``.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from functrans import pytrees as tree
from functrans.arrays.masked import MaskedSelection
from functrans.autograd.composites import CompositeNode, composite, named
from functrans.autograd.memory_order import axes_in_memory, dense_like, is_dense
from functrans.autograd.modes import entered, modes, torch_defaults
from functrans.autograd.overrides import PYTORCHS, is_pytorchs, taken_over
from functrans.autograd.promotion import (
    default_of,
    result_dtype,
    to_dtype,
    torch_kind,
    with_default,
    with_python_numbers,
)
from functrans.autograd.random import (
    Generator,
    check_parameters,
    different_levels,
    staged,
    stream,
)
from functrans.autograd.recording import (
    enter_session,
    in_rows,
    namespaces,
    node_of,
)
from functrans.autograd.refusals import asked
from functrans.autograd.residuals import root_of
from functrans.autograd.tensors import Tensor, called
from functrans.autograd.writes import check_read, check_result, check_write, without_hooks, write
from functrans.control.callbacks import io_callback
from functrans.core.boundary import shorten, warn
from functrans.core.dispatch import Tracer, bind
from functrans.core.structs import ShapeDtypeStruct
from functrans.numpy.common import is_known, value_of
from functrans.passes.layouts import plain_value
from functrans.passes.nodes import OUTPUT, kept
from functrans.passes.pushing import PushingTracer
from functrans.passes.staging import StagingTracer
from functrans.primitives.structural import copy_p
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """An operation.

    Attributes:
      name: torch's name.
      function: the operation; its first argument is the tensor.
      aliases: further names of torch for it.
      forms: which forms torch has: ``m`` method, ``f`` function, ``i`` in-place method.
    """

    name: str
    function: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    forms: str = "mf"


def rows_of(forms: str, *functions: Callable[..., Any]) -> tuple[Row, ...]:
    """Rows of operations whose functions have torch's names."""
    return tuple(Row(function.__name__, function, (), forms) for function in functions)


def by_name(*functions: Callable[..., Any]) -> dict[str, Any]:
    """Functions by their names."""
    return {function.__name__: function for function in functions}


def methods_of(rows: Iterable[Row]) -> dict[str, Any]:
    """Methods, in-place ones included, by name."""
    table: dict[str, Any] = {}
    for row in rows:
        for name in (row.name, *row.aliases):
            if "m" in row.forms:
                table[name] = with_numpy_names(_with_numbers(called(row.function, name)))
            if "i" in row.forms:
                table[f"{name}_"] = in_place(f"{name}_", row.function)
    return table


def functions_of(rows: Iterable[Row]) -> dict[str, Any]:
    """Functions, in-place ones included, by name."""
    table: dict[str, Any] = {}
    for row in rows:
        for name in (row.name, *row.aliases):
            if "f" in row.forms:
                table[name] = function_form(name, row.function)
            if "i" in row.forms and "f" in row.forms:
                table[f"{name}_"] = function_form(f"{name}_", in_place(f"{name}_", row.function))
    return table


def documented(function: Callable[..., Any], name: str, text: str | None) -> Callable[..., Any]:
    """A function that was made for a table, with its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


F = TypeVar("F", bound=Callable[..., Any])


def form(function: F, name: str, text: str, **static: object) -> F:
    """A form of a function: with other values of its private keywords, which it does not show.

    It is a function of its own, so that it costs no further call.
    """
    plain: Any = function
    made: Any = FunctionType(plain.__code__, plain.__globals__, name, plain.__defaults__)
    made.__kwdefaults__ = {**plain.__kwdefaults__, **static}
    whole = inspect.signature(plain)
    shown = [p for n, p in whole.parameters.items() if n[0] != "_" or p.kind != p.KEYWORD_ONLY]
    made.__signature__ = whole.replace(parameters=shown)
    made.__module__, made.__annotations__ = plain.__module__, plain.__annotations__
    own: Any = documented(made, name, text)
    return own


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
_PARTS = {"sections": "indices_or_sections", "indices": "indices_or_sections"}
_KEYWORDS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("hsplit", "vsplit", "dsplit"), _PARTS),
    "tensor_split": {**_PARTS, "tensor_indices_or_sections": "indices_or_sections"},
    "unsafe_split": {"split_size": "split_size_or_sections"},
    "swapaxes": {"axis0": "dim0", "axis1": "dim1"},
    "mv": {"vec": "mat2"},
    "dot": {"tensor": "mat2"},
}
"""Torch's names of arguments, by function, where they are others here."""


def _rename(kwargs: dict[str, Any], names: Mapping[str, str] = _NUMPY_NAMES) -> None:
    for theirs, ours in names.items():
        if theirs in kwargs:
            kwargs[ours] = kwargs.pop(theirs)


def _names_of(method: Callable[..., Any]) -> Mapping[str, str]:
    """Other names of arguments of a method."""
    code = getattr(method, "__code__", None)
    if code is None:
        return {}
    names = _KEYWORDS.get(method.__name__, {})
    has_dim = "dim" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {**_NUMPY_NAMES, **names} if has_dim else names


def with_numpy_names(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that also takes ``axis`` for ``dim``, ``keepdims`` for ``keepdim``, and the like."""
    names = _names_of(method)
    if not names:
        return method

    @functools.wraps(method)
    def renamed(self: Tensor, *args: object, **kwargs: object) -> Any:
        try:
            args = with_python_numbers(args, kwargs)
            if kwargs:
                _rename(kwargs, names)
            return method(self, *args, **kwargs)
        except Exception as error:
            if (answer := taken_over(renamed, (self, *args), kwargs)) is not NotImplemented:
                return answer
            shorten(error)
            raise

    return renamed


def refuse_out(name: str, out: Any) -> None:
    """Refuse an ``out=`` argument.

    Raises:
      NotImplementedError: it was given.
    """
    if out is not None:
        raise NotImplementedError(
            f"{name}(): out= is not supported; write result = {name}(...), or "
            f"target.copy_({name}(...))"
        )


def into(
    out: object, name: str, function: Callable[..., Any], *args: object, **kwargs: object
) -> Any:
    """Write results to tensors given as ``out=``.

    Args:
      out: the tensor, or a tuple of them.
      name: of the function, for messages.
      function: gives the results.
      *args: its arguments.
      **kwargs: its keywords.

    Returns:
      ``out``; several as the function returns them.

    Raises:
      TypeError: ``out`` is no tensor, or the function takes none: a result is a truth value or a
        view.
      RuntimeError: a result or ``out`` requires a gradient; the dtype does not fit.
      NotImplementedError: an argument has a tangent.
    """
    is_tuple = isinstance(out, (tuple, list))
    outs: tuple[Any, ...] = tuple(out) if is_tuple else (out,)  # type: ignore[arg-type]  # as is said
    for x in outs:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(x).__name__}")
    for x in tree.leaves(((args, kwargs), outs)):
        value = x._value if isinstance(x, Tensor) else None
        if isinstance(value, PushingTracer) and value._tangent is not None:
            raise NotImplementedError(
                f"Trying to use forward AD with {name}_out that does not support it because it is "
                "an out= function"
            )
    _check_unrecorded(name, outs)
    found = function(*args, **kwargs)
    several = found if isinstance(found, tuple) else (found,)
    if any(isinstance(new, bool) or new._view is not None for new in several):
        raise _unexpected_out(name)
    if isinstance(found, tuple) != is_tuple:
        kind = "tuple of Tensors" if isinstance(found, tuple) else "Tensor"
        raise TypeError(f"{name}(): argument 'out' must be {kind}, not {type(out).__name__}")
    _check_unrecorded(name, several)
    if len(several) != len(outs):
        raise TypeError(f"{name}(): out= takes {len(several)} tensors, {len(outs)} were given")
    operands = tree.leaves((args, kwargs))
    for x, new in zip(outs, several, strict=True):
        check_write(x)
        check_result(x, new)
        if x.shape != new.shape and any(x is operand for operand in operands):
            raise RuntimeError(
                f"output with shape {list(x.shape)} doesn't match the broadcast shape "
                f"{list(new.shape)}: it is an argument of {name}(), too, and is not resized"
            )
    for x, new in zip(outs, several, strict=True):
        if x.shape != new.shape:
            if math.prod(x.shape):
                warn(
                    "An output with one or more elements was resized since it had shape "
                    f"{list(x.shape)}, which does not match the required output shape "
                    f"{list(new.shape)}. Give {name}() an out= of this shape, or without elements"
                )
            x.resize_(new.shape)
    for x, new in zip(outs, several, strict=True):
        write(f"{name}_out", x, copied(new, "Clone") if new is x else new)
    if not isinstance(found, tuple):
        return outs[0]
    return type(found)(*outs) if hasattr(found, "_fields") else outs


def _check_unrecorded(name: str, tensors: Sequence[Any]) -> None:
    if modes.grad and any(isinstance(x, Tensor) and node_of(x) is not None for x in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )


_RANDOM = {"bernoulli", "multinomial", "normal", "rand", "randint", "randn", "randperm"}


def _unexpected_out(name: str) -> TypeError:
    return TypeError(f"{name}() got an unexpected keyword argument 'out'")


def with_out(
    name: str, function: Callable[..., Any], is_factory: bool = False
) -> Callable[..., Any]:
    """A function that takes ``out=`` and NumPy's names, too; see ``function_form`` for methods.

    A factory computes in the dtype of ``out``, unless another one is given.
    """
    function = called(function, name)

    @functools.wraps(function)
    def written(*args: object, out: object = None, **kwargs: object) -> Any:
        try:
            args = with_python_numbers(args, kwargs)
            if kwargs:
                _rename(kwargs)
            if out is None:
                return function(*args, **kwargs)
            if name in _RANDOM and modes.batches:
                raise RuntimeError(
                    "vmap: We do not support calling out variants of random operations inside of "
                    f"vmap: write result = {name}(...)"
                )
            if is_factory and isinstance(out, Tensor):
                own: Any = kwargs.setdefault("dtype", out.dtype)
                if own is not None and np.dtype(own) != out.dtype:
                    raise RuntimeError(
                        f"dtype {torch_kind(own)} does not match dtype of out parameter "
                        f"({torch_kind(out.dtype)})"
                    )
            return into(out, name, function, *args, **kwargs)
        except Exception as error:
            if (answer := taken_over(written, args, kwargs)) is not NotImplemented:
                return answer
            shorten(error)
            raise

    return written


def with_out_by_name(*functions: Callable[..., Any]) -> dict[str, Any]:
    """Functions that take ``out=``, by their names."""
    return {function.__name__: with_out(function.__name__, function) for function in functions}


def function_form(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a method: its first argument is the tensor, by position or as ``input``."""
    method = _with_numbers(called(method, name))
    names = _names_of(method)

    @functools.wraps(method)
    def function(*args: object, out: object = None, **kwargs: object) -> Any:
        try:
            if out is not None:
                if name.endswith("_"):  # it writes to its operand
                    raise _unexpected_out(name)
                return into(out, name, function, *args, **kwargs)
            args = with_python_numbers(args, kwargs)
            if not args:
                for key in ("input", "self"):
                    if key in kwargs:
                        args = (kwargs.pop(key),)
                        break
                else:
                    raise TypeError(f'{name}() missing 1 required positional arguments: "input"')
            if not isinstance(args[0], Tensor):
                args = _with_tensor(name, args)
            if kwargs:
                _rename(kwargs, names)
            return method(*args, **kwargs)
        except Exception as error:
            if (answer := taken_over(function, args, kwargs)) is not NotImplemented:
                return answer
            shorten(error)
            raise

    function.__name__ = function.__qualname__ = name
    return function


_NUMBER_FIRST = {
    "add", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "div", "divide", "floor_divide", "mul", "multiply", "sub", "subtract", "true_divide",
}  # fmt: skip
"""Functions of two operands of which the first one may be a number."""


_NUMBERS = (bool, int, float, complex)


def _with_tensor(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments whose first one, a number, is a tensor in the dtype of the operation.

    Raises:
      TypeError: it is no number, or none is taken there.
    """
    number, *rest = args
    if name in _NUMBER_FIRST and all(isinstance(x, _NUMBERS) for x in args[:2]) and rest:
        kind = torch_defaults.dtype if namespaces.has_torch else np.dtype(float)
        is_floating = any(isinstance(x, float) for x in args[:2])
        first = Tensor.of(np.array(number, kind if is_floating else None))
        first._follows = namespaces.has_torch
        return first, *rest
    if len(DEPRECATED.get(name, ())) == 2 and rest and isinstance(rest[0], Tensor):
        return rest[0], number, *rest[1:]
    if (
        name not in _NUMBER_FIRST
        or not isinstance(number, _NUMBERS)
        or not (rest and isinstance(rest[0], Tensor))
    ):
        check_tensor(name, number)
    dtype = np.dtype(result_dtype(number, rest[0]))
    return with_default(Tensor.of(np.array(number, dtype)), rest[:1]), *rest


DEPRECATED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "subtract"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}
"""Functions whose numbers torch still takes behind the tensor by position, too."""


def _with_numbers(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes numbers in front of its operands where torch's deprecated form has them.

    Functions of two numbers take the first one in front of the tensor (``_with_tensor``).
    """
    names = DEPRECATED.get(method.__name__.rstrip("_"))
    if names is None:
        return method
    count = 3 if names != ("alpha",) else 2

    @functools.wraps(method)
    def moved(*args: Any, **kwargs: object) -> Any:
        more = len(args) - count
        if 0 < more <= len(names) and not any(isinstance(x, Tensor) for x in args[1 : 1 + more]):
            kwargs.update(zip(names, args[1 : 1 + more], strict=False))
            args = (args[0], *args[1 + more :])
        return method(*args, **kwargs)

    return moved


def number(name: str, argument: str, x: Any) -> Any:
    """A number; a tensor without axes and derivative stands for one.

    Raises:
      TypeError: it is no number.
    """
    if isinstance(x, Tensor) and not x.shape and node_of(x) is None:
        return x if known(x) is None else x.item()
    if not isinstance(x, (int, float, complex, np.generic)):
        raise TypeError(f"{name}(): argument '{argument}' must be Number, not {type(x).__name__}")
    return x


def results(name: str, *fields: str) -> Any:
    """The type of several results with names: a named tuple, as torch has them."""
    make: Any = namedtuple
    return NAMED_RESULTS.setdefault((name, fields), make(name, fields))


NAMED_RESULTS: dict[tuple[str, tuple[str, ...]], Any] = {}
"""The types of named results."""


SELECTED = (
    "how many elements x[mask] has depends on values, which jit does not know; use "
    "torch.where(mask, x, 0), or weigh by the mask: (x * mask).sum() / mask.sum()"
)
"""What to do in place of a selection by a mask in a jitted step."""


def check_tensor(name: str, x: Any, argument: str = "input", position: int = 1) -> None:
    """Refuse what is no tensor.

    Raises:
      TypeError: with torch's message.
    """
    if not isinstance(x, Tensor):
        kind, hint = type(x).__name__, ""
        if isinstance(x, StagingTracer) and x._trace.label.startswith("jit "):
            kind = "numpy.ndarray"
            hint = (
                f": an array came into the function that {x._trace.label} traces; make a tensor of "
                "it inside (torch.as_tensor(x), torch.from_numpy(x)), or give a tensor"
            )
        elif isinstance(x, Tracer):
            hint = (
                ": it is an array of a transform of functions of arrays (ft.grad, ft.vmap, ...); "
                "functions of tensors are transformed by torch.func (functrans.autograd.func)"
            )
        elif is_pytorchs(x):
            kind, hint = "torch.Tensor", f": {PYTORCHS}"
        elif isinstance(x, MaskedSelection):
            hint = f": {SELECTED}"
        elif isinstance(x, (np.ndarray, np.generic)):
            kind = f"numpy.{kind}"
            hint = ": make a tensor of it with torch.as_tensor(x) or torch.from_numpy(x)"
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not "
            f"{kind}{hint}"
        )


def in_place(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The form of a method that writes its result into the tensor."""
    method = _with_numbers(called(method, name))

    @functools.wraps(method)
    def write_result(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        try:
            args = with_python_numbers(args, kwargs)
            return overwrite(name, self, lambda x: method(x, *args, **kwargs))
        except Exception as error:
            shorten(error)
            raise

    write_result.__name__ = write_result.__qualname__ = name
    return write_result


def overwrite(name: str, x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Write what is computed of a tensor into its memory.

    Where the derivative needs the old value, that is kept as a copy.

    Args:
      name: of the operation, with its underscore.
      x: the tensor.
      compute: the result as a function of the tensor.
    """
    check_write(x)
    if modes.grad and x._view is not None and x._view.detach is None:
        without_hooks(x)
    before_write, modes.overwritten = modes.overwritten, x._stored() if modes.packers else None
    operand = x
    trace: Any = x._trace
    if trace.keeps_account and root_of(x)._dual is not None:  # both its parts are written to
        operand = Tensor.of(bind(copy_p, x._memory())[0], node_of(x), trace)
        operand._follows = x._follows
    try:
        new = compute(operand)
    finally:
        modes.overwritten = before_write
    if new is x:
        new = copied(x, "Clone")
    node = new._node
    if node is not None and x._storage is not None:
        node = node.parents[0] if node.primitive is OUTPUT else node
        taken: Any = new._trace  # where that is a dual level, nodes of the primal may have saved it
        is_below = taken is not trace and taken.keeps_account
        if is_below or any(guard.storage is x._storage for guard in node.guards):
            value = x._memory()  # one that is traced does not change
            kept = value if isinstance(value, Tracer) else value.copy()
            before = Tensor.of(kept, node_of(x), x.__dict__.get("_trace"))
            before._follows = x._follows
            new = compute(before)
        elif isinstance(node, CompositeNode):
            node.keep_operand(x)
    return write(name, x, new)


# values ------------------------------------------------------------------------------------------


def copied(x: Tensor, label: str) -> Tensor:
    """The same value as another tensor: where an operation has nothing to do."""
    return named(bind(copy_p, x)[0], label)


def _entered(x: Any) -> Any:
    """The value of a tensor, which is a part of the step that is traced from now on."""
    if not isinstance(x, Tensor):
        return x
    enter_session(x)
    if modes.observers:
        check_read("a value", x)
    return x._value


def plain(x: Any, asker: str = "") -> Any:
    """The array of a tensor, for operations on values that have no derivative.

    Raises:
      TensorConcretizationError: it is traced.
    """
    value = _entered(x)
    return asked(value, "the value of a tensor", asker) if isinstance(value, Tracer) else value


def looked_at(x: Any, asker: str = "") -> Any:
    """The array of a tensor, of which positions, sizes or a choice are made.

    Raises:
      TensorConcretizationError: it is one of a batch, or of a program.
    """
    value = _entered(x)
    return concrete(value, "the value of a tensor", asker) if isinstance(value, Tracer) else value


def concrete(value: Tracer, what: str, asker: str = "") -> Any:
    """The array behind a traced value, as torch gives it in transforms that differentiate.

    Raises:
      TensorConcretizationError: there is none: it is one of a batch, or of a program.
    """
    found = plain_value(value)
    return asked(value, what, asker) if found is None else found


def known(x: Any) -> np.ndarray | None:
    """The array of a tensor or number, for checks; ``None`` where no values are known."""
    value = _entered(x)
    return np.asarray(value_of(value)) if is_known(value) else None


def fixed(function: Callable[..., Any], *operands: Any) -> Tensor:
    """Results without derivative.

    Args:
      function: of tensors, arrays or tracers alike, made of functrans operations.
      *operands: tensors, arrays, numbers.
    """
    nodes = [node_of(x) for x in operands if isinstance(x, Tensor)] if modes.grad else []
    if not any(nodes):
        return composite("", function, *operands)
    with entered({"grad": False}):
        return composite("", function, *operands)


def constant(value: Any, *operands: Any) -> Tensor:
    """A result without derivative.

    Args:
      value: the array.
      *operands: what it was computed from.
    """
    value = in_rows(value, (), "") if hasattr(value, "shape") else np.asarray(value)
    result = Tensor.of(value)
    if modes.inference:
        result._inference = True
    return with_default(result, operands)


def drawn(
    draw: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype, *parameters: Any
) -> Tensor:
    """Random numbers; a step that ``jit`` has traced draws anew in each call.

    Args:
      draw: gives numbers of any dtype, of a shape that ends with ``shape``: in front are the axes
        of ``vmap`` whose examples get different numbers. Its further arguments are arrays.
      shape: of the numbers.
      dtype: of the tensor.
      *parameters: tensors or numbers of known values, or of a step, which all examples share.
    """
    levels = different_levels() if modes.batches else []
    whole = (*[level.size for level in levels], *shape)

    def typed(*values: Any) -> np.ndarray:
        return np.asarray(draw(whole, *values)).astype(dtype)

    numbers: Any
    if modes.session is not None:
        numbers = staged(typed, ShapeDtypeStruct(whole, dtype), *parameters)
    else:
        values = [known(parameter) for parameter in parameters]
        if not modes.batches:
            return constant(typed(*values))
        with entered({"batches": ()}):
            numbers = constant(typed(*values))
    for level in levels:
        numbers = level.lane._trace.lift(numbers)[level.lane]
    return numbers


def drawn_in(layout: np.ndarray, draw: Callable[..., Any], dtype: np.dtype) -> Tensor:
    """Random numbers that are drawn in the order of memory, as PyTorch fills it.

    Args:
      layout: an array with extents and strides.
      draw: as of ``drawn``; a second argument says whether the memory is in row-major order.
      dtype: of the tensor.
    """
    if layout.flags.c_contiguous:
        return drawn(lambda size: draw(size, True), layout.shape, dtype)
    axes = axes_in_memory(layout)
    places = np.argsort(axes)

    def placed(size: tuple[int, ...]) -> np.ndarray:
        lead = len(size) - len(axes)
        values = draw((*size[:lead], *[size[lead + axis] for axis in axes]), False)
        return np.transpose(values, (*range(lead), *(lead + places).tolist()))

    result = drawn(placed, layout.shape, dtype)
    if type(result._value) is np.ndarray and is_dense(layout):
        value, result._value = result._value, dense_like(layout, dtype)
        result._value[...] = value
    return result


def drawn_with(
    noise: Tensor,
    finish: Callable[..., Any],
    parameters: Sequence[Any],
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> Tensor:
    """Random numbers with parameters that are traced, such as those of the examples of ``vmap``.

    Args:
      noise: what was ``drawn`` without knowing the parameters.
      finish: from the noise and the parameters of one example to its numbers; may refuse them.
      parameters: tensors, arrays or numbers.
      shape: of the numbers.
      dtype: of the numbers.
    """

    def typed(*values: object) -> np.ndarray:
        return np.asarray(finish(*values)).astype(dtype)

    call = io_callback if modes.session is None else staged
    return call(typed, ShapeDtypeStruct(shape, dtype), noise, *parameters)


def drawn_by_numpy(
    generator: Generator | None,
    draw: Callable[..., Any],
    shape: tuple[int, ...],
    dtype: np.dtype,
    *parameters: Any,
) -> Tensor:
    """Random numbers of a generator of NumPy that is seeded from the stream.

    Args:
      generator: the stream.
      draw: from a generator of NumPy, a shape and arrays of parameters to numbers of any dtype.
      shape: of the numbers.
      dtype: of the tensor.
      *parameters: tensors, which may be traced; in ``vmap`` each example that has parameters of its
        own has a generator, too.
    """
    check_parameters(*parameters)
    is_shared = not any(level.maps(x) for level in modes.batches for x in parameters)
    if is_shared and (modes.session or all(known(x) is not None for x in parameters)):

        def numbers(size: tuple[int, ...], *values: Any) -> Any:
            return draw(stream(generator).numpy(), size, *values)

        return drawn(numbers, shape, dtype, *parameters)
    words = drawn(
        lambda size: stream(generator).words(math.prod(size)).reshape(size),
        (4,),
        np.dtype(np.int64),
    )

    def finish(words: np.ndarray, *values: object) -> Any:
        return draw(np.random.default_rng(words), shape, *values)

    return drawn_with(words, finish, parameters, shape, dtype)


def floating(x: Tensor) -> Tensor:
    """A tensor of floating or complex numbers: integers are converted."""
    return to_dtype(x, default_of(x)) if x.dtype.kind in "iub" else x


def lifted(x: Any, like: Tensor, dtype: DTypeLike | None = None) -> Any:
    """A number or array as a tensor beside another one."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, Tracer):
        return like._trace.lift(x)
    value = np.asarray(x, dtype)
    copies = modes.grad and modes.session is None and isinstance(x, np.ndarray)
    return like._trace.lift(kept(value) if copies else value)
