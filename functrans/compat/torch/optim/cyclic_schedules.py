"""Schedules that rise and fall, and several at once.

Not here: the others (``optim.lr_scheduler``, which has all names).

Layer: ``compat``. Reference: Smith, Cyclical learning rates, WACV 2017;
Smith & Topin, Super-convergence, arXiv 1708.07120 (2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functrans.compat.torch.optim.optimizer import Optimizer
from functrans.compat.torch.optim.schedules import (
    LRScheduler,
    _check_optimizer,
    _per_group,
    _set_rate,
)

__all__ = ["ChainedScheduler", "CyclicLR", "OneCycleLR"]


def _momentum_name(optimizer: Optimizer) -> str:
    """Which option of an optimizer is its momentum."""
    for name in ("betas", "momentum"):
        if name in optimizer.defaults:
            return name
    raise ValueError(
        "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
    )


def _set_momentum(group: dict[str, Any], name: str, value: float) -> None:
    if name == "betas":
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Rates that rise and fall on straight lines between two bounds.

    Args:
      optimizer: whose groups are changed.
      base_lr: lower bound, for all groups or for each.
      max_lr: upper bound, likewise.
      step_size_up: steps from the lower to the upper one.
      step_size_down: steps back, by default as many.
      mode: ``"triangular"``, ``"triangular2"`` (half as high each time) or ``"exp_range"``.
      gamma: factor per step, for ``"exp_range"``.
      scale_fn: height as a function of ``scale_mode``, in place of ``mode``.
      scale_mode: ``"cycle"`` or ``"iterations"``.
      cycle_momentum: whether the momentum falls while the rate rises.
      base_momentum: its lower bound.
      max_momentum: its upper bound.
      last_epoch: as in ``LRScheduler``.

    Raises:
      ValueError: the mode is not known, or there is no momentum.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[Any], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        _check_optimizer(optimizer)
        name = _momentum_name(optimizer) if cycle_momentum else ""
        bases = _per_group(optimizer, base_lr, "base_lrs")
        self.max_lrs = _per_group(optimizer, max_lr, "max_lrs")
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = float(step_size_up) + down
        self.step_ratio = float(step_size_up) / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self.momentum_name = name
        lows: list[Any] = []
        highs: list[Any] = []
        if cycle_momentum:
            lows = _per_group(optimizer, base_momentum, "base_momentum")
            highs = _per_group(optimizer, max_momentum, "max_momentum")
        self.base_momentums, self.max_momentums = lows, highs
        if last_epoch == -1:
            for group, base in zip(optimizer.param_groups, bases, strict=True):
                _set_rate(group, base)
            for group, low, high in zip(optimizer.param_groups, lows, highs, strict=False):
                _set_momentum(group, name, high)
                group["base_momentum"], group["max_momentum"] = low, high
        self._bases = bases
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def _height(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (x - 1))
        return float(self.gamma**x)

    def rates(self) -> list[float]:
        """Rates at the present step; sets the momentum, too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self._height(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                _set_momentum(group, self.momentum_name, high - (high - low) * share * height)
        return [
            base + (top - base) * share * height
            for base, top in zip(self._bases, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer and the function of the height."""
        state = super().state_dict()
        state.pop("scale_fn")
        return state


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _straight(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


class OneCycleLR(LRScheduler):
    """Rates that rise once and fall to nearly nothing.

    Args:
      optimizer: whose groups are changed.
      max_lr: the highest rate, for all groups or for each.
      total_steps: number of steps; or:
      epochs: number of epochs, and
      steps_per_epoch: number of steps in each.
      pct_start: share of the steps in which the rate rises.
      anneal_strategy: ``"cos"`` or ``"linear"``.
      cycle_momentum: whether the momentum falls while the rate rises.
      base_momentum: its lower bound.
      max_momentum: its upper bound.
      div_factor: ``max_lr`` over the first rate.
      final_div_factor: the first rate over the last one.
      three_phase: whether the rate falls as it rose before it falls to the last one.
      last_epoch: as in ``LRScheduler``.

    Raises:
      ValueError: the number of steps is missing, or an option is out of range.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        name = _momentum_name(optimizer) if cycle_momentum else ""
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.momentum_name = name
        turn = float(pct_start * self.total_steps) - 1
        end = self.total_steps - 1
        middle = "initial_lr" if three_phase else "min_lr"
        fallen = float(2 * pct_start * self.total_steps) - 2 if three_phase else end
        self.phases: list[tuple[float, str, str, str, str]] = [
            (turn, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
            (fallen, "max_lr", middle, "base_momentum", "max_momentum"),
        ]
        if three_phase:
            self.phases.append((end, middle, "min_lr", "max_momentum", "max_momentum"))
        tops = _per_group(optimizer, max_lr, "max_lr")
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum and last_epoch == -1:
            lows = _per_group(optimizer, base_momentum, "base_momentum")
            highs = _per_group(optimizer, max_momentum, "max_momentum")
            for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
                _set_momentum(group, name, high)
                group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def rates(self) -> list[float]:
        """Rates at the present step; sets the momentum, too.

        Raises:
          ValueError: there are no more steps.
        """
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"Tried to step {now} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self.phases:
            if now <= phase[0] or phase is self.phases[-1]:
                break
            start = phase[0]
        end, low, high, first, second = phase
        share = (now - start) / (end - start)
        between = _cosine if self.anneal_strategy == "cos" else _straight
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                value = between(group[first], group[second], share)
                _set_momentum(group, self.momentum_name, value)
        return [between(group[low], group[high], share) for group in groups]


def _total_steps(total: object, epochs: object, steps: Any) -> int:
    """The number of steps."""
    if total is None and (epochs is None or steps is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total} if total is not None else {
        "epochs": epochs, "steps_per_epoch": steps
    }  # fmt: skip
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


class ChainedScheduler(LRScheduler):
    """Schedules that change the same rates one after the other in each step.

    Args:
      schedulers: the schedules.
      optimizer: that of all of them, by default that of the first.

    Raises:
      ValueError: there are none, or they are of several optimizers.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"ChainedScheduler at index {i} should have `optimizer` as its attribute."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    "ChainedScheduler expects all schedulers to belong to the same optimizer, but "
                    f"got scheduler {type(scheduler).__name__} at index {i} has "
                    f"{scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = self._now()

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step of each schedule."""
        self._meet()
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now()
