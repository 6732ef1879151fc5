"""First-order algorithms: ``SGD``, ``Adam``, ``AdamW``, ``RMSprop``, ``Adagrad`` and others.

Not here: what their updates are made of (``optim.updates``).

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
    assigned,
    begin,
    blended,
    check_positive,
    checked,
    decayed,
    filled,
    is_nonzero,
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
from functrans.primitives.complex_parts import absolute, sign

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam",
    "RMSprop", "Rprop",
]  # fmt: skip


class SGD(Optimizer):
    """Gradient descent, with momentum if so asked for.

    Args:
      params: parameters, or groups of them.
      lr: the learning rate; a number or a tensor.
      momentum: share of the last direction that is kept.
      dampening: share of the gradient that is left out of the direction.
      weight_decay: factor of the parameters that is added to their gradients.
      nesterov: whether the gradient is added to the direction once more.
      maximize: whether to ascend.
      foreach: accepted for torch's sake, as are ``differentiable`` and ``fused``.
      differentiable: must be false.
      fused: accepted for torch's sake.

    Raises:
      ValueError: an option is out of range.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([4.0], requires_grad=True)
      >>> optimizer = SGD([x], lr=0.25)
      >>> (x * x).sum().backward()
      >>> optimizer.step()
      >>> x
      tensor([2.], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: object = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        momentum, rate = group["momentum"], group["lr"]
        for p, value, grad in with_gradients(group):
            lr = rate if type(rate) is float else number(rate, value.dtype)
            value, grad = decayed(group, value, grad)
            if is_nonzero(momentum):
                state = self.state[p]
                have = state.get("momentum_buffer")
                if have is None:
                    direction = grad
                else:
                    direction = momentum * value_of(have) + (1 - group["dampening"]) * grad
                kept(state, "momentum_buffer", p, direction)
                grad = grad + momentum * direction if group["nesterov"] else direction
            assign("sgd_step_", p, value - lr * grad)


class Adam(Optimizer):
    """Steps of the mean gradient divided by the root of the mean square.

    Args:
      params: parameters, or groups of them.
      lr: the learning rate; a number or a tensor.
      betas: how much of the two means is kept in each step.
      eps: added to the root.
      weight_decay: factor of the parameters that is added to their gradients.
      amsgrad: whether the largest mean square so far counts.
      foreach: accepted for torch's sake, as are ``capturable``, ``differentiable`` and ``fused``.
      maximize: whether to ascend.
      capturable: accepted for torch's sake.
      differentiable: must be false.
      fused: accepted for torch's sake.
      decoupled_weight_decay: whether the decay is applied to the parameters, as in ``AdamW``.

    Raises:
      ValueError: an option is out of range.

    Reference: Kingma & Ba, Adam, ICLR 2015; Reddi et al., On the convergence of Adam, ICLR 2018.
    """

    def __init__(
        self, params: Any, lr: object = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        (beta1, beta2), eps = group["betas"], group["eps"]
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]
        for p, value, grad, state, step, lr in started(self, group, *names):
            dtype = value.dtype
            mean = moved("adam_step_", state["exp_avg"], grad, 1 - beta1)
            square = blended("adam_step_", state["exp_avg_sq"], grad * grad, beta2)
            if group["amsgrad"]:
                largest = state["max_exp_avg_sq"]
                square = assigned("adam_step_", largest, ew.maximum(value_of(largest), square))
            rate = like(lr / (1 - power(beta1, step)), dtype)
            correction = like(root(1 - power(beta2, step)), dtype)
            new = value - rate * (mean / (ew.sqrt(square) / correction + eps))
            assign("adam_step_", p, new)


class AdamW(Adam):
    """``Adam`` with the decay applied to the parameters; arguments as there.

    Reference: Loshchilov & Hutter, Decoupled weight decay regularization, ICLR 2019.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        options["decoupled_weight_decay"] = True
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class Adamax(Optimizer):
    """``Adam`` with the largest gradient, slowly forgotten, in place of the mean square.

    Reference: Kingma & Ba, Adam, ICLR 2015, section 7.
    """

    def __init__(
        self, params: Any, lr: object = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        for p, value, grad, state, step, lr in started(self, group, "exp_avg", "exp_inf"):
            mean = moved("adamax_step_", state["exp_avg"], grad, 1 - beta1)
            largest = ew.maximum(beta2 * value_of(state["exp_inf"]), absolute(grad) + group["eps"])
            assign("adamax_step_", state["exp_inf"], largest)
            rate = like(lr / (1 - power(beta1, step)), value.dtype)
            assign("adamax_step_", p, value - rate * (mean / largest))


class NAdam(Optimizer):
    """``Adam`` with Nesterov's momentum.

    Reference: Dozat, Incorporating Nesterov momentum into Adam, ICLR workshop 2016.
    """

    def __init__(
        self, params: Any, lr: object = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        slowing = group["momentum_decay"]
        for p, value, grad, state, step, lr in started(self, group, "exp_avg", "exp_avg_sq"):
            dtype = value.dtype
            if "mu_product" not in state:
                state["mu_product"] = scalar(1.0)
            mu = beta1 * (1.0 - 0.5 * power(0.96, step * slowing))
            mu_next = beta1 * (1.0 - 0.5 * power(0.96, (step + 1) * slowing))
            kind = state["mu_product"].dtype
            product = value_of(state["mu_product"]) * like(mu, kind)
            product = product if isinstance(product, Tracer) else kind.type(product)
            assign("nadam_step_", state["mu_product"], product)
            mean = moved("nadam_step_", state["exp_avg"], grad, 1 - beta1)
            square = blended("nadam_step_", state["exp_avg_sq"], grad * grad, beta2)
            correction = like(1 - power(beta2, step), dtype)
            size = ew.sqrt(square / correction) + group["eps"]
            wide: Any = product if isinstance(product, Tracer) else float(product)
            of_grad = like(lr * (1.0 - mu) / (1.0 - wide), dtype)
            of_mean = like(lr * mu_next / (1.0 - wide * mu_next), dtype)
            assign("nadam_step_", p, value - of_grad * (grad / size) - of_mean * (mean / size))


class RMSprop(Optimizer):
    """Steps of the gradient divided by the root of the mean square.

    Args:
      params: parameters, or groups of them.
      lr: the learning rate; a number or a tensor.
      alpha: how much of the mean square is kept in each step.
      eps: added to the root.
      weight_decay: factor of the parameters that is added to their gradients.
      momentum: share of the last direction that is kept.
      centered: whether the square of the mean is subtracted.
      capturable: accepted for torch's sake, as are ``foreach`` and ``differentiable``.
      foreach: accepted for torch's sake.
      maximize: whether to ascend.
      differentiable: must be false.
    """

    def __init__(
        self, params: Any, lr: object = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_positive("alpha value", alpha)
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        alpha, momentum = group["alpha"], group["momentum"]
        has_momentum = is_nonzero(momentum)
        names = ["square_avg", *(["momentum_buffer"] if has_momentum else [])]
        names += ["grad_avg"] if group["centered"] else []
        for p, value, grad, state, _, lr in started(self, group, *names):
            square = blended("rmsprop_step_", state["square_avg"], grad * grad, alpha)
            if group["centered"]:
                mean = moved("rmsprop_step_", state["grad_avg"], grad, 1 - alpha)
                square = square - mean * mean
            direction = grad / (ew.sqrt(square) + group["eps"])
            if has_momentum:
                have = state["momentum_buffer"]
                direction = assigned("rmsprop_step_", have, momentum * value_of(have) + direction)
            assign("rmsprop_step_", p, value - lr * direction)


class Adagrad(Optimizer):
    """Steps of the gradient divided by the root of the sum of all squares so far.

    Args:
      params: parameters, or groups of them.
      lr: the learning rate; a number or a tensor.
      lr_decay: how fast it falls.
      weight_decay: factor of the parameters that is added to their gradients.
      initial_accumulator_value: where the sums begin.
      eps: added to the root.
      foreach: accepted for torch's sake, as are ``differentiable`` and ``fused``.
      maximize: whether to ascend.
      differentiable: must be false.
      fused: accepted for torch's sake.

    Reference: Duchi et al., Adaptive subgradient methods, JMLR 12 (2011).
    """

    def __init__(
        self, params: Any, lr: object = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = scalar(0.0)
                start = np.full(p.shape, group["initial_accumulator_value"], p.dtype)
                state["sum"] = torch_tensor(start)

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        for p, value, grad, state, step, lr in started(self, group):
            rate = like(lr / (1 + (step - 1) * group["lr_decay"]), value.dtype)
            total = assigned("adagrad_step_", state["sum"], value_of(state["sum"]) + grad * grad)
            assign("adagrad_step_", p, value - rate * (grad / (ew.sqrt(total) + group["eps"])))


class Adadelta(Optimizer):
    """Steps of the gradient times the ratio of two roots of mean squares.

    Reference: Zeiler, ADADELTA, arXiv 1212.5701 (2012).
    """

    def __init__(
        self, params: Any, lr: object = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        rho, eps = group["rho"], group["eps"]
        for p, value, grad, state, _, lr in started(self, group, "square_avg", "acc_delta"):
            square = blended("adadelta_step_", state["square_avg"], grad * grad, rho)
            before = value_of(state["acc_delta"])
            delta = ew.sqrt(before + eps) / ew.sqrt(square + eps) * grad
            blended("adadelta_step_", state["acc_delta"], delta * delta, rho)
            assign("adadelta_step_", p, value - lr * delta)


class Rprop(Optimizer):
    """Steps of a size of their own for each element, which follows the sign of the gradient.

    Reference: Riedmiller & Braun, A direct adaptive method, ICNN 1993.
    """

    def __init__(
        self, params: Any, lr: object = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, checked(locals()))

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        smaller, larger = group["etas"]
        low, high = group["step_sizes"]
        for p, value, grad in with_gradients(group):
            state = self.state[p]
            if not state:
                begin(state, value, "prev")
                rate = number(group["lr"], value.dtype)
                kept(state, "step_size", p, filled(rate, value))
            next_step(state)
            agreement = grad * value_of(state["prev"])
            one = value.dtype.type(1.0)
            factor = ew.where(
                agreement > 0,
                value.dtype.type(larger),
                ew.where(agreement < 0, value.dtype.type(smaller), one),
            )
            size = ew.clip(value_of(state["step_size"]) * factor, low, high)
            grad = ew.where(agreement < 0, value.dtype.type(0.0), grad)
            assign("rprop_step_", state["step_size"], size)
            assign("rprop_step_", state["prev"], grad)
            assign("rprop_step_", p, value - sign(grad) * size)


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
