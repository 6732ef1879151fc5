"""Schedules of the learning rate.

Here: ``LRScheduler`` and its usual kinds. Not here: those that rise and fall
(``optim.cyclic_schedules``), optimizers. ``optim.lr_scheduler`` has all names.

A schedule sets the rate of each group of its optimizer when it is made and at each ``step()``. Most
of them change the rate that is there, so that what the user sets in between counts.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.optim``, for the behaviour.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from functrans.autograd.modes import modes
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.optim.optimizer import Optimizer
from functrans.compat.torch.values import assign
from functrans.core.boundary import warn

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def _set_rate(group: dict[str, Any], value: Any) -> None:
    rate = group["lr"]
    if isinstance(rate, Tensor):
        assign("fill_", rate, np.asarray(float(value), rate.dtype))
    else:
        group["lr"] = value


def _check_optimizer(optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class Schedule:
    """What a jitted step depends on where it is declared, or where the step uses it."""

    counts_where_used = True
    optimizer: Optimizer
    _last_lr: list[Any]

    def state_of_steps(self) -> dict[str, Any]:
        """What a jitted step depends on, and may change: all attributes."""
        return self.__dict__

    def _meet(self) -> None:
        """Tell a step that is being traced that it uses the schedule."""
        if modes.session is not None:
            modes.session.meet(self)

    def _now(self) -> list[float]:
        """The rates of the groups."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """Rates that were set last."""
        return self._last_lr


class LRScheduler(Schedule):
    """The base of all schedules.

    Args:
      optimizer: whose groups are changed.
      last_epoch: number of the last step when training is resumed; -1 at the beginning.

    Attributes:
      base_lrs: rates of the groups at the beginning.
      last_epoch: number of the last step.
    """

    _schedulers: Sequence[Any] = ()

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.item() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in "
                    f"param_groups[{i}] when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = []
        self._step_count = 0
        self.step()

    def rates(self) -> list[float]:
        """Rates at the present step; subclasses define it, or ``get_lr`` as torch's do.

        Raises:
          NotImplementedError: they did not.
        """
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """Rates at the present step."""
        return self.rates()

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step.

        Args:
          epoch: number of the step to go to, in place of the next one.
        """
        self._meet()
        self._note_step()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            _set_rate(group, rate)
        self._last_lr = self._now()

    def _note_step(self) -> None:
        """Count the step; warn if it is the user's first one and the optimizer made none."""
        step = type(self.optimizer).step
        is_noted = step.__module__.startswith(__package__)  # a user's own step is not
        if self._step_count == 1 and is_noted and not self.optimizer.past.has_stepped:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                "the first value of the learning rate schedule."
            )
        self._step_count += 1

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of schedules among them, their own."""
        state = {key: value for key, value in self.__dict__.items() if key != "optimizer"}
        if "_schedulers" in state:
            state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers", ()), strict=True):
            scheduler.load_state_dict(own)
        self.__dict__.update(state)


_Factor = Callable[[int], float]


def _per_group(optimizer: Optimizer, value: object, what: str) -> list[Any]:
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(f"Expected {n} {what}, but got {len(value)}")
    return list(value)


class LambdaLR(LRScheduler):
    """The first rate times a function of the step."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas: list[_Factor] = _per_group(optimizer, lr_lambda, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def rates(self) -> list[float]:
        """Rates at the present step."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; in place of functions what they hold, or ``None``."""
        held = [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": held}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        for f, held in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            vars(f).update(held or {})
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


class MultiplicativeLR(LambdaLR):
    """The last rate times a function of the step."""

    def rates(self) -> list[float]:
        """Rates at the present step."""
        if self.last_epoch <= 0:
            return self._now()
        pairs = zip(self._now(), self.lr_lambdas, strict=True)
        return [rate * factor(self.last_epoch) for rate, factor in pairs]


class _Scaled(LRScheduler):
    """The last rates times a factor."""

    def _factor(self, n: int) -> float:
        """The factor of step ``n``."""
        raise NotImplementedError  # each schedule has its own

    def rates(self) -> list[float]:
        """Rates at the present step."""
        factor = self._factor(self.last_epoch)
        return [rate * factor for rate in self._now()]


class StepLR(_Scaled):
    """A factor every so many steps.

    Args:
      optimizer: whose groups are changed.
      step_size: number of steps.
      gamma: the factor.
      last_epoch: as in ``LRScheduler``.

    Example:
      >>> from functrans.autograd import tensor
      >>> from functrans.compat.torch.optim import SGD
      >>> optimizer = SGD([tensor([1.0], requires_grad=True)], lr=1.0)
      >>> schedule = StepLR(optimizer, 1, gamma=0.5)
      >>> optimizer.step()
      >>> schedule.step()
      >>> schedule.get_last_lr()
      [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return 1.0 if n == 0 or n % self.step_size else self.gamma


class MultiStepLR(_Scaled):
    """A factor at given steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = list(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return float(self.gamma ** self.milestones.count(n))


class ConstantLR(_Scaled):
    """A smaller rate for the first steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        if n == 0:
            return self.factor
        return 1.0 / self.factor if n == self.total_iters else 1.0


class LinearLR(_Scaled):
    """Rates on a straight line over the first steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        if n == 0:
            return self.start_factor
        if n > self.total_iters:
            return 1.0
        span = self.end_factor - self.start_factor
        return 1.0 + span / (self.total_iters * self.start_factor + (n - 1) * span)


class ExponentialLR(_Scaled):
    """A factor every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return 1.0 if n == 0 else self.gamma


class PolynomialLR(_Scaled):
    """Rates that fall to 0 as a power of the remaining steps."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        if n == 0 or n > self.total_iters:
            return 1.0
        ratio = (1.0 - n / self.total_iters) / (1.0 - (n - 1) / self.total_iters)
        return float(ratio**self.power)


class CosineAnnealingLR(LRScheduler):
    """Rates on half a cosine wave.

    Reference: Loshchilov & Hutter, SGDR, ICLR 2017.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rates(self) -> list[float]:
        """Rates at the present step."""
        n, low = self.last_epoch, self.eta_min
        if n == 0:
            return self._now()
        if (n - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self._now(), self.base_lrs, strict=True)
            return [rate + (base - low) * rise for rate, base in pairs]
        ratio = (1 + math.cos(math.pi * n / self.T_max)) / (
            1 + math.cos(math.pi * (n - 1) / self.T_max)
        )
        return [ratio * (rate - low) + low for rate in self._now()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates on half a cosine wave, again and again.

    Reference: Loshchilov & Hutter, SGDR, ICLR 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def rates(self) -> list[float]:
        """Rates at the present step."""
        start, length = 0, self.T_0
        while self.last_epoch >= start + length:
            start, length = start + length, length * self.T_mult
        self.T_cur, self.T_i = self.last_epoch - start, length
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """Schedules one after the other.

    Args:
      optimizer: that of all of them.
      schedulers: the schedules.
      milestones: steps at which the next one begins.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._step_count = 2  # not the user's first step
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]  # as torch
        """Go on by one step."""
        self._meet()
        self.last_epoch += 1
        i = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            for group, rate in zip(self.optimizer.param_groups, scheduler.base_lrs, strict=True):
                _set_rate(group, rate)  # it begins from the initial rate
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """A factor when a quantity no longer gets better.

    Args:
      optimizer: whose groups are changed.
      mode: ``"min"`` or ``"max"``: which way is better.
      factor: the factor.
      patience: how many steps without a better value are allowed.
      threshold: how much better counts.
      threshold_mode: ``"rel"`` or ``"abs"``.
      cooldown: steps after a change in which nothing is counted.
      min_lr: lower bound, for all groups or for each.
      eps: smaller changes are left out.

    Raises:
      ValueError: a word is not known, or the factor is not below 1.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lrs = _per_group(optimizer, min_lr, "min_lrs")
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self.last_epoch = 0
        self._last_lr = self._now()

    def is_better(self, a: float, best: float) -> bool:
        """Whether a value is better than the best so far."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            limit = best * (1.0 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return a > limit if self.mode == "max" else a < limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # as torch
        """Go on by one step with a value of the quantity."""
        self._meet()
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = float(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    _set_rate(group, new)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._now()
