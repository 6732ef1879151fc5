"""Less usual algorithms: ``RAdam``, ``ASGD``, ``Adafactor``.

Not here: the usual ones (``optim.algorithms``), what updates are made of (``optim.updates``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.autograd.promotion import torch_tensor
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.optim.optimizer import Optimizer
from functrans.compat.torch.optim.updates import (
    begin,
    blended,
    checked,
    kept,
    like,
    moved,
    next_step,
    number,
    options,
    power,
    root,
    scalar,
    scalar_dtype,
    started,
    with_gradients,
)
from functrans.compat.torch.values import assign, value_of
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives import structural


class RAdam(Optimizer):
    """``Adam`` with smaller steps while the mean square is uncertain.

    Args:
      params: parameters, or groups of them.
      lr: the learning rate; a number or a tensor.
      betas: how much of the two means is kept in each step.
      eps: added to the root.
      weight_decay: factor of the parameters that is added to their gradients.
      decoupled_weight_decay: whether the decay is applied to the parameters.
      foreach: accepted for torch's sake, as are ``capturable`` and ``differentiable``.
      maximize: whether to ascend.
      capturable: accepted for torch's sake.
      differentiable: must be false.

    Raises:
      ValueError: an option is out of range.

    Reference: Liu et al., On the variance of the adaptive learning rate, ICLR 2020.
    """

    def __init__(
        self, params: Any, lr: object = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        limit = 2 / (1 - beta2) - 1
        for p, value, grad, state, step, lr in started(self, group, "exp_avg", "exp_avg_sq"):
            dtype = value.dtype
            mean = moved("radam_step_", state["exp_avg"], grad, 1 - beta1)
            square = blended("radam_step_", state["exp_avg_sq"], grad * grad, beta2)
            rest = 1 - power(beta2, step)
            length: Any = limit - 2 * step * power(beta2, step) / rest
            direction = mean * like(lr / (1 - power(beta1, step)), dtype)
            factor = _rectification(length, limit)
            adapted = like(factor * root(rest), dtype) / (ew.sqrt(square) + group["eps"])
            if isinstance(length, Tracer):
                adapted = ew.where(ew.greater(length, 5.0), adapted, value.dtype.type(1.0))
            elif length <= 5.0:
                adapted = 1.0
            assign("radam_step_", p, value - direction * adapted)


def _rectification(length: Any, limit: float) -> Array | complex:
    if isinstance(length, Tracer):
        length = ew.maximum(length, 5.0)
    elif length <= 5.0:
        return 1.0
    ratio = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return root(ratio)


class ASGD(Optimizer):
    """Gradient descent with the mean of the parameters in the state, under ``"ax"``.

    Args:
      params: parameters, or groups of them.
      lr: the learning rate; a number or a tensor.
      lambd: how fast parameters and rate decay.
      alpha: power in the decay of the rate.
      t0: step at which the mean begins.
      weight_decay: factor of the parameters that is added to their gradients.
      foreach: accepted for torch's sake, as are ``capturable`` and ``differentiable``.
      maximize: whether to ascend.
      differentiable: must be false.
      capturable: accepted for torch's sake.

    Reference: Polyak & Juditsky, Acceleration of stochastic approximation by averaging, SIAM J.
    Control Optim. 30 (1992).
    """

    def __init__(
        self, params: Any, lr: object = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        lambd = group["lambd"]
        for p, value, grad, state, step, lr in started(self, group, "ax"):
            dtype = value.dtype
            if "eta" not in state:
                kind = scalar_dtype()
                first = structural.cast(lr, kind) if isinstance(lr, Tracer) else kind.type(lr)
                kept(state, "eta", p, first)
                state["mu"] = scalar(1.0)
            eta = structural.cast(value_of(state["eta"]), dtype)
            mu = structural.cast(value_of(state["mu"]), dtype)
            value = value * (1 - lambd * eta) - eta * grad
            mean = value_of(state["ax"])
            assign("asgd_step_", p, value)
            assign("asgd_step_", state["ax"], ew.where(mu == 1, value, mean + mu * (value - mean)))
            rate = lr / power(1 + lambd * lr * step, group["alpha"])
            late = step - group["t0"]
            share = 1 / (ew.maximum(late, 1.0) if isinstance(late, Tracer) else max(1.0, late))
            assign("asgd_step_", state["eta"], structural.cast(rate, state["eta"].dtype))
            assign("asgd_step_", state["mu"], structural.cast(share, state["mu"].dtype))


def _root_mean_square(x: Array) -> Array:
    shape = shape_of(x)
    total = structural.reduce_sum(x * x, tuple(range(len(shape))))
    return ew.sqrt(total / float(max(math.prod(shape), 1)))


class Adafactor(Optimizer):
    """Steps relative to the size of the parameters; mean squares of matrices by rows and columns.

    Args:
      params: parameters, or groups of them.
      lr: the largest relative rate.
      beta2_decay: power of the step in the share of a new square.
      eps: added to squares (by default the precision of the dtype), and the least size.
      d: largest root of the mean square of a step.
      weight_decay: factor of the parameters that is subtracted, times the rate.
      foreach: accepted for torch's sake.
      maximize: whether to ascend.

    Reference: Shazeer & Stern, Adafactor, ICML 2018.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and math.prod(lr.shape) != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not isinstance(lr, Tensor) and lr < 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if beta2_decay > 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and eps[0] < 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if eps[1] < 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if d < 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, options(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        least, smallest = group["eps"]
        for p, value, grad in with_gradients(group):
            dtype = value.dtype
            eps = float(np.finfo(dtype).eps) if least is None else least
            lr = number(group["lr"], dtype)
            state = self.state[p]
            shape = shape_of(grad)
            if not state:
                begin(state, value, *(["variance"] if len(shape) <= 1 else []))
                if len(shape) > 1:
                    state["row_var"] = torch_tensor(np.zeros((*shape[:-1], 1), dtype))
                    state["col_var"] = torch_tensor(np.zeros((*shape[:-2], 1, shape[-1]), dtype))
            step = next_step(state)
            share = like(power(step, group["beta2_decay"]), dtype)
            rate = 1 / root(step)
            rate = ew.minimum(rate, lr) if isinstance(rate, Tracer) else min(lr, rate)
            rate = ew.maximum(_root_mean_square(value), smallest) * like(rate, dtype)
            if group["weight_decay"]:
                value = value * (1 - lr * group["weight_decay"])
            spread = self._spread(state, grad, share, eps)
            change = grad / ew.sqrt(ew.maximum(spread, eps * eps))
            change = change / ew.maximum(_root_mean_square(change) / group["d"], 1.0)
            assign("adafactor_step_", p, value - rate * change)

    def _spread(
        self, state: dict[str, Any], grad: Array, share: Array | complex, eps: float
    ) -> Any:
        """The mean square of each element, as far as the state tells."""
        shape = shape_of(grad)
        square = grad * grad
        if len(shape) <= 1:
            return moved("adafactor_step_", state["variance"], square, share)
        parts = []
        for name, axis in (("row_var", len(shape) - 1), ("col_var", len(shape) - 2)):
            mean = structural.reduce_sum(square, (axis,)) / float(shape[axis])
            mean = structural.reshape(mean, state[name].shape)
            parts.append(moved("adafactor_step_", state[name], mean, share))
        rows, columns = parts
        mean = structural.reduce_sum(rows, (len(shape) - 2,)) / float(shape[-2])
        mean = structural.reshape(mean, (*shape[:-2], 1, 1))
        return rows * columns / ew.maximum(mean, eps)
