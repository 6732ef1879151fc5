"""Checks of the backward pass against finite differences: ``gradcheck``, ``gradgradcheck``.

Here: Jacobians of functions of tensors by differences, by ``grad`` and by forward mode, and their
comparison. Not here: checks of functional transforms (``functrans.testing``).

Complex numbers are pairs of real ones: a Jacobian has a row for each real and imaginary part of the
outputs and a column for each of the inputs. A gradient ``g`` of a real loss is read as the pair
``(g.real, g.imag)``, which is the convention of the imperative side.

Layer: ``autograd``. Reference: PyTorch's documentation of ``torch.autograd.checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans.autograd.api import grad
from functrans.autograd.forward_ad import dual_level, make_dual, unpack_dual
from functrans.autograd.func_batches import vmap
from functrans.autograd.labels import torch_type
from functrans.autograd.modes import enable_grad, entered, modes
from functrans.autograd.random import BatchLevel
from functrans.autograd.tensors import Tensor
from functrans.core.boundary import warn
from functrans.core.values import Array
from functrans.records import dataclass

_SEED = 20240229


def _no_gradients(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int | None, ...]:
    return (None,) * len(inputs)


class GradcheckError(RuntimeError):
    """A derivative is wrong; the message names the output, the input and the worst element."""


@contextmanager
def _refusing_random() -> Iterator[None]:
    """A batch whose examples must not draw random numbers."""
    try:
        with entered({"batches": (*modes.batches, BatchLevel("error"))}):
            yield
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}") from error


@dataclass(frozen=True, slots=True)
class _Settings:
    eps: float
    atol: float
    rtol: float


def _tensors(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _is_inexact(x: Tensor) -> bool:
    return isinstance(x, Tensor) and x.dtype.kind in "fc"


def _outputs(result: object) -> list[Any]:
    """The outputs that a derivative is checked of."""
    return [x for x in _tensors(result) if _is_inexact(x)]


def _parts(x: Array | complex) -> np.ndarray:
    """Real parts, then imaginary parts, in one vector of doubles."""
    flat = np.ravel(x)
    if flat.dtype.kind == "c":
        return np.concatenate([flat.real, flat.imag]).astype(np.float64)
    return flat.astype(np.float64)


def _count(x: Any) -> int:
    return int(x.size) * (2 if x.dtype.kind == "c" else 1)


def _units(x: np.ndarray) -> Any:
    """The arrays that are 1 (or the imaginary unit) in one place."""
    for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
        for i in range(x.size):
            direction = np.zeros(x.shape, x.dtype)
            direction.flat[i] = unit
            yield direction


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    value = rng.uniform(-1.0, 1.0, shape)
    if dtype.kind == "c":
        value = value + 1j * rng.uniform(-1.0, 1.0, shape)
    return np.asarray(value, dtype)


def _fresh(inputs: Sequence[Any], values: dict[int, Any], recorded: bool = True) -> list[Any]:
    """Inputs as new leaves, some with other values.

    Args:
      inputs: tensors or others.
      values: of some inputs, by number.
      recorded: whether leaves require gradients where inputs do.
    """
    result = []
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            result.append(x)
            continue
        leaf = Tensor.of(np.array(values.get(i, x._value), order="K"))
        if recorded and x._node is not None:
            leaf.requires_grad_()
        result.append(leaf)
    return result


def _evaluated(fun: Callable[..., Any], inputs: Sequence[Any], values: dict[int, Any]) -> list[Any]:
    """Arrays of the outputs."""
    return [np.array(out._value) for out in _outputs(fun(*_fresh(inputs, values)))]


def _check_kinds(outs: Sequence[Any], moved: Sequence[np.ndarray], where: str) -> None:
    """Refuse functions whose results change their kinds."""
    assert len(outs) == len(moved), (
        f"Expected `func` to return as many outputs {where}, but got: {len(outs)} and {len(moved)}."
    )
    for what in ("shape", "dtype"):
        for a, b in zip(outs, moved, strict=True):
            assert getattr(a, what) == getattr(b, what), (
                f"Expected `func` to return outputs with the same {what} {where}, but got: "
                f"{what}s {getattr(a, what)} and {getattr(b, what)}."
            )


def _difference(
    fun: Callable[..., Any], inputs: Sequence[Any], moves: dict[int, Any], eps: float,
    outs: Sequence[Any], where: str,
) -> list[np.ndarray]:  # fmt: skip
    """Central differences of the outputs in one direction."""
    ends = []
    for sign in (1.0, -1.0):
        values = {i: inputs[i]._value + sign * eps * move for i, move in moves.items()}
        ends.append(_evaluated(fun, inputs, values))
        _check_kinds(outs, ends[-1], f"when inputs are perturbed {where}by {eps:g}")
    return [(high - low) / (2 * eps) for high, low in zip(*ends, strict=True)]


def numerical_jacobian(
    fun: Callable[..., Any], inputs: Sequence[Any], number: int, eps: float, outs: Sequence[Any]
) -> list[np.ndarray]:
    """Jacobian of each output in one input, by central differences.

    Args:
      fun: of tensors.
      inputs: its arguments.
      number: of the input.
      eps: step.
      outs: its results at the inputs.
    """
    x = np.asarray(inputs[number]._value)
    columns = []
    for direction in _units(x):
        index = tuple([int(i[0]) for i in np.nonzero(np.atleast_1d(direction))])
        where = f"on index {index if x.shape else ()} "
        columns.append(_difference(fun, inputs, {number: direction}, eps, outs, where))
    if not columns:
        return [np.zeros((_count(out), 0)) for out in outs]
    return [
        np.stack([_parts(column[k]) for column in columns], axis=1) for k in range(len(columns[0]))
    ]


def _gradients(
    out: Tensor, leaves: Sequence[Any], gradient: Array, batched: bool = False
) -> list[Any]:
    """Gradients of one output as arrays; zeros where there is none."""
    lead = gradient.shape[:1] if batched else ()
    if out._node is None:
        return [np.zeros((*lead, *x.shape), x.dtype) for x in leaves]
    found = grad(
        out, leaves, Tensor.of(gradient), retain_graph=True, allow_unused=True,
        is_grads_batched=batched,
    )  # fmt: skip
    return [
        np.zeros((*lead, *x.shape), x.dtype) if g is None else np.array(g._value)
        for g, x in zip(found, leaves, strict=True)
    ]


def analytical_jacobian(out: Tensor, leaves: Sequence[Any]) -> list[np.ndarray]:
    """Jacobian of an output in each leaf, one backward pass per row.

    Args:
      out: the output.
      leaves: tensors.
    """
    rows = [_gradients(out, leaves, unit) for unit in _units(np.asarray(out._value))]
    return [
        np.stack([_parts(row[k]) for row in rows])
        if rows
        else np.zeros((0, _count(np.asarray(x._value))))
        for k, x in enumerate(leaves)
    ]


# comparison --------------------------------------------------------------------------------------


def _part_name(i: int, x: Any) -> str:
    """Index of an element, with its part if it is complex."""
    size = max(int(x.size), 1)
    index = tuple(int(j) for j in np.unravel_index(i % size, x.shape)) if x.shape else ()
    part = (".imag" if i >= size else ".real") if x.dtype.kind == "c" else ""
    return f"[{', '.join(map(str, index))}]{part}"


def _compare(
    have: np.ndarray, expected: np.ndarray, settings: _Settings, where: str, out: Array, x: Array,
    what: str = "",
) -> None:  # fmt: skip
    """Compare two Jacobians."""
    excess = np.abs(have - expected) - (settings.atol + settings.rtol * np.abs(expected))
    wrong = (excess > 0) | (np.isnan(have) != np.isnan(expected)) | np.isnan(have)
    if not wrong.any():
        return
    excess = np.where(np.isnan(excess), np.inf, excess)
    row, column = np.unravel_index(int(np.argmax(np.where(wrong, excess, -np.inf))), have.shape)
    raise GradcheckError(
        f"Jacobian {what}mismatch for {where},\nnumerical:{expected.T}\nanalytical:{have.T}\n"
        f"The worst element is d output{_part_name(int(row), out)} / "
        f"d input{_part_name(int(column), x)}: numerical {expected[row, column]:.6g}, analytical "
        f"{have[row, column]:.6g}."
    )


def _compare_batch(what: str, found: np.ndarray, alone: Sequence[Any], where: str) -> None:
    """Compare the results of a batch with those of its examples."""
    expected = np.stack(alone)
    if not np.allclose(found, expected, rtol=1e-8, atol=1e-10):
        raise GradcheckError(
            f"For {where}, a batch of {what} gives\n{found}\nand one by one they give\n{expected}"
        )


def _where(k: int, i: int) -> str:
    return f"output {k} with respect to input {i}"


# the checks --------------------------------------------------------------------------------------


def _checked_inputs(inputs: tuple[Any, ...]) -> list[int]:
    """Numbers of the inputs that a derivative is checked in."""
    numbers = [i for i, x in enumerate(inputs) if _is_inexact(x) and x.requires_grad]
    if not numbers:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for i in numbers:
        x = inputs[i]
        if x.dtype not in (np.float64, np.complex128):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. "
            )
        value = x._value
        if isinstance(value, np.ndarray) and any(
            not step and n > 1 for step, n in zip(value.strides, value.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )
    return numbers


class _Run:
    """One call of ``gradcheck``.

    Attributes:
      fun: of tensors.
      inputs: its arguments.
      numbers: of the inputs that a derivative is checked in.
      leaves: these inputs as new leaves.
      outs: outputs of the leaves.
    """

    def __init__(self, fun: Callable[..., Any], inputs: tuple[Any, ...], s: _Settings) -> None:
        self.fun = fun
        self.inputs = inputs
        self.settings = s
        self.numbers = _checked_inputs(inputs)
        self.leaves, self.outs = self.evaluated()

    def evaluated(self) -> tuple[list[Any], list[Any]]:
        """New leaves and the outputs of the function."""
        fresh = _fresh(self.inputs, {})
        outs = _outputs(self.fun(*fresh))
        return [fresh[i] for i in self.numbers], outs

    # slow mode

    def numerical(self, i: int) -> list[np.ndarray]:
        """Jacobian of each output in one input, by differences."""
        return numerical_jacobian(self.fun, self.inputs, i, self.settings.eps, self.outs)

    def backward(self) -> None:
        """Each Jacobian, element by element."""
        numerical = [self.numerical(i) for i in self.numbers]
        if not any(out.requires_grad for out in self.outs):
            for jacobians in numerical:
                if any(np.abs(j).max(initial=0.0) > self.settings.atol for j in jacobians):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
            return
        for k, out in enumerate(self.outs):
            found = analytical_jacobian(out, self.leaves)
            for i, x, jacobian, expected in zip(
                self.numbers, self.leaves, found, numerical, strict=True
            ):
                _compare(jacobian, expected[k], self.settings, _where(k, i), out._value, x._value)

    def forward(self) -> None:
        """Each column by forward mode."""
        for i, x in zip(self.numbers, self.leaves, strict=True):
            expected = self.numerical(i)
            columns = [self.pushed({i: unit}) for unit in _units(np.asarray(x._value))]
            for k, out in enumerate(self.outs):
                if columns:
                    found = np.stack([_parts(column[k]) for column in columns], axis=1)
                    _compare(
                        found, expected[k], self.settings, _where(k, i), out._value, x._value,
                        "computed with forward mode ",
                    )  # fmt: skip

    def pushed(self, moves: dict[int, Any]) -> list[Any]:
        """Tangents of the outputs for tangents of inputs."""
        return [np.asarray(t._value) for t in self.tangents(moves)]

    def tangents(self, moves: dict[int, Any]) -> list[Any]:
        """The same as tensors; tangents may be traced."""
        with dual_level():
            args = _fresh(self.inputs, {}, recorded=False)
            for i, move in moves.items():
                args[i] = make_dual(args[i], move if isinstance(move, Tensor) else Tensor.of(move))
            found = []
            for out in _outputs(self.fun(*args)):
                tangent = unpack_dual(out).tangent
                if tangent is None:
                    tangent = Tensor.of(np.zeros(out.shape, out.dtype))
                found.append(tangent)
        return found

    # fast mode

    def fast(self, forward: bool, backward: bool) -> None:
        """One random direction per input and output."""
        rng = np.random.default_rng(_SEED)
        for i, x in zip(self.numbers, self.leaves, strict=True):
            move = _random(rng, x.shape, x.dtype)
            expected = _difference(
                self.fun, self.inputs, {i: move}, self.settings.eps, self.outs, ""
            )
            pushed = self.pushed({i: move}) if forward else None
            for k, out in enumerate(self.outs):
                weight = _random(rng, out.shape, out.dtype)
                number = float(np.dot(_parts(weight), _parts(expected[k])))
                found: list[tuple[float, str]] = []
                if backward:
                    (gradient,) = _gradients(out, [x], weight)
                    found.append((float(np.dot(_parts(gradient), _parts(move))), ""))
                if pushed is not None:
                    value = float(np.dot(_parts(weight), _parts(pushed[k])))
                    found.append((value, "computed with forward mode "))
                for value, what in found:
                    self._compare_fast(value, number, i, k, what)

    def _compare_fast(self, value: float, number: float, i: int, k: int, what: str) -> None:
        limit = self.settings.atol + self.settings.rtol * abs(number)
        if abs(value - number) <= limit:
            return
        try:  # the whole Jacobian says which element
            self.forward() if what else self.backward()
        except GradcheckError as error:
            raise GradcheckError(
                f"{error}\nThe above quantities relating the numerical and analytical jacobians "
                "are computed in fast mode. Slow mode found the element."
            ) from None
        raise GradcheckError(
            f"Jacobian {what}mismatch for {_where(k, i)},\nnumerical:{number}\nanalytical:{value}\n"
            "The above quantities relating the numerical and analytical jacobians are computed in "
            "fast mode. In slow mode every element is within the tolerance."
        )

    # further checks

    def reentrant(self, tolerance: float) -> None:
        """Backward twice gives the same."""
        for out in self.outs:
            weight = np.ones(out.shape, out.dtype)
            first = _gradients(out, self.leaves, weight)
            second = _gradients(out, self.leaves, weight)
            for a, b in zip(first, second, strict=True):
                if np.abs(a - b).max(initial=0.0) > tolerance:
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and "
                        "grad_output multiple times gives different values, although analytical "
                        "gradient matches numerical gradient. The tolerance for nondeterminism was "
                        f"{tolerance}."
                    )

    def undefined(self) -> None:
        """Nodes stand that some of their results, or all, have no gradient."""
        recorded = [out for out in self.outs if out.requires_grad]
        cut = [out * 1 for out in recorded]
        for out in cut:
            out.grad_fn.register_hook(_no_gradients)
        for g in self._gradients_of(cut):
            if g is not None and np.any(g.detach().numpy() != 0):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    "undefined or zero."
                )
        groups: dict[int, list[Any]] = {}
        for out in recorded:
            groups.setdefault(id(out.grad_fn), []).append(out)
        for group in groups.values():
            if len(group) < 2:
                continue
            for out in group:
                self._gradients_of([out])

    def _gradients_of(self, outs: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients of sums of results, by a backward pass that may lack gradients."""
        weights = [Tensor.of(np.ones(out.shape, out.dtype)) for out in outs]
        try:
            return grad(outs, self.leaves, weights, retain_graph=True, allow_unused=True)
        except (TypeError, AttributeError, RuntimeError) as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads, which "
                "check_undefined_grad=False does not check. "
                f"{type(error).__name__}: {error}"
            ) from error

    def dtypes(self) -> None:
        """Gradients have shape and dtype of their inputs."""
        for out in self.outs:
            if not out.requires_grad:
                continue
            weight = Tensor.of(np.ones(out.shape, out.dtype))
            found = grad(out, self.leaves, weight, retain_graph=True, allow_unused=True)
            for g, x in zip(found, self.leaves, strict=True):
                if g is not None and (g.dtype != x.dtype or g.shape != x.shape):
                    raise GradcheckError(
                        f"grad is of {torch_type(g.dtype)}{list(g.shape)}, its input of "
                        f"{torch_type(x.dtype)}{list(x.shape)}"
                    )

    def batched(self) -> None:
        """A batch of gradients gives what they give one by one."""
        rng = np.random.default_rng(_SEED)
        for k, out in enumerate(self.outs):
            if not out.requires_grad:
                continue
            weights = rng.standard_normal((2, *out.shape)).astype(out.dtype)
            with _refusing_random():
                together = _gradients(out, self.leaves, weights, batched=True)
            alone = [_gradients(out, self.leaves, weight) for weight in weights]
            for i, found, *parts in zip(self.numbers, together, *alone, strict=True):
                _compare_batch("gradients", found, parts, _where(k, i))

    def batched_forward(self) -> None:
        """A batch of tangents gives what they give one by one."""
        rng = np.random.default_rng(_SEED)
        for i, x in zip(self.numbers, self.leaves, strict=True):
            moves = rng.standard_normal((2, *x.shape)).astype(x.dtype)
            with _refusing_random():
                batch = vmap(lambda move, i=i: tuple(self.tangents({i: move})))(Tensor.of(moves))
            together = [np.asarray(t._value) for t in batch]
            alone = [self.pushed({i: move}) for move in moves]
            for k, found in enumerate(together):
                _compare_batch("tangents", found, [one[k] for one in alone], _where(k, i))


