"""Compiled programs against the interpreter in compiler-math mode, bit by bit.

Here: ``assert_same_bits`` (arrays), ``assert_compiled_is_reference`` (functions), ``texts_of``
(what a function becomes in LLVM's language). Not here: the functions that are compared.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
from functrans.compiler.compiled import plan_of
from functrans.compiler.programs import write_program
from functrans.compiler.support import NativePart
from functrans.jitted.jit import jit


def _parts(array: np.ndarray) -> list[np.ndarray]:
    """Real and imaginary part, or the array itself."""
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def assert_same_bits(found: Any, expected: Any, what: str = "") -> None:
    """Two arrays have the same dtype, shape and bits, but for which NaN a NaN is."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, f"{what}: {found.dtype} instead of {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: {found.shape} instead of {expected.shape}"
    for one, other in zip(_parts(found), _parts(expected), strict=True):
        is_same = one == other
        if one.dtype.kind not in "biu":
            is_same = np.where(is_same, np.signbit(one) == np.signbit(other), False)
            is_same = is_same | (np.isnan(one) & np.isnan(other))
        if not np.all(is_same):
            where = np.argwhere(~np.asarray(is_same))
            first = tuple(where[0])
            raise AssertionError(
                f"{what}: {len(where)} of {one.size} elements of {found.dtype}{list(found.shape)} "
                f"differ, the first at {list(map(int, first))}: {one[first]!r} instead of "
                f"{other[first]!r}"
            )


def _outcome(fun: Callable[..., Any], args: Any) -> tuple[Any, Exception | None]:
    try:
        return fun(*args), None
    except Exception as error:  # compared with the other one
        return None, error


def is_compiled(fun: Any) -> bool:
    """Whether all programs of a jitted function are native as a whole or in parts."""
    programs = fun._programs.values()
    return all(program.native is not None for program in programs)


def assert_compiled_is_reference(fun: Callable[..., Any], *args: Any, what: str = "") -> Any:
    """A jitted function computes the same bits compiled and interpreted, or fails alike.

    Returns:
      The results.
    """
    jitted = ft.jit(fun)
    with np.errstate(all="ignore"):
        found, error = _outcome(jitted, args)
        native = is_compiled(jitted)
        with ft.config(compiler_math=True):
            expected, reference_error = _outcome(jitted, args)
    if error is not None or reference_error is not None:
        if (type(error), str(error)) != (type(reference_error), str(reference_error)):
            raise AssertionError(
                f"{what}: compiled {error!r}, reference {reference_error!r}"
            ) from error
        return None
    assert native, f"{what}: interpreted"
    found_leaves, expected_leaves = ft.tree.leaves(found), ft.tree.leaves(expected)
    for i, (one, other) in enumerate(zip(found_leaves, expected_leaves, strict=True)):
        assert_same_bits(one, other, f"{what}: result {i}")
    return found


def texts_of(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The emitted text of the native parts of a jitted function."""
    return [
        write_program(part.jaxpr).text
        for part in plan_of(jit(fun).jaxpr(*args))
        if isinstance(part, NativePart)
    ]
