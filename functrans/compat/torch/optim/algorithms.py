"""First-order algorithms: ``SGD``, ``Adam``, ``AdamW``, ``RMSprop``, ``Adagrad`` and others.

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.optim.optimizer import (
    Optimizer,
    check_positive,
    number,
    scalar,
    with_gradients,
)
from functrans.compat.torch.values import assign, value_of
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, sign
from functrans.primitives.structural import broadcast_to, cast
from functrans.trace import Tracer


def _zeros_like(x: Any) -> Tensor:
    result = Tensor.of(np.zeros(x.shape, x.dtype))
    result._follows = True
    return result


def _kept(state: dict[str, Any], name: str, p: Any, value: Any) -> None:
    """Store a part of the state, in place where there is one."""
    have = state.get(name)
    if have is None:
        trace = p.__dict__.get("_trace") if isinstance(value, Tracer) else None
        state[name] = Tensor.of(
            value if isinstance(value, Tracer) else np.array(value), None, trace
        )
        state[name]._follows = True
    else:
        assign("optimizer_step_", have, value)


def _next_step(state: dict[str, Any]) -> Any:
    """The number of this step: a Python number, or what stands for it in a traced step."""
    step = state["step"]
    value = value_of(step) + np.float32(1.0)
    assign("add_", step, value)
    if isinstance(value, Tracer):
        return cast(value, np.float64)
    return float(value)


def _power(base: Any, exponent: Any) -> Any:
    return ew.power(base, exponent) if isinstance(exponent, Tracer) else base**exponent


def _root(x: Any) -> Any:
    return ew.sqrt(x) if isinstance(x, Tracer) else math.sqrt(x)


def _like(x: Any, dtype: Any) -> Any:
    """A number that multiplies arrays of a dtype."""
    return cast(x, dtype) if isinstance(x, Tracer) else x


def _filled(number: Any, like: Any) -> Any:
    """An array of one number, shaped like another; traced if the number is."""
    if isinstance(number, Tracer):
        return broadcast_to(cast(number, like.dtype), like.shape)
    return np.full(like.shape, number, like.dtype)


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
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_positive("learning rate", lr)
        check_positive("momentum value", momentum)
        check_positive("weight_decay value", weight_decay)
        _check_differentiable(differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening,
                "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
                "foreach": foreach, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        momentum, decay = group["momentum"], group["weight_decay"]
        rate = group["lr"]
        for p, value, grad in with_gradients(group):
            lr = rate if type(rate) is float else number(rate, value.dtype)
            if decay:
                grad = grad + decay * value
            if momentum:
                state = self.state[p]
                have = state.get("momentum_buffer")
                if have is None:
                    direction = grad
                else:
                    direction = momentum * value_of(have) + (1 - group["dampening"]) * grad
                _kept(state, "momentum_buffer", p, direction)
                grad = grad + momentum * direction if group["nesterov"] else direction
            assign("sgd_step_", p, value - lr * grad)


def _check_differentiable(differentiable: bool) -> None:
    if differentiable:
        raise NotImplementedError(
            "differentiable=True is not supported; write the update with out-of-place operations, "
            "or differentiate through functrans.func.grad"
        )


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
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_positive("learning rate", lr)
        check_positive("epsilon value", eps)
        _check_betas(betas)
        check_positive("weight_decay value", weight_decay)
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "differentiable": differentiable, "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        decay, eps = group["weight_decay"], group["eps"]
        for p, value, grad in with_gradients(group):
            dtype = value.dtype
            lr = number(group["lr"], dtype)
            state = self.state[p]
            if not state:
                state["step"] = scalar(0.0)
                state["exp_avg"] = _zeros_like(value)
                state["exp_avg_sq"] = _zeros_like(value)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = _zeros_like(value)
            step = _next_step(state)
            if decay and group["decoupled_weight_decay"]:
                value = value * (1 - lr * decay)
            elif decay:
                grad = grad + decay * value
            mean = value_of(state["exp_avg"])
            mean = mean + (1 - beta1) * (grad - mean)
            square = beta2 * value_of(state["exp_avg_sq"]) + (1 - beta2) * (grad * grad)
            assign("adam_step_", state["exp_avg"], mean)
            assign("adam_step_", state["exp_avg_sq"], square)
            if group["amsgrad"]:
                square = ew.maximum(value_of(state["max_exp_avg_sq"]), square)
                assign("adam_step_", state["max_exp_avg_sq"], square)
            rate = _like(lr / (1 - _power(beta1, step)), dtype)
            correction = _like(_root(1 - _power(beta2, step)), dtype)
            new = value - rate * (mean / (ew.sqrt(square) / correction + eps))
            assign("adam_step_", p, new)


class AdamW(Adam):
    """``Adam`` with the decay applied to the parameters; arguments as there.

    Reference: Loshchilov & Hutter, Decoupled weight decay regularization, ICLR 2019.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        options["decoupled_weight_decay"] = True
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


