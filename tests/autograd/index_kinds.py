"""Indices of many kinds, as expressions that any library with torch's names can evaluate.

``python -m tests.autograd.index_kinds`` writes down what PyTorch makes of each: shape and elements
of ``x[index]``, the elements that ``x[index] = -1`` writes, or the class of the error, and whether
there is a warning. It is run by hand, where PyTorch is installed.
"""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).with_name("index_kinds.json")
SHAPE = (2, 3, 2)
ITEMS = (
    "0", "-1", "True", "False", "None", "...", "slice(None)", "slice(0, 1)", "[0, 1]", "[]",
    "(1,)", "[[0, 1], [1, 1]]", "[True, False]", "T(1)", "T([0, 1])", "T([True, False])",
    "T(True)", "np.array([0, 1])", "np.int64(1)", "range(2)", "np.array(1)",
)  # fmt: skip
FURTHER = (
    "[]", "[0] * 40", "[[0]] * 40", "T([[0, 1], [1, 1]])", "np.array([[0, 1], [1, 1]])",
    "np.array([0, 1])", "range(2)", "([0, 1], [1, 1])", "([[0, 1], [1, 1]],)", "[0, 1, 2]",
    "[[0, 1], [1, 1], [1, 0]]", "[0, [0, 1], ...]", "[slice(None), None, [0, 1]]",
    "[T([0, 1]), T([1, 1]), T([1, 0])]", "[[0, 1], [0, 1], [0, 1], [0, 1]]", "([0, 1],)",
    "[True, False, [1]]", "[(0, 1), (1, 0)]", "[[[0, 1], [1, 1]], [0, 1]]", "True", "(False, 0)",
    "[[T(0), T(1)], [T(1), T(0)]]", "[T([[True, False, True], [False, True, False]])]",
    "np.array([[True, False, True], [False, True, False]])", "[[True, False], [0, 1]]",
    "(..., True, [0])",
)  # fmt: skip
KINDS = (
    *(f"[{a}]" for a in ITEMS),
    *(f"[{a}, {b}]" for a in ITEMS for b in ITEMS if (a, b) != ("...", "...")),
    *FURTHER,
)


def outcome(torch: Any, kind: str) -> list[Any]:
    """Reading, writing, and whether reading warns."""
    index = eval(kind, {"T": torch.tensor, "np": np})
    found: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            part = torch.arange(12).reshape(SHAPE)[index]
            found.append([list(part.shape), part.flatten().tolist()])
        except Exception as error:
            found.append(type(error).__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.arange(12).reshape(SHAPE)
        try:
            x[index] = -1
            found.append([i for i, number in enumerate(x.flatten().tolist()) if number < 0])
        except Exception as error:
            found.append(type(error).__name__)
    return [*found, len(caught) > 0]


if __name__ == "__main__":
    import torch

    lines = [f"{json.dumps(kind)}: {json.dumps(outcome(torch, kind))}" for kind in KINDS]
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")
