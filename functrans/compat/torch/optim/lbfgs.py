"""``LBFGS``: a quasi-Newton method with a line search.

Here: the algorithm on vectors of all parameters. Not here: first-order algorithms
(``optim.algorithms``). It decides by values, so that ``jit`` cannot trace a step of it.

Layer: ``compat``. Reference: Nocedal & Wright, Numerical Optimization, 2nd ed. (2006), algorithms
3.5, 3.6 and 7.5; Schmidt, minFunc (2005), for the interpolation and the constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.modes import enable_grad, no_grad
from functrans.autograd.tensors import plain_of
from functrans.compat.torch.optim.optimizer import Optimizer
from functrans.compat.torch.optim.updates import options
from functrans.compat.torch.values import assign
from functrans.core.values import Array
from functrans.records import dataclass

_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 25


@dataclass(slots=True)
class _Trial:
    """A step length and what was found there.

    Attributes:
      t: step length.
      f: loss.
      grad: gradient.
      slope: of the loss along the direction.
    """

    t: float
    f: float
    grad: Any
    slope: float


def _interpolated(a: _Trial, b: _Trial, bounds: tuple[float, float] | None = None) -> float:
    """Minimizer of the cubic through two trials, within bounds."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    left, right = (a, b) if a.t <= b.t else (b, a)
    best = right.t - (right.t - left.t) * (
        (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    )
    return min(max(best, low), high)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Any]],
    start: _Trial,
    t: float,
    direction: Any,
    tolerance: float,
) -> tuple[_Trial, int]:
    """A step length with enough decrease and a flat enough slope.

    Args:
      evaluate: loss and gradient at a step length.
      start: at step length 0.
      t: first trial.
      direction: of the search.
      tolerance: the bracket is small enough when it moves no parameter by more.

    Returns:
      The trial that was chosen, and the number of evaluations.
    """
    size = float(np.abs(direction).max())
    n = 0

    def tried(t: float) -> _Trial:
        nonlocal n
        n += 1
        f, grad = evaluate(t)
        return _Trial(t, f, grad, float(grad.dot(direction)))

    def too_high(trial: _Trial) -> bool:
        return trial.f > start.f + _DECREASE * trial.t * start.slope

    def flat(trial: _Trial) -> bool:
        return abs(trial.slope) <= -_CURVATURE * start.slope

    now, before = tried(t), start
    bracket: list[_Trial] = []
    rounds = 0
    while rounds < _MAX_TRIALS:
        if too_high(now) or (rounds > 1 and now.f >= before.f):
            bracket = [before, now]
            break
        if flat(now):
            return now, n
        if now.slope >= 0:
            bracket = [before, now]
            break
        bounds = now.t + 0.01 * (now.t - before.t), now.t * 10
        before, now = now, tried(_interpolated(before, now, bounds))
        rounds += 1
    if rounds == _MAX_TRIALS:
        bracket = [start, now]
    return _zoomed(bracket, tried, too_high, flat, rounds, size, tolerance), n


def _zoomed(
    bracket: list[_Trial], tried: Callable[[float], _Trial], too_high: Callable[[_Trial], bool],
    flat: Callable[[_Trial], bool], rounds: int, size: float, tolerance: float,
) -> _Trial:  # fmt: skip
    """Shrink a bracket until a trial in it will do."""
    is_stuck = False
    low = 0 if bracket[0].f <= bracket[1].f else 1
    while rounds < _MAX_TRIALS:
        first, last = sorted((bracket[0].t, bracket[1].t))
        if (last - first) * size < tolerance:
            break
        t = _interpolated(bracket[0], bracket[1])
        margin = 0.1 * (last - first)
        if min(last - t, t - first) < margin:
            if is_stuck or t >= last or t <= first:
                t = last - margin if abs(t - last) < abs(t - first) else first + margin
                is_stuck = False
            else:
                is_stuck = True
        else:
            is_stuck = False
        now = tried(t)
        rounds += 1
        if too_high(now) or now.f >= bracket[low].f:
            bracket[1 - low] = now
            low = 0 if bracket[0].f <= bracket[1].f else 1
            continue
        is_done = flat(now)
        if not is_done and now.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = now
        if is_done:
            break
    return bracket[low]


def _number(loss: Any) -> float:
    """The loss that a closure returned."""
    return float(plain_of(loss))