def _check_betas(betas: tuple[float, float]) -> None:
    for i, beta in enumerate(betas):
        if not isinstance(beta, Tensor) and not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


class Adamax(Optimizer):
    """``Adam`` with the largest gradient, slowly forgotten, in place of the mean square.

    Reference: Kingma & Ba, Adam, ICLR 2015, section 7.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_positive("learning rate", lr)
        check_positive("epsilon value", eps)
        _check_betas(betas)
        check_positive("weight_decay value", weight_decay)
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
                "capturable": capturable,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        for p, value, grad in with_gradients(group):
            dtype = value.dtype
            state = self.state[p]
            if not state:
                state["step"] = scalar(0.0)
                state["exp_avg"] = _zeros_like(value)
                state["exp_inf"] = _zeros_like(value)
            step = _next_step(state)
            if group["weight_decay"]:
                grad = grad + group["weight_decay"] * value
            mean = value_of(state["exp_avg"])
            mean = mean + (1 - beta1) * (grad - mean)
            largest = ew.maximum(beta2 * value_of(state["exp_inf"]), absolute(grad) + group["eps"])
            assign("adamax_step_", state["exp_avg"], mean)
            assign("adamax_step_", state["exp_inf"], largest)
            rate = _like(number(group["lr"], dtype) / (1 - _power(beta1, step)), dtype)
            assign("adamax_step_", p, value - rate * (mean / largest))


class NAdam(Optimizer):
    """``Adam`` with Nesterov's momentum.

    Reference: Dozat, Incorporating Nesterov momentum into Adam, ICLR workshop 2016.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive("learning rate", lr)
        check_positive("epsilon value", eps)
        _check_betas(betas)
        check_positive("weight_decay value", weight_decay)
        check_positive("momentum_decay value", momentum_decay)
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
                "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        decay, slowing = group["weight_decay"], group["momentum_decay"]
        for p, value, grad in with_gradients(group):
            dtype = value.dtype
            lr = number(group["lr"], dtype)
            state = self.state[p]
            if not state:
                state["step"] = scalar(0.0)
                state["mu_product"] = scalar(1.0)
                state["exp_avg"] = _zeros_like(value)
                state["exp_avg_sq"] = _zeros_like(value)
            step = _next_step(state)
            if decay and group["decoupled_weight_decay"]:
                value = value * (1 - lr * decay)
            elif decay:
                grad = grad + decay * value
            mu = beta1 * (1.0 - 0.5 * _power(0.96, step * slowing))
            mu_next = beta1 * (1.0 - 0.5 * _power(0.96, (step + 1) * slowing))
            kind = state["mu_product"].dtype
            product = value_of(state["mu_product"]) * _like(mu, kind)
            product = product if isinstance(product, Tracer) else kind.type(product)
            assign("nadam_step_", state["mu_product"], product)
            mean = value_of(state["exp_avg"])
            mean = mean + (1 - beta1) * (grad - mean)
            square = beta2 * value_of(state["exp_avg_sq"]) + (1 - beta2) * (grad * grad)
            assign("nadam_step_", state["exp_avg"], mean)
            assign("nadam_step_", state["exp_avg_sq"], square)
            correction = _like(1 - _power(beta2, step), dtype)
            root = ew.sqrt(square / correction) + group["eps"]
            wide: Any = product if isinstance(product, Tracer) else float(product)
            of_grad = _like(lr * (1.0 - mu) / (1.0 - wide), dtype)
            of_mean = _like(lr * mu_next / (1.0 - wide * mu_next), dtype)
            assign("nadam_step_", p, value - of_grad * (grad / root) - of_mean * (mean / root))


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
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive("learning rate", lr)
        check_positive("epsilon value", eps)
        check_positive("momentum value", momentum)
        check_positive("weight_decay value", weight_decay)
        check_positive("alpha value", alpha)
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
                "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        alpha, momentum = group["alpha"], group["momentum"]
        for p, value, grad in with_gradients(group):
            lr = number(group["lr"], value.dtype)
            state = self.state[p]
            if not state:
                state["step"] = scalar(0.0)
                state["square_avg"] = _zeros_like(value)
                if momentum > 0:
                    state["momentum_buffer"] = _zeros_like(value)
                if group["centered"]:
                    state["grad_avg"] = _zeros_like(value)
            _next_step(state)
            if group["weight_decay"]:
                grad = grad + group["weight_decay"] * value
            square = alpha * value_of(state["square_avg"]) + (1 - alpha) * (grad * grad)
            assign("rmsprop_step_", state["square_avg"], square)
            if group["centered"]:
                mean = value_of(state["grad_avg"])
                mean = mean + (1 - alpha) * (grad - mean)
                assign("rmsprop_step_", state["grad_avg"], mean)
                root = ew.sqrt(square - mean * mean) + group["eps"]
            else:
                root = ew.sqrt(square) + group["eps"]
            direction = grad / root
            if momentum > 0:
                direction = momentum * value_of(state["momentum_buffer"]) + direction
                assign("rmsprop_step_", state["momentum_buffer"], direction)
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
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_positive("learning rate", lr)
        check_positive("lr_decay value", lr_decay)
        check_positive("weight_decay value", weight_decay)
        check_positive("initial_accumulator_value value", initial_accumulator_value)
        check_positive("epsilon value", eps)
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = scalar(0.0)
                start = np.full(p.shape, group["initial_accumulator_value"], p.dtype)
                state["sum"] = Tensor.of(start)

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        for p, value, grad in with_gradients(group):
            dtype = value.dtype
            state = self.state[p]
            step = _next_step(state)
            if group["weight_decay"]:
                grad = grad + group["weight_decay"] * value
            rate = _like(number(group["lr"], dtype) / (1 + (step - 1) * group["lr_decay"]), dtype)
            total = value_of(state["sum"]) + grad * grad
            assign("adagrad_step_", state["sum"], total)
            assign("adagrad_step_", p, value - rate * (grad / (ew.sqrt(total) + group["eps"])))


