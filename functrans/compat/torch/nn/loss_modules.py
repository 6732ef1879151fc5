"""Losses as modules.

Not here: what they compute (``nn.losses``, ``nn.margin_losses``), what their classes are made of
(``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.losses import reduction_of
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
    "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "NLLLoss", "PairwiseDistance", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
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

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        super().__init__()
        given = {"size_average": size_average, "reduce": reduce, "reduction": reduction}
        resolve_reduction(given)
        self.reduction = given["reduction"]


class _WeightedLoss(_Loss):
    """With a weight for each class."""

    def __init__(self, weight: Tensor | None = None, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.register_buffer("weight", weight)


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


class BCELoss(_WeightedLoss, function=functional.binary_cross_entropy):
    """Cross entropy of probabilities."""


class BCEWithLogitsLoss(_Loss, function=functional.binary_cross_entropy_with_logits):
    """Cross entropy of ``sigmoid(input)`` and ``target``."""


class NLLLoss(_WeightedLoss, function=functional.nll_loss):
    """Negative log-likelihood of classes."""


class CrossEntropyLoss(_WeightedLoss, function=functional.cross_entropy):
    """Cross entropy of the softmax of logits; see ``functional.cross_entropy``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss; arguments in order and a look at the buffers cost less than names."""
        return functional.cross_entropy(
            input, target, self.__dict__["_buffers"]["weight"], None, self.ignore_index, None,
            self.reduction, self.label_smoothing,
        )  # fmt: skip


def _check_margin(name: str, values: dict[str, Any]) -> None:
    margin = values["margin"]
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")
    check_reduction(values)


def _resolve_distance(values: dict[str, Any]) -> None:
    _check_margin("TripletMarginWithDistanceLoss", values)
    values["distance_function"] = values["distance_function"] or functional.pairwise_distance


def _check_power(values: dict[str, Any]) -> None:
    if values["p"] not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    resolve_reduction(values)


class PairwiseDistance(Module):
    """Norms of the differences of vectors along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class TripletMarginLoss(
    _Loss,
    function=functional.triplet_margin_loss,
    takes="anchor positive negative",
    prepare=functools.partial(_check_margin, "TripletMarginLoss"),
    defaults={"p": 2.0},
):
    """By how much vectors are not nearer to one than to another, by a margin."""


class TripletMarginWithDistanceLoss(
    _Loss,
    function=functional.triplet_margin_with_distance_loss,
    settings="* distance_function margin swap reduction",
    takes="anchor positive negative",
    prepare=_resolve_distance,
):
    """``TripletMarginLoss`` with a distance of the user's."""


class CosineEmbeddingLoss(
    _Loss,
    function=functional.cosine_embedding_loss,
    takes="input1 input2 target",
    prepare=check_reduction,
    defaults={"margin": 0.0},
):
    """By how much the cosine of vectors is not 1 (target 1), or above a margin (target -1)."""


class MultiLabelMarginLoss(_Loss, function=functional.multilabel_margin_loss):
    """By how much scores of other classes are not below those of the right ones."""


class MultiLabelSoftMarginLoss(_WeightedLoss, function=functional.multilabel_soft_margin_loss):
    """Cross entropy of independent classes, averaged over them."""


class MultiMarginLoss(_WeightedLoss, function=functional.multi_margin_loss, prepare=_check_power):
    """By how much scores of other classes are not below that of the right one, by a margin."""


class GaussianNLLLoss(
    _Loss,
    function=functional.gaussian_nll_loss,
    settings="* full eps reduction",
    takes="input target var",
):
    """Negative logarithm of the density of a normal distribution."""


class CTCLoss(
    _Loss, function=functional.ctc_loss, takes="log_probs targets input_lengths target_lengths"
):
    """Negative logarithm of the probability of sequences, over all their alignments."""
