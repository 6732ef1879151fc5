"""Steps on the library's tensors: the words that they use, and the runner.

Here: ``Runner``, which does the steps of a case and notes what the library refused. Not here: what
the steps are (``tensor_steps``), what is right (``memory``, ``imperative``).
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

import functrans as ft
import functrans.compat.torch as torch
from functrans.compat.torch.utils.checkpoint import checkpoint
from functrans.errors import UnsupportedOperationError

from .common import Finding
from .memory import Model, leaf_value, recording, weighted, weights
from .tensor_steps import MANY


class Cube(torch.autograd.Function):
    """Saves its operand."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """A third power."""
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Recorded for the second derivative."""
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


class Exp(torch.autograd.Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """An exponential."""
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """By the result."""
        (y,) = ctx.saved_tensors
        return gradient * y


class Mixed(torch.autograd.Function):
    """Two operands, of which each may be a constant; it broadcasts."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        """A product with a sine."""
        ctx.save_for_backward(x, y)
        return x * torch.sin(y)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """As asked for."""
        x, y = ctx.saved_tensors
        by_x, by_y = ctx.needs_input_grad
        return (
            (gradient * torch.sin(y)).sum_to_size(*x.shape) if by_x else None,
            (gradient * x * torch.cos(y)).sum_to_size(*y.shape) if by_y else None,
        )


class Tripled(torch.autograd.Function):
    """Writes to its operand."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """In place."""
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Linear."""
        return 3 * gradient


class Boom(Exception):  # noqa: N818  # it is raised on purpose
    """Raised by steps that test what an exception leaves behind."""


def _boom(*_: Any) -> Any:
    raise Boom


def _boom_backward(a: Any) -> None:
    with torch.enable_grad():
        x = a.detach().clone().requires_grad_()
        y = x * 2
        if y.requires_grad:  # nothing does in inference mode
            y.register_hook(_boom)
            y.abs().sum().backward()
    raise Boom


def _boom_saved(a: Any) -> None:
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(_boom, _boom):
        torch.sin(a.detach().clone().requires_grad_())
    raise Boom


def _slope(fun: Any, a: Any) -> Any:
    """The gradient within the program, recorded; of a constant, a constant.

    By a product, since hooks of ``a`` itself would count.
    """
    with torch.enable_grad():
        x = 1 * a if a.requires_grad else a.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(fun(x), x, create_graph=True)
    return gradient if torch.is_grad_enabled() and a.requires_grad else gradient.detach()


WORDS = {
    "T": torch,
    "ft": ft,
    "checkpoint": checkpoint,
    "slope": _slope,
    "boom": _boom,
    "boom_backward": _boom_backward,
    "boom_saved": _boom_saved,
    "Cube": Cube,
    "Exp": Exp,
    "Mixed": Mixed,
    "Tripled": Tripled,
}


def _packed_wide(x: Any) -> Any:
    wider = torch.complex128 if x.is_complex() or x.dtype == torch.float64 else torch.float64
    return x.dtype, x.to(wider) if x.is_floating_point() or x.is_complex() else x


def _unpacked(pair: Any) -> Any:
    dtype, x = pair
    return (x.real if x.is_complex() and dtype.kind != "c" else x).to(dtype)


_PACKERS = {
    "identity": (lambda x: x, lambda x: x),
    "copy": (lambda x: x.clone(), lambda x: x),
    "wide": (_packed_wide, _unpacked),
}


def context(name: str) -> Any:
    """A block of this name."""
    if name in _PACKERS:
        return torch.autograd.graph.saved_tensors_hooks(*_PACKERS[name])
    return {
        "no_grad": torch.no_grad,
        "enable_grad": torch.enable_grad,
        "inference": torch.inference_mode,
    }[name]()


def leaf_tensor(leaf: dict[str, Any], grad: bool) -> Any:
    """A leaf in memory of its own."""
    return torch.from_numpy(leaf_value(leaf).copy()).requires_grad_(grad)


def _weights(shape: Any, k: int) -> Any:
    return torch.from_numpy(weights(tuple(shape), k))


def total_of(tensor: Any, k: int) -> Any:
    """The number that ``backward`` is called on."""
    return weighted(tensor, k, _weights)


def is_overwritten(error: BaseException) -> bool:
    """Whether an error says that a saved value was written to."""
    return "modified by an inplace operation" in str(error)


class Runner:
    """Does the steps of a case.

    Attributes:
      tensors: all by name.
      notes: by step, ``refused`` or ``copied``.
      seen: sums of gradients that observing hooks were given.
      failed: the step of a ``backward`` that met a value written to, if any.
    """

    def __init__(self, case: dict[str, Any], leaves: dict[str, Any], *, is_plain: bool) -> None:
        self.case = case
        self.tensors = dict(leaves)
        self.is_plain = is_plain
        self.notes: dict[int, str] = {}
        self.seen: dict[str, Any] = {}
        self.failed: int | None = None

    def run(self) -> Runner:
        """All steps, each compared with what the model says of refusals."""
        model = Model(notes=self.notes)
        for name, leaf in self.case["args"].items():
            model.leaf(name, leaf)
        for i, step in enumerate(self.case["steps"]):
            if not model.is_possible(step):
                continue
            if step["do"] == "backward":
                self._backward(i, step, model)
                if self.failed is not None:
                    break
            else:
                self._attempt(i, step, model)
            if self.notes.get(i) != "refused":
                model.do(i, step)
        return self

    def again(self, notes: dict[int, str]) -> Runner:
        """The steps that were not refused, without ``backward`` and exceptions."""
        model = Model(notes=notes)
        for name, leaf in self.case["args"].items():
            model.leaf(name, leaf)
        for i, step in enumerate(self.case["steps"]):
            if notes.get(i) == "refused" or not model.is_possible(step):
                continue
            model.do(i, step)
            if step["do"] not in ("backward", "raise"):
                self._do(step)
        return self

    def _attempt(self, i: int, step: dict[str, Any], model: Model) -> None:
        try:
            self._do(step)
        except Boom:
            return
        except (RuntimeError, UnsupportedOperationError) as error:
            if not _may_refuse(step, model, str(error)):
                raise
            self.notes[i] = "refused"
        else:
            if step["do"] == "write" and _must_refuse(step, model):
                raise Finding(f"{step['text']} writes to a leaf", str(step))
            if step["do"] == "view" and not self._shares(step):
                self.notes[i] = "copied"

    def _shares(self, step: dict[str, Any]) -> bool:
        """Whether a view is one; a reshape of what is not contiguous is none."""
        base = self.tensors[step["of"][0]]
        view = self.tensors[step["out"][0]]
        shares = np.shares_memory(base.detach().numpy(), view.detach().numpy())
        if not shares and (base.is_contiguous() or "shape" not in step["text"]):
            raise Finding(f"{step['text']} copies", str(step))
        return bool(shares)

    def _do(self, step: dict[str, Any]) -> None:
        operands = {k: self.tensors[name] for k, name in zip("ab", step["of"], strict=False)}
        with contextlib.ExitStack() as blocks:
            for name in step["in"]:
                blocks.enter_context(context(name))
            found = eval(step["text"], {**WORDS, **operands})
            if step["do"] in ("op", "view"):
                many = list(found) if step["text"] in MANY else [found]
                self.tensors.update(zip(step["out"], many, strict=False))
            if step["do"] == "op" and found.requires_grad:
                self._hook(step, found)

    def _hook(self, step: dict[str, Any], result: Any) -> None:
        name = step["out"][0]
        where, factor = step.get("hook", ("", 1.0))
        if not self.is_plain and step.get("observe"):
            seen = self.seen  # alone, so that the hook does not keep the tensors
            result.register_hook(lambda g: _note(seen, name, g))
        if not self.is_plain and step.get("retain"):
            result.retain_grad()
        if where == "tensor":
            result.register_hook(lambda g: None if g is None else g * factor)
        elif where == "node":
            result.grad_fn.register_hook(
                lambda given, _: tuple(None if g is None else g * factor for g in given)
            )
        elif where == "pre":
            result.grad_fn.register_prehook(
                lambda given: tuple(None if g is None else g * factor for g in given)
            )

    def _backward(self, i: int, step: dict[str, Any], model: Model) -> None:
        tensor = self.tensors[step["of"][0]]
        if not tensor.requires_grad:
            return
        try:
            total_of(tensor, i).backward(retain_graph=True)
        except RuntimeError as error:
            if not is_overwritten(error):
                raise
            if not model.is_overwritten(1, i):
                raise Finding("nothing was written to", str(error)) from error
            self.failed = i


def _note(seen: dict[str, Any], name: str, gradient: Any) -> None:
    seen[name] = seen.get(name, 0) + gradient.detach().numpy().copy()


def _must_refuse(step: dict[str, Any], model: Model) -> bool:
    flow = model.cells[step["of"][0]].flow
    return recording(step["in"]) and flow.is_leaf and flow.is_recorded


def _may_refuse(step: dict[str, Any], model: Model, text: str) -> bool:
    cells = [model.cells[name] for name in step["of"]]
    if any(c.is_inference for c in cells) and "nference" in text:
        return True
    if step["do"] == "view" and step["text"] == "a.view(-1)":
        return "view" in text
    if step["do"] != "write":
        expected = {"ft.jit": "was computed outside", "@": "have the same dtype"}
        expected["T.complex"] = "Expected object of scalar type"
        if not {"identity", "copy", "wide"}.isdisjoint(step["in"]):
            expected["T.func."] = "saved tensor hooks"
        return any(word in step["text"] and part in text for word, part in expected.items())
    target = cells[0]
    return (
        _must_refuse(step, model)
        or target.is_part
        or target.hidden_since is not None
        or "dtypes match" in text
        or "expected dtype" in text
        or model.overlaps(step)
    )
