"""Functions that numba compiles, as differentiable operations of compiled programs: ``kernel``.

Here: ``kernel``. Not here: how such a function becomes machine code (``kernels``), the operation
(``primitives.kernels``), functions that stay in Python (``solvers.external``), whose rules are the
same.

Layer: ``solvers``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from functrans import pytrees as tree
from functrans.core.arguments import canonical, check_callable, name_of, named
from functrans.core.avals import ShapedArray
from functrans.core.dispatch import aval_of, bind, dtype_of
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.transformed import transform
from functrans.core.values import Array
from functrans.kernels.entries import user_loop
from functrans.kernels.loops import Argument, Loop
from functrans.primitives.kernels import kernel_p
from functrans.primitives.structural import cast_p
from functrans.records import dataclass, field
from functrans.solvers.external import External, announced, check_settings


@dataclass(frozen=True, slots=True)
class _Kernel(External):
    """The settings of one kernel, and its loops for the types that it was called with."""

    on_threads: bool = False
    loops: dict[tuple[Argument, ...], Loop] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What it is, for messages."""
        return f"kernel {name_of(getattr(self.fun, 'py_func', self.fun))}"

    def call(self, *args: Any, **kwargs: object) -> Any:
        """Call it as one operation."""
        if kwargs:
            raise TypeError(
                f"{self.label}: a kernel takes positional arguments, got {', '.join(kwargs)} by "
                "keyword"
            )
        operands = [self._operand(x, i) for i, x in enumerate(args)]
        if self.jvp is None and self.vjp is None:
            return self.run(announced(self.label, self.out_like, operands), operands, {})
        return External.call(self, *operands)

    def run(self, like: ShapeDtypeStruct, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The loop, on operands."""
        structs, treedef = tree.flatten(like)
        out_avals = tuple([ShapedArray(struct.shape, struct.dtype) for struct in structs])
        in_avals = tuple([ShapedArray(x.shape, x.dtype) for x in args])
        given = tuple([Argument(aval.dtype, len(aval.shape)) for aval in in_avals])
        results = tuple([Argument(a.dtype, len(a.shape), is_written=True) for a in out_avals])
        key = (*given, *results)
        if key not in self.loops:
            self.loops[key] = user_loop(self.fun, given, results)
        outs = bind(
            kernel_p,
            *args,
            loop=self.loops[key],
            in_avals=in_avals,
            out_avals=out_avals,
            lanes=(),
            on_threads=self.on_threads,
        )
        return tree.unflatten(treedef, outs)

    def _operand(self, value: Any, position: int) -> Any:
        """An argument as an array with a dtype of its own."""
        if tree.structure(value) is not tree.LEAF:
            raise TypeError(
                f"{self.label}: args[{position}] is {tree.describe(tree.structure(value))}; a "
                "kernel takes arrays and numbers. Pass the leaves one by one"
            )
        value = canonical(value, lambda: f"{self.label}: args[{position}]")
        is_weak = getattr(aval_of(value), "weak", False)
        return bind(cast_p, value, dtype=dtype_of(value))[0] if is_weak else value


@transform
def kernel(
    fun: Callable[..., Any] | None = None,
    out_like: object = ...,
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Make a function that numba compiles one differentiable operation.

    Compiled programs call its machine code, in loops and branches, too, without returning to
    Python; the interpreter calls the same code. It is compiled for the dtypes and numbers of axes
    that it is called with, and kept on disk.

    Args:
      fun: a function for ``numba.njit``, decorated (with options of its own) or not. It gets
        C-contiguous arrays, which it cannot write to, and numbers for arguments without axes. Its
        results it either returns, or it has as many more parameters as results, and writes to
        arrays of zeros. What it raises comes out as it is.
      out_like: what it returns, as a pytree of arrays or ``ShapeDtypeStruct``; or a function that
        gets the arguments as ``ShapeDtypeStruct`` and returns such a pytree.
      jvp: rule ``(primals, tangents) -> tangents of the result``; both are tuples, an entry for
        each argument. A function of functrans operations, perhaps of other kernels.
      vjp: rule ``(primals, outs, cotangents) -> cotangents of the arguments`` (a tuple). One rule
        is enough where it can be transposed, which a kernel cannot: one of operations alone serves
        both modes, and rules that call kernels serve their own.

    Returns:
      Function with the arguments of ``fun``. Under ``vmap`` the code is called once for each
      element of the batch, on several threads if ``fun`` is decorated with ``nogil=True``. Without
      ``fun``, a decorator.

    Raises:
      NonDifferentiableError: a derivative is asked, and there is no rule.
      TypeError: numba cannot compile the function, or it takes or returns something else than
        ``out_like`` and the arguments say.
      ShapeError: a result has another number of axes than ``out_like``.
      LookupError: numba cannot be imported.

    Example:
      >>> import numpy as np
      >>> import functrans as ft
      >>> def running_maximum(x, out):
      ...     best = x[0]
      ...     for i in range(len(x)):
      ...         best = max(best, x[i])
      ...         out[i] = best
      >>> @ft.kernel(out_like=lambda x, ct: x)
      ... def pulled(x, ct, out):
      ...     at = 0
      ...     for i in range(len(x)):
      ...         at = i if x[i] > x[at] else at
      ...         out[at] += ct[i]
      >>> running = ft.kernel(
      ...     running_maximum, lambda x: x, vjp=lambda primals, outs, ct: (pulled(*primals, ct),)
      ... )
      >>> x = np.array([1.0, 3.0, 2.0])
      >>> running(x)
      array([1., 3., 3.])
      >>> ft.jit(ft.grad(lambda x: np.sum(running(x))))(x)
      array([1., 2., 0.])
    """
    if fun is None:
        return functools.partial(kernel, out_like=out_like, jvp=jvp, vjp=vjp)
    check_callable("kernel", fun)
    own = getattr(fun, "py_func", fun)
    label = f"kernel {name_of(own)}"
    check_settings(label, out_like, jvp, vjp)
    options = getattr(fun, "targetoptions", {})
    on_threads = bool(options.get("nogil")) and not options.get("parallel")
    settings = _Kernel(
        fun, out_like, jvp, vjp, None, None, "traced", None, "sequential", on_threads
    )

    @named("kernel", own)
    def operation(*args: Array, **kwargs: object) -> Any:
        return settings.call(*args, **kwargs)

    return operation