class Adadelta(Optimizer):
    """Steps of the gradient times the ratio of two roots of mean squares.

    Reference: Zeiler, ADADELTA, arXiv 1212.5701 (2012).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive("learning rate", lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_positive("epsilon value", eps)
        check_positive("weight_decay value", weight_decay)
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                "maximize": maximize, "capturable": capturable, "foreach": foreach,
                "differentiable": differentiable,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        rho, eps = group["rho"], group["eps"]
        for p, value, grad in with_gradients(group):
            lr = number(group["lr"], value.dtype)
            state = self.state[p]
            if not state:
                state["step"] = scalar(0.0)
                state["square_avg"] = _zeros_like(value)
                state["acc_delta"] = _zeros_like(value)
            _next_step(state)
            if group["weight_decay"]:
                grad = grad + group["weight_decay"] * value
            square = rho * value_of(state["square_avg"]) + (1 - rho) * (grad * grad)
            moved = value_of(state["acc_delta"])
            delta = ew.sqrt(moved + eps) / ew.sqrt(square + eps) * grad
            assign("adadelta_step_", state["square_avg"], square)
            assign("adadelta_step_", state["acc_delta"], rho * moved + (1 - rho) * (delta * delta))
            assign("adadelta_step_", p, value - lr * delta)


class Rprop(Optimizer):
    """Steps of a size of their own for each element, which follows the sign of the gradient.

    Reference: Riedmiller & Braun, A direct adaptive method, ICNN 1993.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive("learning rate", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        _check_differentiable(differentiable)
        super().__init__(
            params,
            {
                "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def update(self, group: dict[str, Any]) -> None:
        """One step of a group."""
        smaller, larger = group["etas"]
        low, high = group["step_sizes"]
        for p, value, grad in with_gradients(group):
            state = self.state[p]
            if not state:
                state["step"] = scalar(0.0)
                state["prev"] = _zeros_like(value)
                rate = number(group["lr"], value.dtype)
                _kept(state, "step_size", p, _filled(rate, value))
            _next_step(state)
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
