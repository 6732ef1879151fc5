"""Recurrent layers as modules: ``LSTM``, ``GRU``, ``RNN`` and their cells.

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.composites import composite
from functrans.autograd.promotion import torch_tensor
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import functional, init, recurrent
from functrans.compat.torch.nn.layer_modules import empty_parameter
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.packing import PackedSequence, mask_of, packed_like, padded_of
from functrans.core.boundary import warn
from functrans.primitives import movement

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


def _joined(xs: list[Tensor], axis: int) -> Tensor:
    if len(xs) == 1:
        return xs[0]
    return composite("Cat", lambda *values: movement.concatenate(values, axis), *xs)


def _stacked(xs: list[Tensor]) -> Tensor:
    return composite("Stack", lambda *values: movement.stack(values, 0), *xs)


class RNNBase(Module):
    """What recurrent layers have in common: parameters, layers, directions.

    Attributes:
      mode: ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``.
    """

    gates: ClassVar[int]
    mode: str

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: object = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        if (
            not isinstance(dropout, (int, float))
            or isinstance(dropout, bool)
            or not 0 <= dropout <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}"
            )
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = self.gates * hidden_size
        out = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            inner = input_size if layer == 0 else out * directions
            for suffix in self._suffixes(layer):
                setattr(self, f"weight_ih_{suffix}", empty_parameter((rows, inner), dtype))
                setattr(self, f"weight_hh_{suffix}", empty_parameter((rows, out), dtype))
                if bias:
                    setattr(self, f"bias_ih_{suffix}", empty_parameter((rows,), dtype))
                    setattr(self, f"bias_hh_{suffix}", empty_parameter((rows,), dtype))
                if proj_size:
                    setattr(self, f"weight_hr_{suffix}", empty_parameter((out, hidden_size), dtype))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Accepted for torch's sake."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """Parameters by layer and direction."""
        return [
            self._weights(suffix)
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _weights(self, suffix: str) -> list[Any]:
        return [x for x in self._five(suffix) if x is not None]

    def extra_repr(self) -> str:
        """The settings."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if not self.bias:
            text += f", bias={self.bias}"
        if self.batch_first:
            text += f", batch_first={self.batch_first}"
        if self.dropout:
            text += f", dropout={self.dropout}"
        if self.bidirectional:
            text += f", bidirectional={self.bidirectional}"
        return text

    def _run(self, x: Any, state: list[Any], weights: list[Any], mask: Any, reverse: bool) -> Any:
        """One layer in one direction: ``(out, *last state)``."""
        raise NotImplementedError

    def _sizes(self) -> list[int]:
        """Extent of each part of the state."""
        return [self.hidden_size]

    def _checked(
        self, x: Tensor, states: list[Any] | None, batch_first: bool
    ) -> tuple[Any, list[Any], bool]:
        """Input ``[t, n, i]``, states ``[layers, n, h]``, and whether there is a batch."""
        ndim = len(x.shape)
        if ndim not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {ndim}D instead"
            )
        is_batched = ndim == 3
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{x.shape[-1]}"
            )
        own = self._parameters["weight_ih_l0"]
        if x.dtype != own.dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({own.dtype}). "
            )
        if not is_batched:
            x = x.reshape((x.shape[0], 1, x.shape[1]))
        elif batch_first:
            x = _swapped(x)
        n = x.shape[1]
        count = self.num_layers * (2 if self.bidirectional else 1)
        if states is None:
            states = [Tensor.of(np.zeros((count, n, size), x.dtype)) for size in self._sizes()]
        else:
            for number, (state, size) in enumerate(zip(states, self._sizes(), strict=True)):
                if len(state.shape) != ndim:
                    kind = "batched 3-D" if is_batched else "unbatched 2-D"
                    raise RuntimeError(
                        f"For {kind} input, hx {'and cx ' * (len(states) > 1)}should also be "
                        f"{ndim}-D but got {len(state.shape)}-D tensor"
                    )
                expected = (count, n, size) if is_batched else (count, size)
                if state.shape != expected:
                    name = f"hidden[{number}]" if len(states) > 1 else "hidden"
                    raise RuntimeError(
                        f"Expected {name} size {(count, n, size)}, got {list(state.shape)}"
                    )
            if not is_batched:
                states = [s.reshape((count, 1, s.shape[1])) for s in states]
        return x, states, is_batched

    def _forward(self, x: Any, given: list[Any] | None) -> tuple[Any, list[Any]]:
        packed = x if isinstance(x, PackedSequence) else None
        mask = None
        if packed is not None:
            if len(packed.data.shape) != 2:
                raise RuntimeError(f"input must have 2 dimensions, got {len(packed.data.shape)}")
            x, mask = padded_of(packed), torch_tensor(mask_of(packed)[..., None])
            if packed.sorted_indices is not None and given is not None:
                given = [state.index_select(1, packed.sorted_indices) for state in given]
        batch_first = self.batch_first and packed is None
        x, states, is_batched = self._checked(x, given, batch_first)
        finals: list[list[Any]] = [[] for _ in states]
        k = 0
        for layer in range(self.num_layers):
            outs = []
            for direction, suffix in enumerate(self._suffixes(layer)):
                start = [state[k] for state in states]
                out, *last = self._run(x, start, self._five(suffix), mask, bool(direction))
                outs.append(out)
                for final, value in zip(finals, last, strict=True):
                    final.append(value)
                k += 1
            x = _joined(outs, 2)
            if self.dropout and layer < self.num_layers - 1:
                data = x if packed is None else packed_like(x, packed).data
                x = functional.dropout(data, self.dropout, self.training)
                x = x if packed is None else padded_of(packed._replace(data=x))
        lasts: list[Any] = [_stacked(final) for final in finals]
        if packed is not None:
            if packed.unsorted_indices is not None:
                lasts = [last.index_select(1, packed.unsorted_indices) for last in lasts]
            return packed_like(x, packed), lasts
        if not is_batched:
            return x.reshape((x.shape[0], x.shape[2])), [
                last.reshape((last.shape[0], last.shape[2])) for last in lasts
            ]
        return (_swapped(x) if batch_first else x), lasts

    def _five(self, suffix: str) -> list[Any]:
        """The five parameters of a direction, ``None`` where there is none."""
        get = self._parameters.get
        return [
            get(f"{name}_{suffix}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        ]


def _swapped(x: Tensor) -> Tensor:
    """The first two axes exchanged."""
    return x.transpose(0, 1)


class LSTM(RNNBase):
    """Long short-term memory.

    Args:
      input_size: extent of the input's last axis.
      hidden_size: extent of the state.
      num_layers: layers on top of one another.
      bias: whether biases are added.
      batch_first: axes ``[n, t, i]`` in place of ``[t, n, i]``.
      dropout: between layers, in training.
      bidirectional: whether each layer also runs backwards.
      proj_size: extent to which the output is projected, if not 0.
      device: accepted for torch's sake.
      dtype: of the parameters, by default float32.

    Reference: Hochreiter & Schmidhuber, Long short-term memory, Neural Computation 9 (1997).

    Example:
      >>> from functrans.autograd import tensor
      >>> out, (h, c) = LSTM(1, 2)(tensor([[[0.5]]], dtype="float32"))
      >>> out.shape, h.shape
      (torch.Size([1, 1, 2]), torch.Size([1, 1, 2]))
    """

    gates = 4
    mode = "LSTM"

    def _sizes(self) -> list[int]:
        return [self.proj_size or self.hidden_size, self.hidden_size]

    def _run(
        self, x: Tensor, state: list[Any], weights: list[Any], mask: Any, reverse: bool
    ) -> tuple[Any, ...]:
        return recurrent.lstm_layer(x, *state, *weights, mask, reverse=reverse)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """``(output, (h, c))`` of a sequence."""
        out, (h, c) = self._forward(input, None if hx is None else list(hx))
        return out, (h, c)


class _WithoutProjection(RNNBase):
    """Layers whose state is their output."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("proj_size"):
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(*args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """``(output, h)`` of a sequence."""
        out, (h,) = self._forward(input, None if hx is None else [hx])
        return out, h


class GRU(_WithoutProjection):
    """Gated recurrent units; arguments as ``LSTM`` without ``proj_size``.

    Reference: Cho et al., Learning phrase representations, EMNLP 2014.
    """

    gates = 3
    mode = "GRU"

    def _run(
        self, x: Any, state: list[Any], weights: list[Any], mask: Any, reverse: bool
    ) -> tuple[Tensor, ...]:
        return recurrent.gru_layer(x, *state, *weights[:4], mask, reverse=reverse)


class RNN(_WithoutProjection):
    """A layer whose state is an activation of the sum of two products.

    Args:
      input_size: extent of the input's last axis.
      hidden_size: extent of the state.
      num_layers: layers on top of one another.
      nonlinearity: ``"tanh"`` or ``"relu"``.
      *args: further arguments as of ``LSTM``.
      **kwargs: likewise.

    Raises:
      ValueError: there is no such activation.
    """

    gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity
        self.mode = f"RNN_{nonlinearity.upper()}"

    def _run(
        self, x: Tensor, state: list[Any], weights: list[Any], mask: Any, reverse: bool
    ) -> tuple[Tensor, ...]:
        return recurrent.rnn_layer(
            x, *state, *weights[:4], mask, reverse=reverse, is_relu=self.nonlinearity == "relu"
        )


# cells -------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """What cells have in common."""

    gates: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: object = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        refuse_device(device)
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self.gates * hidden_size
        self.weight_ih = empty_parameter((rows, input_size), dtype)
        self.weight_hh = empty_parameter((rows, hidden_size), dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter((rows,), dtype) if bias else None)
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        """The settings."""
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias={self.bias}"

    def _weights(self) -> tuple[Any, ...]:
        get = self._parameters.get
        return get("weight_ih"), get("weight_hh"), get("bias_ih"), get("bias_hh")

    def _start(self, input: Tensor, states: Any, count: int) -> tuple[Any, list[Any], bool]:
        ndim = len(input.shape)
        if ndim not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {ndim}D instead"
            )
        x = input if ndim == 2 else input.reshape((1, *input.shape))
        if states is None:
            states = [
                Tensor.of(np.zeros((x.shape[0], self.hidden_size), x.dtype)) for _ in range(count)
            ]
        elif ndim == 1:
            states = [s.reshape((1, *s.shape)) for s in states]
        return x, list(states), ndim == 1


class LSTMCell(RNNCellBase):
    """One step of ``LSTM``: ``(h, c)``."""

    gates = 4

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state."""
        x, states, is_single = self._start(input, hx, 2)
        h, c = recurrent.lstm_cell(x, *states, *self._weights())
        return (h.reshape(h.shape[1:]), c.reshape(c.shape[1:])) if is_single else (h, c)


class GRUCell(RNNCellBase):
    """One step of ``GRU``."""

    gates = 3

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state."""
        x, states, is_single = self._start(input, None if hx is None else [hx], 1)
        h = recurrent.gru_cell(x, *states, *self._weights())
        return h.reshape(h.shape[1:]) if is_single else h


class RNNCell(RNNCellBase):
    """One step of ``RNN``."""

    gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: object = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state."""
        x, states, is_single = self._start(input, None if hx is None else [hx], 1)
        h = recurrent.rnn_cell(x, *states, *self._weights(), is_relu=self.nonlinearity == "relu")
        return h.reshape(h.shape[1:]) if is_single else h
