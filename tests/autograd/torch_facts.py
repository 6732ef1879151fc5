"""Small programs for any library with torch's names, and what PyTorch makes of them.

``python -m tests.autograd.torch_facts`` writes PyTorch's answers down: what the expression is as
text, or the class of the error and its first words. It is run by hand, where PyTorch is installed.
A line is an expression, or statements and an expression, separated by semicolons.
"""

import contextlib
import json
import warnings
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("torch_facts.json")
PROGRAMS = {
    "sizes": """
x.shape
x.size()
x.shape.numel()
x.shape[1:]
x.shape[0]
x.shape[:1] + x.shape
(5,) + x.shape
x.shape + (5,)
2 * x.shape
x.shape == (2, 3)
x.shape == [2, 3]
hash(x.shape) == hash((2, 3))
T.zeros(()).shape
x.sum(0).shape
n, m = x.shape; (n, m)
type(x.shape[0]).__name__
T.zeros(x.shape[::-1]).shape
T.ones(x.shape).shape.numel()
isinstance(x.shape, tuple)
T.func.vmap(lambda a: a * a.shape.numel())(x)
T.func.grad(lambda a: (a * a.shape[0]).sum())(x)
x.reshape(x.shape[1:] + x.shape[:1]).shape
copy.deepcopy(x.shape)
pickle.loads(pickle.dumps(x.shape))
f"{x.shape}"
list(x.shape)
T.Size([2, 3]).count(2)
T.Size([2, 2.0])
""",
}


def names(T: Any) -> dict[str, Any]:  # as in the programs
    """What the programs read."""
    import copy
    import pickle

    import numpy as np

    return {
        "T": T, "np": np, "copy": copy, "pickle": pickle, "F": T.nn.functional,
        "x": T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "w": T.tensor([1.0, 2.0], requires_grad=True),
        "i": T.tensor([1, 0]), "z": T.tensor([1 + 2j, 3 - 1j]), "b": T.tensor([True, False]),
    }  # fmt: skip


def outcome(T: Any, program: str) -> str:
    """What a program makes."""
    *statements, expression = program.split("; ")
    scope = names(T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in statements:
                exec(statement, scope)
            return text(eval(expression, scope))
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split()[:6])}"


def text(found: Any) -> str:
    """A result, without what printing is free to choose."""
    if type(found) in (tuple, list):
        return f"{type(found).__name__}({', '.join(map(text, found))})"
    if hasattr(found, "requires_grad"):
        with contextlib.suppress(Exception):
            found = found.resolve_conj()
        values = [round(v, 4) for v in found.detach().double().flatten().tolist()] if (
            not found.is_complex()
        ) else found.detach().flatten().tolist()  # fmt: skip
        return f"{found.dtype} {list(found.shape)} {values} {found.requires_grad}"
    return str(found)


def all_programs() -> list[tuple[str, str]]:
    """Topic and program."""
    return [
        (topic, program) for topic, lines in PROGRAMS.items() for program in lines.split("\n")[1:-1]
    ]


if __name__ == "__main__":
    import torch

    answers = {program: outcome(torch, program) for _, program in all_programs()}
    DATA.write_text(json.dumps(answers, indent=1) + "\n")
