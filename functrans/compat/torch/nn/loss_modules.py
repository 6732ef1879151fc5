"""Losses as modules.

Here: functions with settings, and the base of losses. Not here: what they compute
(``nn.functional``), what their classes are made of (``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.losses import reduction_of
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HingeEmbeddingLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "NLLLoss", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss",
]  # fmt: skip


def resolve_reduction(values: dict[str, Any]) -> None:
    """Give ``reduction`` the meaning of torch's deprecated arguments, which are left out."""
    size_average, reduce = values.pop("size_average", None), values.pop("reduce", None)
    if size_average is not None or reduce is not None:
        values["reduction"] = reduction_of(values["reduction"], size_average, reduce)


def check_reduction(values: dict[str, Any]) -> None:
    """``resolve_reduction``, which also refuses a reduction that there is not."""
    resolve_reduction(values)
    reduction_of(values["reduction"])


class _Loss(Applied, takes="input target", shown="", prepare=resolve_reduction):
    """Of two tensors, unless other arguments are given."""


class MSELoss(_Loss, function=functional.mse_loss, settings="size_average reduce reduction"):
    """Squared differences."""


class L1Loss(_Loss, function=functional.l1_loss):
    """Absolute differences."""


class SoftMarginLoss(_Loss, function=functional.soft_margin_loss):
    """``log(1 + exp(-target * input))``."""


class SmoothL1Loss(_Loss, function=functional.smooth_l1_loss):
    """Absolute differences, squares near 0."""


class HuberLoss(_Loss, function=functional.huber_loss, settings="reduction delta"):
    """Half the squares of differences up to ``delta``, linear beyond."""


class KLDivLoss(_Loss, function=functional.kl_div):
    """``target * (log(target) - input)``."""


class PoissonNLLLoss(_Loss, function=functional.poisson_nll_loss):
    """Negative log-likelihood of counts."""


class HingeEmbeddingLoss(_Loss, function=functional.hinge_embedding_loss):
    """``input`` for targets 1, ``max(0, margin - input)`` for targets -1."""


class MarginRankingLoss(
    _Loss,
    function=functional.margin_ranking_loss,
    takes="input1 input2 target",
    prepare=check_reduction,
):
    """``max(0, -target * (input1 - input2) + margin)``."""


class BCELoss(_Loss, function=functional.binary_cross_entropy):
    """Cross entropy of probabilities."""


class BCEWithLogitsLoss(_Loss, function=functional.binary_cross_entropy_with_logits):
    """Cross entropy of ``sigmoid(input)`` and ``target``."""


class NLLLoss(_Loss, function=functional.nll_loss):
    """Negative log-likelihood of classes."""


class CrossEntropyLoss(_Loss, function=functional.cross_entropy):
    """Cross entropy of the softmax of logits; see ``functional.cross_entropy``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss; arguments in order and a look at the buffers cost less than names."""
        return functional.cross_entropy(
            input, target, self.__dict__["_buffers"]["weight"], None, self.ignore_index, None,
            self.reduction, self.label_smoothing,
        )  # fmt: skip