class LBFGS(Optimizer):
    """A quasi-Newton method that remembers the last steps.

    Args:
      params: parameters; one group only.
      lr: the first step length of each iteration.
      max_iter: iterations per step.
      max_eval: evaluations per step, by default 5/4 of ``max_iter``.
      tolerance_grad: ends where no element of the gradient is larger.
      tolerance_change: ends where loss and parameters change less.
      history_size: how many steps are remembered.
      line_search_fn: ``"strong_wolfe"`` or ``None``.

    Raises:
      ValueError: there are several groups.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([3.0], requires_grad=True)
      >>> optimizer = LBFGS([x], line_search_fn="strong_wolfe")
      >>> def closure():
      ...     optimizer.zero_grad()
      ...     loss = ((x - 1) * (x - 1)).sum()
      ...     loss.backward()
      ...     return loss
      >>> _ = optimizer.step(closure)
      >>> x
      tensor([1.], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: object = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, options(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _parameters(self) -> list[Any]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Array:
        parts = [
            np.zeros(p.numel(), p.dtype) if p.grad is None else np.ravel(p.grad._memory())
            for p in self._parameters()
        ]
        return np.concatenate(parts)

    def _move(self, starts: list[Any], t: float, direction: Array) -> None:
        """Put the parameters at a step from where they were."""
        offset = 0
        with no_grad():
            for p, start in zip(self._parameters(), starts, strict=True):
                n = start.size
                part = direction[offset : offset + n].reshape(start.shape)
                assign("lbfgs_step_", p, start + t * part)
                offset += n

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate.

        Args:
          closure: computes the loss and its gradients.

        Returns:
          The loss at the start.

        Raises:
          TypeError: there is no closure.
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        self.past.has_stepped = True
        if self._pre_hooks:
            self._call_pre_hooks(closure)
        with enable_grad():
            first = closure()
        self._iterate(closure, _number(first))
        if self._post_hooks:
            self._call_post_hooks(closure)
        return first

    def _iterate(self, closure: Callable[[], Any], loss: float) -> None:
        group = self.param_groups[0]
        small_grad, small_change = group["tolerance_grad"], group["tolerance_change"]
        state = self.state[self._parameters()[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        state["func_evals"] += 1
        evaluations = 1
        grad = self._gradient()
        is_flat = bool(np.abs(grad).max() <= small_grad)
        if is_flat:
            return

        def at(starts: list[Any], t: float, direction: Array) -> tuple[float, Any]:
            self._move(starts, t, direction)
            with enable_grad():
                value = _number(closure())
            return value, self._gradient()

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            before = loss
            state["prev_flat_grad"], state["prev_loss"] = grad, loss
            lr = float(group["lr"])
            t = min(1.0, 1.0 / float(np.abs(grad).sum())) * lr if state["n_iter"] == 1 else lr
            slope = float(grad.dot(direction))
            if slope > -small_change:
                state["t"] = t
                break
            starts = [p._memory().copy() for p in self._parameters()]
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = _Trial(0.0, loss, grad, slope)
                found, used = strong_wolfe(
                    lambda t, s=starts, d=direction: at(s, t, d),  # type: ignore[misc]  # bound now
                    start, t, direction, small_change,
                )  # fmt: skip
                loss, grad, t = found.f, found.grad, found.t
                self._move(starts, t, direction)
                is_flat = bool(np.abs(grad).max() <= small_grad)
            else:
                self._move(starts, t, direction)
                if iteration != group["max_iter"]:
                    loss, grad = at(starts, t, direction)
                    is_flat = bool(np.abs(grad).max() <= small_grad)
                    used = 1
            state["t"] = t
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or is_flat
                or float(np.abs(direction * t).max()) <= small_change
                or abs(loss - before) < small_change
            ):
                break

    def _direction(self, state: dict[str, Any], grad: Array, size: int) -> Array:
        """The quasi-Newton direction; remembers the last step."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            state["d"] = -grad
            return state["d"]
        changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = grad - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        ys = float(y.dot(s))
        if ys > 1e-10:
            if len(changes) == size:
                for memory in (changes, steps, ro):
                    memory.pop(0)
            changes.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / float(y.dot(y))
        q = -grad
        weights = [0.0] * len(changes)
        for i in reversed(range(len(changes))):
            weights[i] = float(steps[i].dot(q)) * ro[i]
            q = q - weights[i] * changes[i]
        d = q * state["H_diag"]
        for i in range(len(changes)):
            d = d + steps[i] * (weights[i] - float(changes[i].dot(d)) * ro[i])
        state["d"] = d
        return d
