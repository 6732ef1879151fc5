"""Exceptions of functrans.

Here: every exception class that functrans raises on purpose and the helpers that format values in
messages. Not here: the checks that raise them, which stand beside the code they guard. Each class
derives from the builtin a NumPy user would catch, and its docstring shows failing and repaired
code. A message says what was received, what was expected and what to do next.

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

from functrans.namespaces import listing as _listing


class FunctransError(Exception):
    """Base of all exceptions that functrans defines."""


class ConcretizationError(FunctransError, TypeError):
    """A Python value was asked of an array that has none while it is being traced.

    Fails::

        @ft.jit
        def relu(x):
            return x if x > 0 else 0.0      # bool() of a staged value

    Repaired::

        @ft.jit
        def relu(x):
            return np.where(x > 0, x, 0.0)  # or ft.lax.cond

    ``float()`` and ``np.asarray`` of a traced value raise it too, since the plain number would
    silently lose the derivative.
    """


class TensorConcretizationError(ConcretizationError, RuntimeError):
    """A value was asked of a tensor that has none; PyTorch raises ``RuntimeError`` there.

    Fails::

        torch.func.vmap(lambda x: x if x.sum() > 0 else -x)(torch.ones(2, 3))

    Repaired::

        torch.func.vmap(lambda x: torch.where(x.sum() > 0, x, -x))(torch.ones(2, 3))
    """


class PathLimitError(FunctransError, RuntimeError):
    """A function that is specialised takes too many paths, or one that is too long.

    Fails::

        @ft.jit(specialize=True)
        def halvings(x):
            n = 0
            while x > 1:          # one program for each number of rounds
                x, n = x / 2, n + 1
            return n

        [halvings(2.0**k) for k in range(1000)]

    Repaired::

        @ft.jit
        def halvings(x):
            step = lambda state: (state[0] / 2, state[1] + 1)
            return ft.lax.while_loop(lambda state: state[0] > 1, step, (x, 0))[1]
    """


class EscapedTracerError(FunctransError, RuntimeError):
    """A traced value was used after the transformed function had returned.

    Fails::

        kept = []
        ft.grad(lambda x: kept.append(x) or x * x)(2.0)
        kept[0] + 1.0

    Repaired: return the value (``has_aux=True`` carries it out as a plain array)::

        g, kept = ft.grad(lambda x: (x * x, x), has_aux=True)(2.0)
    """


class NonDifferentiableError(FunctransError, TypeError):
    """A derivative was asked where none is defined.

    Fails::

        ft.grad(lambda n: n * 2.0)(3)      # integer input

    Repaired::

        ft.grad(lambda n: n * 2.0)(3.0)
    """


class ShapeError(FunctransError, ValueError):
    """Shapes do not fit the operation; the message names the primitive and the user's line.

    Fails::

        ft.grad(lambda x: (x + np.ones(4)).sum())(np.ones(3))

    Repaired::

        ft.grad(lambda x: (x + np.ones(3)).sum())(np.ones(3))
    """


class TensorShapeError(ShapeError, RuntimeError):
    """Shapes do not fit an operation on tensors; PyTorch raises ``RuntimeError`` there.

    Fails::

        ft.tensor([1.0, 2.0]) + ft.tensor([1.0, 2.0, 3.0])

    Repaired::

        ft.tensor([1.0, 2.0, 0.0]) + ft.tensor([1.0, 2.0, 3.0])
    """


class TensorDeviceError(FunctransError, RuntimeError, AssertionError):
    """A tensor was to go to another device than the CPU.

    PyTorch without CUDA raises ``AssertionError`` for that, and ``RuntimeError`` for other devices.

    Fails::

        torch.ones(2).to("cuda")

    Repaired::

        torch.ones(2).to("cuda" if torch.cuda.is_available() else "cpu")
    """


class TreeMismatchError(FunctransError, ValueError):
    """Two pytrees that should have one structure differ; the message names the key path.

    Fails::

        ft.vmap(f, in_axes={"w": 0})({"w": w, "b": b})

    Repaired::

        ft.vmap(f, in_axes=({"w": 0, "b": None},))({"w": w, "b": b})
    """


class UnsupportedOperationError(FunctransError, TypeError):
    """An operation cannot be traced; the message names the call and its replacement.

    Fails::

        buf = np.zeros(3)
        ft.grad(lambda x: np.copyto(buf, x) or buf.sum())(np.ones(3))

    Repaired::

        ft.grad(lambda x: np.array(x, like=x).sum())(np.ones(3))
    """


class AliasedWriteError(FunctransError, RuntimeError):
    """An array of an enclosing trace was written to inside an inner traced function.

    Fails::

        def f(x):
            def body(i, c):
                x[i] = 0.0                 # x belongs to the enclosing trace
                return c
            return ft.lax.fori_loop(0, 3, body, 0.0)

    Repaired: carry the array through the loop and return it.
    """


class CacheFormatError(FunctransError, ValueError):
    """A saved Jaxpr or function cannot be read: damaged, none, or of an unknown format version.

    Fails::

        ft.Jaxpr.load("notes.txt")

    Repaired: pass a file written by ``Jaxpr.save``, or by ``jit(f).save`` to ``ft.load``.
    """


class ConvergenceError(FunctransError, RuntimeError):
    """An iteration ended without having reached its tolerance.

    Fails::

        ft.fixed_point(np.cos, 1.0, maxiter=5)

    Repaired: allow more iterations, a larger tolerance or a better start::

        ft.fixed_point(np.cos, 1.0, maxiter=500)
    """


class NestingError(FunctransError, RecursionError):
    """Programs stand in programs deeper than Python's stack reaches.

    Fails::

        f = np.cos
        for _ in range(1000):
            f = lambda x, f=f: ft.lax.cond(x > 0, f, np.sin, x)
        ft.jit(f)(1.0)

    Repaired: write levels that are alike as a loop, choices one beside the other as
    ``ft.lax.switch``, or allow a deeper stack::

        sys.setrecursionlimit(50_000)
    """


class NonFiniteError(FunctransError, FloatingPointError):
    """An operation made NaN, or an infinity, while ``debug_nans`` was on.

    Fails::

        with ft.debug_nans():
            ft.grad(lambda x: np.sqrt(x * 0.0))(1.0)

    Repaired: keep the operand away from the singular point::

        with ft.debug_nans():
            ft.grad(lambda x: np.sqrt(x * 0.0 + 1e-12))(1.0)

    Attributes:
      primitive: name of the operation.
      direction: ``forward``, ``backward`` or ``tangent``.
      source: the user's line, or ``None``.
      operands: what went in; of a backward pass what it keeps, and the cotangents.
      results: what came out.
      index: place of the first such element in its result.
      path: loops, branches and programs around the operation, the outermost first.
      lane: element of the batch, or ``None``.
    """

    def __init__(
        self,
        message: str,
        *,
        primitive: str = "",
        direction: str = "forward",
        source: object = None,
        operands: tuple[object, ...] = (),
        results: tuple[object, ...] = (),
        index: tuple[int, ...] = (),
        path: tuple[str, ...] = (),
        lane: int | None = None,
    ) -> None:
        super().__init__(message)
        self.primitive = primitive
        self.direction = direction
        self.source = source
        self.operands = operands
        self.results = results
        self.index = index
        self.path = path
        self.lane = lane


class CompilationError(FunctransError, RuntimeError):
    """Machine code could not be made or loaded; the message is that of LLVM or of the loader.

    Users do not see it raised: a program that cannot be compiled is interpreted, with a warning.
    """


class JaxprTypeError(FunctransError, TypeError):
    """``check_jaxpr`` found an ill-formed program; the message names the equation.

    Users see it only when a pass or a rule of a primitive is wrong.
    """


__all__ = [
    "AliasedWriteError", "CacheFormatError", "CompilationError", "ConcretizationError",
    "ConvergenceError", "EscapedTracerError", "FunctransError", "JaxprTypeError",
    "NestingError", "NonDifferentiableError", "NonFiniteError", "PathLimitError", "ShapeError",
    "TensorConcretizationError", "TensorDeviceError", "TensorShapeError", "TreeMismatchError",
    "UnsupportedOperationError",
]  # fmt: skip
__dir__ = _listing(__all__)
