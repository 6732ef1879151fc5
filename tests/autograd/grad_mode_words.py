"""Words of grad modes and transforms: programs that any library with torch's names can run.

A letter makes of a function of a tensor another one, with results of the same shape; a word applies
its letters from the right. ``python -m tests.autograd.grad_mode_words`` writes down what PyTorch
makes of each word: value and gradient, ``null`` where the result requires no gradient, or the class
of the error by which PyTorch refuses the word (gradients asked for where nothing is recorded;
inference tensors saved for a derivative). It is run by hand, where PyTorch is installed.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("grad_mode_words.json")
POINT = (0.75, -0.5)
MODES = ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "detach")
TRANSFORMS = ("grad", "vjp", "jvp", "vmap", "jacfwd", "jacrev", "hessian", "backward")
UNRECORDED = ("write", "write_to_view", "write_to_leaf", "fill", "plain_grad", "data")
"""What becomes a constant of reverse mode, or keeps the derivative of what it replaced."""


def _in_scope(make: Callable[[], Any], f: Any) -> Any:
    """A mode around a function; what it returns outlives the mode, and is used by more."""

    def inside(x: Any) -> Any:
        with make():
            y = f(x)
        return x * y.clone()

    return inside


def _switched(torch: Any, f: Any) -> Any:
    def inside(x: Any) -> Any:
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        try:
            y = f(x)
        finally:
            torch.set_grad_enabled(before)
        return x * y + y

    return inside


def _overwritten(torch: Any, f: Any, write: Callable[[Any, Any], Any]) -> Any:
    """Writes to a result while nothing is recorded, and to what was computed of it."""

    def inside(x: Any) -> Any:
        y = f(x).clone()
        with torch.no_grad():
            write(y, x)
        z = x * y
        z.add_(y)
        return z

    return inside


def _leaf_overwritten(torch: Any, f: Any) -> Any:
    """Writes to the operand of a function while nothing is recorded."""

    def inside(x: Any) -> Any:
        own = x.clone()
        with torch.no_grad():
            own.mul_(0.5 * x)
            own -= 0.2
        return f(own) * own

    return inside


def _plain_grad(torch: Any, f: Any) -> Any:
    """A gradient that is not recorded."""

    def inside(x: Any) -> Any:
        own = x.clone()
        if not own.requires_grad:
            own.requires_grad_()
        (found,) = torch.autograd.grad(f(own).sum(), own)
        return x * found

    return inside


def _pulled(torch: Any, f: Any) -> Any:
    def inside(x: Any) -> Any:
        out, pull = torch.func.vjp(f, x)
        return pull(1.5 * torch.ones_like(out))[0] + out

    return inside


def _pushed(torch: Any, f: Any) -> Any:
    def inside(x: Any) -> Any:
        out, tangent = torch.func.jvp(f, (x,), (1.25 * torch.ones_like(x),))
        return tangent + 0.5 * out

    return inside


def _summed(f: Any) -> Any:
    return lambda x: f(x).sum()


def letters(torch: Any) -> dict[str, Callable[[Any], Any]]:
    """The letters, written with a library of torch's names."""
    func = torch.func
    return {
        "no_grad": lambda f: _in_scope(torch.no_grad, f),
        "enable_grad": lambda f: _in_scope(torch.enable_grad, f),
        "inference_mode": lambda f: _in_scope(torch.inference_mode, f),
        "set_grad_enabled": lambda f: _switched(torch, f),
        "detach": lambda f: lambda x: x * f(x).detach(),
        "write": lambda f: _overwritten(torch, f, lambda y, x: y.mul_(x).add_(0.5)),
        "write_to_view": lambda f: _overwritten(
            torch, f, lambda y, x: y[..., 1:].mul_(3 * x[..., :1])
        ),
        "write_to_leaf": lambda f: _leaf_overwritten(torch, f),
        "fill": lambda f: _overwritten(torch, f, lambda y, x: y[..., :1].fill_(0.25)),
        "plain_grad": lambda f: _plain_grad(torch, f),
        "data": lambda f: lambda x: x * f(x).data,
        "grad": lambda f: func.grad(_summed(f)),
        "vjp": lambda f: _pulled(torch, f),
        "jvp": lambda f: _pushed(torch, f),
        "vmap": lambda f: lambda x: func.vmap(f)(torch.stack([x, 2 * x])).sum(0),
        "jacfwd": lambda f: lambda x: func.jacfwd(f)(x).sum(tuple(range(x.ndim))),
        "jacrev": lambda f: lambda x: func.jacrev(f)(x).sum(tuple(range(x.ndim))),
        "hessian": lambda f: lambda x: func.hessian(_summed(f))(x).sum(tuple(range(x.ndim))),
        "backward": lambda f: lambda x: torch.autograd.grad(f(x).sum(), x, create_graph=True)[0],
    }


def words() -> list[tuple[str, ...]]:
    """All words of up to three letters with a mode in them, and all of up to two.

    What is not recorded is in words of three letters once, beside transforms.
    """
    alphabet = (*MODES, *TRANSFORMS)
    known = [
        word
        for length in (1, 2, 3)
        for word in itertools.product(alphabet, repeat=length)
        if length < 3 or not set(word).isdisjoint(MODES)
    ]
    further = [
        word
        for length in (1, 2, 3)
        for word in itertools.product((*UNRECORDED, *alphabet), repeat=length)
        if (number := sum(letter in UNRECORDED for letter in word))
        and (length < 3 or (number == 1 and set(word).isdisjoint(MODES)))
    ]
    return known + further


def run(torch: Any, word: tuple[str, ...], wrap: Callable[[Any], Any] = lambda f: f) -> Any:
    """Value of a word at the point, and the gradient that ``backward`` brings; ``None`` for none.

    Args:
      torch: the library.
      word: letters, the outermost first.
      wrap: applied to the function after each letter.

    Returns:
      ``[value, gradient]`` as lists; the name of the exception class if one is raised.
    """
    made = letters(torch)
    f: Any = wrap(lambda x: x * torch.sin(x) * x)
    for letter in reversed(word):
        f = wrap(made[letter](f))
    x = torch.tensor(POINT, dtype=torch.float64, requires_grad=True)
    try:
        y = f(x)
        value = y.detach().tolist()
        if not y.requires_grad:
            return [value, None]
        y.sum().backward()
        # PyTorch's zeros may have no memory before they are added to something
        gradient = None if x.grad is None else (torch.zeros_like(x.detach()) + x.grad).tolist()
    except Exception as error:  # what a library refuses is data
        return type(error).__name__
    return [value, gradient]


def main() -> None:
    """Write the data."""
    import torch

    torch.set_num_threads(1)
    lines = []
    for word in words():
        found = run(torch, word)
        if isinstance(found, list):
            found = [part and [float(f"{v:.7g}") for v in part] for part in found]
        lines.append(f"{json.dumps(' '.join(word))}:{json.dumps(found, separators=(',', ':'))}")
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
