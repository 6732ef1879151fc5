"""Jacobians and Hessians: ``jacrev``, ``jacfwd``, ``jacobian``, ``hessian``, ``hessian_diag``.

Here: the transforms. Not here: how a dense Jacobian is evaluated (``transforms.dense``), products
with vectors (``transforms.products``).

Layer: ``transforms``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from functrans.core.arguments import check_argnums, named, part_of
from functrans.core.calling import traced_form
from functrans.core.deferred import deferred
from functrans.core.transformed import transform
from functrans.core.values import Argnums, Aux, P
from functrans.transforms.chunks import check_chunking
from functrans.transforms.dense import DenseJacobian
from functrans.transforms.reverse import grad


def _jacobian_transform(
    who: str, fun: Callable[..., Any], argnums: object, direction: str, options: dict[str, Any]
) -> Callable[..., Any]:
    fun = traced_form(who, fun)
    numbers = check_argnums(who, argnums)
    has_aux = options["has_aux"]

    @named(who, fun)
    def jacobian_function(*args: object, **kwargs: object) -> Any:
        call = DenseJacobian(who, fun, numbers, args, kwargs, direction=direction, **options)
        call.check_size()
        result = call.assemble(call.blocks())
        return (result, call.recorded.aux) if has_aux else result

    return jacobian_function


@overload
def jacrev(
    fun: np.ufunc, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, *, chunk_size: int | str = "auto", memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def jacrev(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, Any]: ...
@transform
def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[..., Any]:
    """Jacobian by reverse mode: good when there are fewer results than arguments.

    Args:
      fun: function of pytrees of arrays; it runs on values, once.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are accepted (gradient of dtype ``float0``).
      chunk_size: how many rows are evaluated at once; ``"auto"``: as many as fit.
      memory_bytes: what the result, the values kept for the derivative and the rows that are
        evaluated at once may take together. By default each of result and rows may take
        ``ft.config(jacobian_memory_bytes=...)``. What a row needs is estimated from the recorded
        operations.
      progress: ``True`` for a bar (of tqdm), or a function of ``(done, total)`` rows that is called
        after each chunk; by default a bar comes after two seconds, in notebooks and on terminals
        only, unless ``ft.config(progress=False)``.

    Returns:
      Function that gives, in the structure of the result, per leaf the structure of the argument,
      blocks of shape ``out.shape + in.shape``.

    Raises:
      NonDifferentiableError: an argument or result is not floating; names the key path.
      MemoryError: the dense result exceeds the budget, or ``memory_bytes`` is too small for a
        single row besides; tells what is needed.
      ValueError: ``chunk_size`` or ``memory_bytes`` is not a positive integer.
      ImportError: ``progress=True`` without tqdm.
      UnsupportedOperationError: progress was asked for inside ``jit`` or ``vmap``.

    Example:
      >>> import numpy as np
      >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
      array([[2., 0.],
             [0., 4.]])
    """
    options = {
        "has_aux": has_aux,
        "holomorphic": holomorphic,
        "allow_int": allow_int,
        "chunking": check_chunking("jacrev", chunk_size, memory_bytes, progress),
    }
    return _jacobian_transform("jacrev", fun, argnums, "reverse", options)


@overload
def jacfwd(
    fun: np.ufunc, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False, *,
    chunk_size: int | str = "auto", memory_bytes: int | None = None, progress: bool |
    Callable[[int, int], Any] = False,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def jacfwd(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, Any]: ...
@transform
def jacfwd(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[..., Any]:
    """Jacobian by forward mode: good when there are fewer arguments than results.

    Arguments, result and errors as :func:`jacrev`, with columns in place of rows.

    Example:
      >>> import numpy as np
      >>> jacfwd(lambda x: np.stack([x, x**2]))(3.0)
      array([1., 6.])
    """
    options = {
        "has_aux": has_aux,
        "holomorphic": holomorphic,
        "allow_int": None,
        "chunking": check_chunking("jacfwd", chunk_size, memory_bytes, progress),
    }
    return _jacobian_transform("jacfwd", fun, argnums, "forward", options)


@overload
def jacobian(
    fun: np.ufunc, argnums: Argnums = 0, has_aux: bool = False, mode: str = "auto", chunk_size:
    int | str = "auto", holomorphic: bool = False, *, memory_bytes: int | None = None, progress:
    bool | Callable[[int, int], Any] = False, sparsity: Any = None,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def jacobian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    mode: str = "auto",
    chunk_size: int | str = "auto",
    holomorphic: bool = False,
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
    sparsity: Any = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacobian(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    mode: str = "auto",
    chunk_size: int | str = "auto",
    holomorphic: bool = False,
    *,
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
    sparsity: Any = None,
) -> Callable[P, Any]: ...
@transform
def jacobian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    mode: str = "auto",
    chunk_size: int | str = "auto",
    holomorphic: bool = False,
    *,
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """Jacobian in the cheaper direction, or in both.

    Args:
      fun: function of pytrees of arrays; it runs on values, once.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      mode: ``"reverse"``, ``"forward"``, or ``"auto"``. That takes the cheapest passes by the work
        of the recorded operations: rows of some leaves of the result, columns of some leaves of the
        arguments, such that each block is found; so reverse mode for one array with no more
        elements than the one argument has. The logger ``functrans`` tells at level DEBUG what was
        taken (``reverse``, ``forward`` or ``mixed``).
      chunk_size: how many rows or columns are evaluated at once; ``"auto"``: as many as fit.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      memory_bytes: the budget; see :func:`jacrev`.
      progress: ``True`` for a bar, or a function of ``(done, total)``; see :func:`jacrev`.
      sparsity: which entries may be nonzero, as a matrix (``scipy.sparse`` or dense), or ``True``
        to find that out. The result is then that of ``ft.sparse_jacobian``, which traces ``fun``
        without values.

    Returns:
      As :func:`jacrev`; with ``sparsity``, as ``ft.sparse_jacobian``.

    Raises:
      NonDifferentiableError: an argument or result is not floating; names the key path.
      MemoryError: the dense result exceeds the budget, or ``memory_bytes`` is too small for a
        single row or column besides; tells what is needed.
      TypeError: ``sparsity`` together with an option of dense results.
      ValueError: unknown ``mode``; ``chunk_size`` or ``memory_bytes`` is not a positive integer.
      ImportError: ``progress=True`` without tqdm.
      UnsupportedOperationError: progress was asked for inside ``jit`` or ``vmap``.

    Example:
      >>> import numpy as np
      >>> jacobian(np.sin)(np.zeros(2))
      array([[1., 0.],
             [0., 1.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"jacobian: mode must be 'auto', 'forward' or 'reverse', got {mode!r}")
    if sparsity is not None and sparsity is not False:
        if has_aux or holomorphic or chunk_size != "auto" or memory_bytes or progress:
            raise TypeError(
                "jacobian: sparsity= cannot be combined with has_aux, holomorphic, chunk_size, "
                "memory_bytes or progress, which are for dense results"
            )
        return deferred.jacobian_of_sparsity(fun, argnums, mode, sparsity)
    options = {
        "has_aux": has_aux,
        "holomorphic": holomorphic,
        "allow_int": None,
        "chunking": check_chunking("jacobian", chunk_size, memory_bytes, progress),
    }
    return _jacobian_transform("jacobian", fun, argnums, mode, options)


@overload
def hessian(
    fun: np.ufunc, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False, *,
    chunk_size: int | str = "auto", memory_bytes: int | None = None, progress: bool |
    Callable[[int, int], Any] = False,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def hessian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def hessian(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, Any]: ...
@transform
def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[..., Any]:
    """Hessian: forward mode over reverse mode.

    Args:
      fun: function of pytrees of arrays, scalar or not; it runs on values, once.
      argnums: which positional arguments to differentiate twice.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      chunk_size: how many columns are evaluated at once; ``"auto"``: as many as fit.
      memory_bytes: what the result, the values kept for the derivative and the columns that are
        evaluated at once may take together; see :func:`jacrev`.
      progress: ``True`` for a bar (of tqdm), or a function of ``(done, total)`` columns.

    Returns:
      Function that gives blocks of shape ``out.shape + in.shape + in.shape``, nested by result,
      argument, argument.

    Raises:
      NonDifferentiableError, MemoryError, ValueError, ImportError, UnsupportedOperationError: as
        :func:`jacrev`.

    Example:
      >>> import numpy as np
      >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
      array([[ 6.,  0.],
             [ 0., 12.]])
    """
    fun = traced_form("hessian", fun)
    check_argnums("hessian", argnums)
    first = part_of(fun, jacrev(fun, argnums, has_aux, holomorphic))  # type: ignore[call-overload]  # one of two
    options = {
        "has_aux": has_aux,
        "holomorphic": holomorphic,
        "allow_int": None,
        "chunking": check_chunking("hessian", chunk_size, memory_bytes, progress),
    }
    return _jacobian_transform("hessian", first, argnums, "forward", options)


@overload
def hessian_diag(
    fun: np.ufunc, argnums: int = 0, chunk_size: int | str = "auto", *, memory_bytes: int | None
    = None, progress: bool | Callable[[int, int], Any] = False,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def hessian_diag(
    fun: Callable[P, Any],
    argnums: int = 0,
    chunk_size: int | str = "auto",
    *,
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[P, Any]: ...
@transform
def hessian_diag(
    fun: Callable[..., Any],
    argnums: int = 0,
    chunk_size: int | str = "auto",
    *,
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Callable[..., Any]:
    """The diagonal of the Hessian of a scalar function, without the Hessian in memory.

    Args:
      fun: scalar function of arrays; it runs on values, once.
      argnums: which positional argument (one array, or a pytree).
      chunk_size: how many columns are evaluated at once; ``"auto"``: as many as fit.
      memory_bytes: the budget; see :func:`jacrev`.
      progress: ``True`` for a bar, or a function of ``(done, total)`` columns.

    Returns:
      Function that gives second derivatives by each element, shaped like the argument. The work is
      that of the Hessian; the memory that of ``chunk_size`` of its columns.

    Raises:
      NonDifferentiableError, ShapeError: as :func:`ft.grad`.

    Example:
      >>> import numpy as np
      >>> hessian_diag(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
      array([ 6., 12.])
    """
    fun = traced_form("hessian_diag", fun)
    number = check_argnums("hessian_diag", argnums)
    if not isinstance(number, int):
        raise TypeError(f"hessian_diag: argnums must be one int, got {argnums!r}")
    chunking = check_chunking("hessian_diag", chunk_size, memory_bytes, progress)
    first = part_of(fun, grad(fun, number))

    @named("hessian_diag", fun)
    def diagonal_function(*args: object, **kwargs: object) -> Any:
        call = DenseJacobian(
            "hessian_diag", first, number, args, kwargs,
            has_aux=False, holomorphic=False, allow_int=None, chunking=chunking,
        )  # fmt: skip
        return call.diagonal()

    return diagonal_function
