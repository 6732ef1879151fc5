"""What may be done twice, and written to, after each operation on tensors.

``python -m tests.autograd.saved_words`` writes down what PyTorch allows of each expression of
``samples.torch_operations`` and ``test_saved_guards``: whether a second ``backward`` works (``t``),
whether one works after its result was written to (``r``), and after each floating operand was
(``0``, ``1`` ...). It is run by hand, where PyTorch is installed.
"""

import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).with_name("saved_words.json")


class Expression:
    """An operation as a function of its operands.

    Attributes:
      names: of its operands.
      floating: positions of those that have derivatives.
    """

    def __init__(self, torch: Any, code: str, operands: dict[str, np.ndarray]) -> None:
        self.torch = torch
        self.names = [name for name in operands if re.search(rf"\b{name}\b", code)]
        self.values = [operands[name] for name in self.names]
        self.floating = [i for i, value in enumerate(self.values) if value.dtype.kind in "fc"]
        self.code = compile(code, code, "eval")

    def run(self) -> tuple[list[Any], list[Any], Any]:
        """Operands that are no leaves, differentiable results, and a number made of the latter."""
        torch = self.torch
        operands = []
        for i, value in enumerate(self.values):
            leaf = torch.from_numpy(value.copy())
            operands.append(leaf.requires_grad_() + 0 if i in self.floating else leaf)
        scope = {"T": torch, "F": torch.nn.functional, "inf": np.inf, "nan": np.nan}
        result = eval(self.code, {**scope, **dict(zip(self.names, operands, strict=True))})
        flat = list(result) if isinstance(result, (tuple, list)) else [result]
        results = [x for x in flat if isinstance(x, torch.Tensor) and x.requires_grad]
        total: Any = sum((x.sum().abs() if x.is_complex() else x.sum() for x in results), 0.0)
        return operands, results, total


def allowed(expression: Expression) -> str | None:
    """The letters of what works; ``None`` where the operation itself does not, or has no graph."""
    torch = expression.torch

    def works(change: Callable[[list[Any], list[Any]], Any], times: int = 1) -> bool | None:
        operands, results, total = expression.run()
        if not results:
            return None
        with torch.no_grad():
            try:
                change(operands, results)
            except RuntimeError:  # such a tensor is not written to at all
                return False
        try:
            for _ in range(times):
                total.backward()
        except RuntimeError:
            return False
        return True

    try:
        if not works(lambda operands, results: None):
            return None
    except Exception:
        return None
    letters = "t" if works(lambda operands, results: None, 2) else ""
    letters += "r" if works(lambda operands, results: results[0].zero_()) else ""
    for i in expression.floating:
        letters += str(i) if works(lambda operands, results, i=i: operands[i].zero_()) else ""
    return letters


def cases() -> list[str]:
    """All expressions."""
    from samples.torch_operations import EXPRESSIONS  # found through the path
    from samples.torch_transformed import FUNCTIONAL, MORE

    return list(dict.fromkeys([*EXPRESSIONS, *MORE, *FUNCTIONAL]))


def words(torch: Any) -> dict[str, str]:
    """What is allowed of each expression that has a graph."""
    from samples.torch_operations import OPERANDS

    found = {code: allowed(Expression(torch, code, OPERANDS)) for code in cases()}
    return {code: letters for code, letters in found.items() if letters is not None}


if __name__ == "__main__":
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    warnings.simplefilter("ignore")
    DATA.write_text(json.dumps(words(torch), indent=0) + "\n", encoding="utf-8")