def gradcheck(
    func: Callable[..., Any],
    inputs: object,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare gradients with central differences.

    Args:
      func: of tensors; returns a tensor or several.
      inputs: its argument or arguments; those that require gradients are checked.
      eps: step of the differences.
      atol: absolute tolerance.
      rtol: relative tolerance.
      raise_exception: whether an error is raised; otherwise ``False`` is returned.
      nondet_tol: how much two backward passes may differ.
      check_undefined_grad: whether operations stand that some of their results are not used, and
        give no gradient where none comes.
      check_grad_dtypes: whether gradients have the dtypes of the inputs.
      check_batched_grad: whether ``grad(is_grads_batched=True)`` gives the same.
      check_batched_forward_grad: whether batched tangents give the same.
      check_forward_ad: whether forward mode is compared, too.
      check_backward_ad: whether the backward pass is.
      fast_mode: along one random direction, which is always the same; not each element.
      masked: accepted for torch's sake.

    Returns:
      ``True`` if they agree.

    Raises:
      GradcheckError: they do not.
      ValueError: no input requires a gradient.

    Example:
      >>> from functrans.autograd import tensor
      >>> gradcheck(lambda x: x * x, tensor([1.0, 2.0], requires_grad=True))
      True
    """
    assert check_forward_ad or check_backward_ad, (
        "Expected at least one of check_forward_ad or check_backward_ad to be True"
    )
    assert not (check_batched_grad and not check_backward_ad), (
        "Setting check_batched_grad=True requires check_backward_ad to be True"
    )
    assert not (check_batched_forward_grad and not check_forward_ad), (
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
    )
    try:
        with enable_grad():  # the function may ask for gradients itself
            run = _Run(func, _tensors(inputs), _Settings(eps, atol, rtol))
            if fast_mode:
                run.fast(check_forward_ad, check_backward_ad)
            else:
                if check_forward_ad:
                    run.forward()
                if check_backward_ad:
                    run.backward()
            if check_backward_ad:
                run.reentrant(nondet_tol)
                if check_batched_grad:
                    run.batched()
                if check_undefined_grad:
                    run.undefined()
                if check_grad_dtypes:
                    run.dtypes()
            if check_batched_forward_grad:
                run.batched_forward()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: object,
    grad_outputs: object = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare gradients of gradients with central differences.

    The function that is checked maps inputs and gradients of the outputs to gradients of the
    inputs.

    Args:
      func: of tensors; returns a tensor or several.
      inputs: its argument or arguments; those that require gradients are checked.
      grad_outputs: gradients of the outputs; random, but always the same, if not given.
      eps: step of the differences.
      atol: absolute tolerance.
      rtol: relative tolerance.
      gen_non_contig_grad_outputs: whether random gradients are not contiguous.
      raise_exception: whether an error is raised; otherwise ``False`` is returned.
      nondet_tol: how much two backward passes may differ.
      check_undefined_grad: as in ``gradcheck``.
      check_grad_dtypes: as in ``gradcheck``.
      check_batched_grad: as in ``gradcheck``.
      check_fwd_over_rev: whether forward mode of the backward pass is compared, too.
      check_rev_over_rev: whether the backward pass of the backward pass is.
      fast_mode: as in ``gradcheck``.
      masked: accepted for torch's sake.

    Returns:
      ``True`` if they agree.

    Raises:
      GradcheckError: they do not.

    Example:
      >>> from functrans.autograd import tensor
      >>> gradgradcheck(lambda x: x * x * x, tensor([1.0, 2.0], requires_grad=True))
      True
    """
    assert check_fwd_over_rev or check_rev_over_rev, (
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
    )
    given = _tensors(inputs)
    numbers = _checked_inputs(given)
    if grad_outputs is None:
        with enable_grad():
            outs = [x for x in _outputs(func(*_fresh(given, {}))) if x.requires_grad]
        weights = _random_gradients(outs, gen_non_contig_grad_outputs)
    else:
        weights = _tensors(grad_outputs)
    n = len(weights)

    def gradients(*args: Tensor) -> tuple[Any, ...]:
        own, given_weights = args[:-n] if n else args, args[-n:] if n else ()
        own = tuple(
            [
                x.requires_grad_() if i in numbers and not x.requires_grad and x.is_leaf else x
                for i, x in enumerate(own)
            ]
        )
        with enable_grad():
            outs = [x for x in _outputs(func(*own)) if x.requires_grad]
            wanted = [own[i] for i in numbers]
            found = grad(outs, wanted, given_weights, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(
        gradients, (*given, *weights), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


def _random_gradients(outs: Sequence[Any], non_contiguous: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(_SEED)
    weights = []
    for out in outs:
        value = _random(rng, (*out.shape, 2) if non_contiguous else out.shape, out.dtype)
        weight: Any = Tensor.of(value[..., 0] if non_contiguous else value)
        weights.append(weight.requires_grad_())
    return tuple(weights)
