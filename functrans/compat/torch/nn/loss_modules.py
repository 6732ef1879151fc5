"""Losses as modules.

Here: classes that hold parameters and settings. Not here: what they compute (``nn.functional``),
``Module`` (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.losses import reduction_of
from functrans.compat.torch.nn.module import Module

# losses ------------------------------------------------------------------------------------------


class _Loss(Module):
    """A loss of two tensors."""

    function: ClassVar[Callable[..., Any]]
    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self._set_reduction(size_average, reduce, reduction)

    def _set_reduction(self, size_average: Any, reduce: Any, reduction: str) -> None:
        if size_average is not None or reduce is not None:
            reduction = reduction_of(reduction, size_average, reduce)
        self.reduction = reduction

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {"reduction": self.reduction}

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return type(self).function(input, target, **self.settings())  # type: ignore[no-any-return]  # a tensor


class MSELoss(_Loss):
    """Squared differences."""

    function = staticmethod(functional.mse_loss)


class L1Loss(_Loss):
    """Absolute differences."""

    function = staticmethod(functional.l1_loss)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``."""

    function = staticmethod(functional.soft_margin_loss)


class SmoothL1Loss(_Loss):
    """Absolute differences, squares near 0."""

    function = staticmethod(functional.smooth_l1_loss)

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {"reduction": self.reduction, "beta": self.beta}


class HuberLoss(_Loss):
    """Half the squares of differences up to ``delta``, linear beyond."""

    function = staticmethod(functional.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {"reduction": self.reduction, "delta": self.delta}


class KLDivLoss(_Loss):
    """``target * (log(target) - input)``."""

    function = staticmethod(functional.kl_div)

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {"reduction": self.reduction, "log_target": self.log_target}


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts."""

    function = staticmethod(functional.poisson_nll_loss)

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {
            "reduction": self.reduction, "log_input": self.log_input, "full": self.full,
            "eps": self.eps,
        }  # fmt: skip


class HingeEmbeddingLoss(_Loss):
    """``input`` for targets 1, ``max(0, margin - input)`` for targets -1."""

    function = staticmethod(functional.hinge_embedding_loss)

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {"reduction": self.reduction, "margin": self.margin}


class MarginRankingLoss(Module):
    """``max(0, -target * (input1 - input2) + margin)``."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.margin = margin
        self.reduction = reduction_of(reduction, size_average, reduce)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.margin_ranking_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class _WeightedLoss(_Loss):
    """A loss with weights, which are a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {"weight": self.weight, "reduction": self.reduction}


class BCELoss(_WeightedLoss):
    """Cross entropy of probabilities."""

    function = staticmethod(functional.binary_cross_entropy)


class BCEWithLogitsLoss(_WeightedLoss):
    """Cross entropy of ``sigmoid(input)`` and ``target``."""

    function = staticmethod(functional.binary_cross_entropy_with_logits)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {
            "weight": self.weight, "pos_weight": self.pos_weight, "reduction": self.reduction
        }  # fmt: skip


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of classes."""

    function = staticmethod(functional.nll_loss)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of the function."""
        return {
            "weight": self.weight, "ignore_index": self.ignore_index, "reduction": self.reduction
        }  # fmt: skip


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of the softmax of logits; see ``functional.cross_entropy``."""

    function = staticmethod(functional.cross_entropy)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.cross_entropy(
            input, target, self.__dict__["_buffers"]["weight"], None, self.ignore_index, None,
            self.reduction, self.label_smoothing,
        )  # fmt: skip
