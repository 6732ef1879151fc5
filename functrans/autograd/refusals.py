"""What functions of tensors refuse, in the classes and with the words of PyTorch.

Here: ``asked`` (a value that is not known), ``as_torchs`` (errors of transforms). Not here: the
checks of arguments and results (``autograd.on_values``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from functrans.autograd.modes import modes
from functrans.core.boundary import cause
from functrans.core.dispatch import Tracer
from functrans.core.source import here
from functrans.errors import (
    ConcretizationError,
    ShapeError,
    TensorConcretizationError,
    TensorShapeError,
)

_ITEM = "It looks like you're calling .item() on a Tensor"
_CHOICE = "It looks like you're attempting to use a Tensor in some data-dependent control flow"
_WORDS = {
    "bool()": _CHOICE,
    **dict.fromkeys(
        ("item()", "a Python number", "int()", "index()", "format()", "a formatted string"), _ITEM
    ),
    **dict.fromkeys(
        ("numpy()", "tolist()", "__dlpack__", "pickle", "data_ptr()"),
        "Cannot access data pointer of Tensor that doesn't have storage",
    ),
}
"""By what is asked of a tensor, what PyTorch says to it."""
_OF_BATCHES = {
    _CHOICE: ". We don't support that yet",
    _ITEM: ". We don't support vmap over calling .item() on a Tensor",
}
"""What it says besides, where the tensor is one of a batch."""
_INSTEAD = (
    "Examples of a batch are computed at once, without their values: choose by "
    "torch.where(condition, a, b), compute with tensors in place of numbers, or keep the argument "
    "out of the batch by in_dims=None"
)
_SHAPE = "We do not support batching operators that can output dynamic shape"


def asked(value: Tracer, what: str, asker: str = "") -> Any:
    """The value behind a traced one.

    Args:
      value: it.
      what: what is asked, for the message.
      asker: likewise, in short: one of those that PyTorch has words for.

    Raises:
      TensorConcretizationError: there is none.
    """
    try:
        return value._concrete(what)
    except ConcretizationError as error:
        told = f"{what} of {value._describe()} was asked{here()}. {_INSTEAD}"
        text = f"{_lead(_WORDS.get(asker, _SHAPE))}: {told if modes.batches else error}"
        raise TensorConcretizationError(text) from cause(error)


def _lead(words: str) -> str:
    return f"vmap: {words}{_OF_BATCHES.get(words, '')}" if modes.batches else words


_CLASSES = {ConcretizationError: TensorConcretizationError, ShapeError: TensorShapeError}


@contextmanager
def as_torchs() -> Iterator[None]:
    """Errors that leave a ``with`` block are also of the classes that PyTorch raises."""
    try:
        yield
    except (ConcretizationError, ShapeError) as error:
        if type(error) is ConcretizationError:
            error.args = (f"{_lead(_SHAPE)}: {error}",)
        error.__class__ = _CLASSES.get(type(error), type(error))  # type: ignore[assignment]  # of one layout
        raise
