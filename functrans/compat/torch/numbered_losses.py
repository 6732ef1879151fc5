"""Losses of the namespace ``torch`` itself, whose reductions are numbers: 0 none, 1 mean, 2 sum.

Here: those functions, which reduce nothing by default. Not here: the losses that they are made of,
whose reductions are words (``torch.nn.functional``).

Layer: ``compat``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from functrans.autograd.tensors import called
from functrans.compat.torch.nn import losses, margin_losses
from functrans.core.boundary import guard as _guard

_WORDS = ("none", "mean", "sum")


def _numbered(function: Callable[..., Any], first: str, behind: str = "") -> Callable[..., Any]:
    """A loss that takes the number of its reduction.

    Args:
      function: the loss of ``nn.functional``.
      first: names of its arguments in front of the reduction.
      behind: names of those behind it.
    """
    own = inspect.signature(function).parameters
    number = inspect.Parameter("reduction", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=0)
    names = (*first.split(), "reduction", *behind.split())
    signature = inspect.Signature([number if n == "reduction" else own[n] for n in names])

    def loss(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}(): {error}") from None
        reduction = bound.arguments.get("reduction", 0)
        if type(reduction) is not int:
            raise TypeError(
                f"{function.__name__}(): argument 'reduction' must be int, not "
                f"{type(reduction).__name__}: here 0, 1 or 2; nn.functional takes words"
            )
        if not 0 <= reduction < len(_WORDS):
            raise ValueError(f"{reduction} is not a valid value for reduction: give 0, 1 or 2")
        return function(**{**bound.arguments, "reduction": _WORDS[reduction]})

    loss.__doc__ = f"``nn.functional.{function.__name__}`` with the number of its reduction."
    loss.__signature__ = signature  # type: ignore[attr-defined]  # functions take any attribute
    return called(loss, function.__name__)


LOSSES: dict[str, Callable[..., Any]] = {
    f.__name__: _numbered(f, first, behind)
    for f, first, behind in (
        (losses.binary_cross_entropy_with_logits, "input target weight pos_weight", ""),
        (losses.hinge_embedding_loss, "input target margin", ""),
        (losses.kl_div, "input target", "log_target"),
        (losses.margin_ranking_loss, "input1 input2 target margin", ""),
        (losses.poisson_nll_loss, "input target log_input full eps", ""),
        (margin_losses.cosine_embedding_loss, "input1 input2 target margin", ""),
        (margin_losses.ctc_loss, "log_probs targets input_lengths target_lengths blank",
         "zero_infinity"),
        (margin_losses.triplet_margin_loss, "anchor positive negative margin p eps swap", ""),
    )
}  # fmt: skip
globals().update(LOSSES)  # where they are looked for by their names
_guard(globals(), list(LOSSES))
