"""A user's function for numba in the form of a loop.

Here: ``user_loop``. Not here: how it is compiled (``kernels.loops``).

The function takes its arguments, and then either arrays to write its results to, or none, and
returns them; which of both is seen from the number of its parameters. Arguments without axes are
numbers. What is compiled is a small function around it, whose text stands here.

Layer: ``kernels``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.arguments import name_of
from functrans.errors import ShapeError
from functrans.kernels import loops
from functrans.kernels.fingerprints import fingerprint
from functrans.kernels.loops import Argument, Loop


def takes_results(function: Callable[..., Any], n_in: int, n_out: int) -> bool:
    """Whether a function is given arrays for its results; it returns them otherwise.

    Raises:
      TypeError: it takes another number of arguments.
    """
    own = getattr(function, "py_func", function)
    parameters = list(inspect.signature(own).parameters.values())
    kinds = {parameter.kind for parameter in parameters}
    if kinds - {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        raise TypeError(
            f"kernel {name_of(own)}: a kernel has positional parameters only, got "
            f"{name_of(own)}{inspect.signature(own)}"
        )
    most = len(parameters)
    least = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
    for count, answer in ((n_in + n_out, True), (n_in, False)):
        if least <= count <= most:
            return answer
    raise TypeError(
        f"kernel {name_of(own)}{inspect.signature(own)} was called with {n_in} arguments and "
        f"out_like has {n_out} leaves; expected {n_in} parameters, if it returns its results, or "
        f"{n_in + n_out}, if it writes them to arrays that it is given"
    )


def user_loop(function: Any, given: Sequence[Argument], results: Sequence[Argument]) -> Loop:
    """A function for numba as a loop over arrays of some dtypes and numbers of axes.

    Args:
      function: a Python function, or one that numba has decorated.
      given: its arguments.
      results: its results.

    Raises:
      TypeError: it takes another number of arguments, its results are of other types, numba has
        no arrays of a dtype, or cannot compile the function.
      LookupError: numba cannot be imported.
    """
    own = getattr(function, "py_func", function)
    label = name_of(own)
    writes = takes_results(function, len(given), len(results))
    identity = fingerprint(function)
    if identity is not None:
        identity = f"{identity} {writes}"
    return loops.compiled_loop(
        label,
        lambda: _entry(label, function, given, results, writes),
        (*given, *results),
        identity,
    )


def _entry(
    label: str, function: Any, given: Sequence[Argument], results: Sequence[Argument], writes: bool
) -> Callable[..., None]:
    """The function around a user's."""
    module = loops.require_numba(f"kernel {label}")
    decorated = function if hasattr(function, "py_func") else module.njit(function)
    types = [
        loops.numba_type(argument).dtype if argument.ndim == 0 else loops.numba_type(argument)
        for argument in given
    ]
    if writes:
        types += [loops.numba_type(argument) for argument in results]
    returned = _returned(label, decorated, tuple(types))
    layouts = _checked(label, module, returned, results, writes)
    is_tuple = isinstance(returned, module.types.BaseTuple)
    names = [f"a{i}" for i in range(len(given))]
    outs = [f"o{i}" for i in range(len(results))]
    values = [
        f"{name}[()]" if argument.ndim == 0 else name
        for name, argument in zip(names, given, strict=True)
    ]
    if writes:
        body = [f"function({', '.join([*values, *outs])})"]
    else:
        body = [f"r = function({', '.join(values)})"]
        for i, (out, layout) in enumerate(zip(outs, layouts, strict=True)):
            value = f"r[{i}]" if is_tuple else "r"
            body += _copy(value, out, layout)
    lines = [f"def entry({', '.join([*names, *outs])}):", *[f"    {line}" for line in body]]
    scope = {
        "function": decorated,
        "ndindex": np.ndindex,
        "ShapeError": ShapeError,
        "message": f"kernel {label} returned an array of another shape than out_like says",
    }
    exec("\n".join(lines), scope)  # text from above, with no word of the user's in it
    made: Callable[..., None] = scope["entry"]
    return made


def _copy(value: str, out: str, layout: str) -> list[str]:
    """Lines that copy what was returned to where it belongs."""
    if layout == "number":
        return [f"{out}[()] = {value}"]
    lines = [
        f"if {value}.shape != {out}.shape:",
        "    raise ShapeError(message)",
    ]
    if layout == "C":
        return [
            *lines,
            f"source, target = {value}.reshape(-1), {out}.reshape(-1)",
            "for i in range(target.size):",
            "    target[i] = source[i]",
        ]
    return [*lines, f"for index in ndindex({out}.shape):", f"    {out}[index] = {value}[index]"]


def _returned(label: str, decorated: Any, types: tuple[Any, ...]) -> Any:
    """What a function returns for arguments of some types; compiles it.

    Raises:
      TypeError: numba cannot compile it; its message says why.
    """
    from numba.core.errors import NumbaError

    try:
        decorated.compile(types)
    except (NumbaError, NotImplementedError) as error:  # the latter for float16
        given = ", ".join(map(str, types))
        raise TypeError(
            f"kernel {label}: numba cannot compile it for ({given}). Arguments cannot be written "
            f"to; those without axes are numbers. numba says: {error}"
        ) from error
    return decorated.overloads[types].signature.return_type


def _checked(
    label: str, module: Any, returned: Any, results: Sequence[Argument], writes: bool
) -> list[str]:
    """How each result comes: ``number``, or by the layout of its array.

    Raises:
      TypeError, ShapeError: results are not what was announced.
    """
    types = module.types
    if writes:
        if returned != types.none:
            raise TypeError(
                f"kernel {label} is given arrays for its results, and returns {returned}; let it "
                "write to the arrays and return nothing, or take no arrays and return all results"
            )
        return [""] * len(results)
    found = list(returned) if isinstance(returned, types.BaseTuple) else [returned]
    if len(found) != len(results):
        raise TypeError(
            f"kernel {label} returns {len(found)} results ({returned}), but out_like has "
            f"{len(results)} leaves"
        )
    layouts = []
    for i, (type_, argument) in enumerate(zip(found, results, strict=True)):
        is_array = isinstance(type_, types.Array)
        element = type_.dtype if is_array else type_
        ndim = type_.ndim if is_array else 0
        expected = loops.numba_type(argument).dtype
        if ndim != argument.ndim or element != expected:
            kind = ShapeError if ndim != argument.ndim else TypeError
            raise kind(
                f"kernel {label}: result {i} is {type_} for numba, but out_like says "
                f"{argument.ndim} axes of dtype {argument.dtype}"
            )
        layouts.append(("C" if type_.layout == "C" else "A") if is_array else "number")
    return layouts
