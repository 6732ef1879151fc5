"""Losses as modules.

Here: rows of functions with settings, and the maker of losses. Not here: what they compute
(``nn.functional``), what makes their classes (``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.losses import reduction_of
from functrans.compat.torch.nn.module_rows import module_class


def resolve_reduction(values: dict[str, Any]) -> None:
    """Give ``reduction`` the meaning of torch's deprecated arguments, which are left out."""
    size_average, reduce = values.pop("size_average", None), values.pop("reduce", None)
    if size_average is not None or reduce is not None:
        values["reduction"] = reduction_of(values["reduction"], size_average, reduce)


def check_reduction(values: dict[str, Any]) -> None:
    """``resolve_reduction``, which also refuses a reduction that there is not."""
    resolve_reduction(values)
    reduction_of(values["reduction"])


def _cross_entropy(self: Any, input: Tensor, target: Tensor) -> Tensor:
    """The loss; arguments in order and a look at the buffers cost less than names."""
    return functional.cross_entropy(
        input, target, self.__dict__["_buffers"]["weight"], None, self.ignore_index, None,
        self.reduction, self.label_smoothing,
    )  # fmt: skip


loss_class = functools.partial(
    module_class, takes="input target", shown="", prepare=resolve_reduction
)
"""``module_class`` for losses of two tensors, unless other arguments are given."""

_loss = functools.partial(loss_class, __name__)

MSELoss = _loss(
    "MSELoss", functional.mse_loss, "Squared differences.", "size_average reduce reduction"
)
L1Loss = _loss("L1Loss", functional.l1_loss, "Absolute differences.")
SoftMarginLoss = _loss(
    "SoftMarginLoss", functional.soft_margin_loss, "``log(1 + exp(-target * input))``."
)
SmoothL1Loss = _loss(
    "SmoothL1Loss", functional.smooth_l1_loss, "Absolute differences, squares near 0."
)
HuberLoss = _loss(
    "HuberLoss", functional.huber_loss,
    "Half the squares of differences up to ``delta``, linear beyond.", "reduction delta",
)  # fmt: skip
KLDivLoss = _loss("KLDivLoss", functional.kl_div, "``target * (log(target) - input)``.")
PoissonNLLLoss = _loss(
    "PoissonNLLLoss", functional.poisson_nll_loss, "Negative log-likelihood of counts."
)
HingeEmbeddingLoss = _loss(
    "HingeEmbeddingLoss", functional.hinge_embedding_loss,
    "``input`` for targets 1, ``max(0, margin - input)`` for targets -1.",
)  # fmt: skip
MarginRankingLoss = _loss(
    "MarginRankingLoss", functional.margin_ranking_loss,
    "``max(0, -target * (input1 - input2) + margin)``.",
    takes="input1 input2 target", prepare=check_reduction,
)  # fmt: skip
BCELoss = _loss("BCELoss", functional.binary_cross_entropy, "Cross entropy of probabilities.")
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", functional.binary_cross_entropy_with_logits,
    "Cross entropy of ``sigmoid(input)`` and ``target``.",
)  # fmt: skip
NLLLoss = _loss("NLLLoss", functional.nll_loss, "Negative log-likelihood of classes.")
CrossEntropyLoss = _loss(
    "CrossEntropyLoss", functional.cross_entropy,
    "Cross entropy of the softmax of logits; see ``functional.cross_entropy``.",
    forward=_cross_entropy,
)  # fmt: skip
