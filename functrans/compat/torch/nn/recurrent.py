"""Recurrent layers as functions: one node per layer and direction.

Not here: the classes (``nn.modules``).

The products with the inputs of all times are one product; the rest is a ``scan``. A mask
``[t, n, 1]`` says which sequences have an element at a time.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans import pytrees as tree
from functrans.autograd.programs import Operation
from functrans.compat.torch.nn.activations import along
from functrans.control.scanning import scan
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.primitives import dot
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te


def _product(x: Array, weight: Any, bias: Array | None) -> Array:
    """``x @ weight.T + bias``."""
    last = len(shape_of(x)) - 1
    out = dot.dot_general(x, weight, ((last,), (1,)), ((), ()))
    return out if bias is None else out + bias


def _gates(x: Array, count: int) -> list[Any]:
    axis = len(shape_of(x)) - 1
    size = shape_of(x)[axis] // count
    return [along(x, axis, i * size, (i + 1) * size) for i in range(count)]


def _lstm_step(given: Array, h: Array, c: Array, weight: Array) -> tuple[Any, Any]:
    """Next state from the product with the input, which has the biases in it."""
    i, f, g, o = _gates(given + _product(h, weight, None), 4)
    c = te.sigmoid(f) * c + te.sigmoid(i) * te.tanh(g)
    return te.sigmoid(o) * te.tanh(c), c


def _gru_step(given: Array, h: Array, weight: Array, bias: Array) -> Array:
    r, z, n = _gates(given, 3)
    own_r, own_z, own_n = _gates(_product(h, weight, bias), 3)
    reset, update = te.sigmoid(r + own_r), te.sigmoid(z + own_z)
    new = te.tanh(n + reset * own_n)
    return new + update * (h - new)


def _relu(x: Any) -> Any:
    return ew.where(x <= 0, 0.0, x)


def _rnn_step(given: Array, h: Array, weight: Array, is_relu: bool) -> Array:
    pre = given + _product(h, weight, None)
    return _relu(pre) if is_relu else te.tanh(pre)


def _sum_of(a: Array, b: Array) -> Array:
    return None if a is None else a + b


def _over_time(
    step: Callable[..., Any], start: Any, given: Array, mask: object, reverse: bool
) -> tuple[Any, Any]:
    """A ``scan``; where a mask does not hold, the state stays what it is."""
    if mask is None:
        return scan(step, start, given, reverse=reverse)

    def kept(state: Any, now: Any) -> Any:
        new, out = step(state, now[0])
        return tree.map(lambda a, b: ew.where(now[1], a, b), new, state), out

    return scan(kept, start, (given, mask), reverse=reverse)


def _lstm_layer(x: Array, h: Array, c: Array, *weights: Any, reverse: bool) -> tuple[Any, Any, Any]:
    w_ih, w_hh, b_ih, b_hh, w_hr, mask = weights
    given = _product(x, w_ih, _sum_of(b_ih, b_hh))

    def step(state: Sequence[Array], now: Array) -> Any:
        h, c = _lstm_step(now, state[0], state[1], w_hh)
        if w_hr is not None:
            h = _product(h, w_hr, None)
        return (h, c), h

    (h, c), out = _over_time(step, (h, c), given, mask, reverse)
    return out, h, c


def _scanned(
    step: Callable[[Array, Array], Array], given: Array, h: Array, mask: object, reverse: bool
) -> tuple[Any, Any]:
    """All states and the last one of a layer whose state is its output."""

    def advance(h: Array, now: Array) -> Any:
        h = step(now, h)
        return h, h

    h, out = _over_time(advance, h, given, mask, reverse)
    return out, h


def _gru_layer(x: Array, h: Array, *weights: Any, reverse: bool) -> tuple[Any, Any]:
    w_ih, w_hh, b_ih, b_hh, mask = weights
    given = _product(x, w_ih, b_ih)
    return _scanned(lambda now, h: _gru_step(now, h, w_hh, b_hh), given, h, mask, reverse)


def _rnn_layer(x: Array, h: Array, *weights: Any, reverse: bool, is_relu: bool) -> tuple[Any, Any]:
    w_ih, w_hh, b_ih, b_hh, mask = weights
    given = _product(x, w_ih, _sum_of(b_ih, b_hh))
    return _scanned(lambda now, h: _rnn_step(now, h, w_hh, is_relu), given, h, mask, reverse)


def _lstm_cell(x: Array, h: Array, c: Array, *weights: Any) -> tuple[Any, Any]:
    w_ih, w_hh, b_ih, b_hh = weights
    return _lstm_step(_product(x, w_ih, _sum_of(b_ih, b_hh)), h, c, w_hh)


def _gru_cell(x: Array, h: Array, *weights: Any) -> Array:
    w_ih, w_hh, b_ih, b_hh = weights
    return _gru_step(_product(x, w_ih, b_ih), h, w_hh, b_hh)


def _rnn_cell(x: Array, h: Array, *weights: Any, is_relu: bool) -> Array:
    w_ih, w_hh, b_ih, b_hh = weights
    return _rnn_step(_product(x, w_ih, _sum_of(b_ih, b_hh)), h, w_hh, is_relu)


lstm_layer: Callable[..., Any] = Operation("MkldnnRnnLayer", _lstm_layer)
"""``(x[t, n, i], h, c, w_ih, w_hh, b_ih, b_hh, w_hr, mask, reverse=) -> (out[t, n, h], h, c)``."""
gru_layer: Callable[..., Any] = Operation("Gru", _gru_layer)
"""``(x[t, n, i], h, w_ih, w_hh, b_ih, b_hh, mask, reverse=) -> (out[t, n, h], h)``."""
rnn_layer: Callable[..., Any] = Operation("Rnn", _rnn_layer)
"""``(x[t, n, i], h, w_ih, w_hh, b_ih, b_hh, mask, reverse=, is_relu=) -> (out[t, n, h], h)``."""
lstm_cell: Callable[..., Any] = Operation("LstmCell", _lstm_cell)
"""``(x[n, i], h, c, w_ih, w_hh, b_ih, b_hh) -> (h, c)``."""
gru_cell: Callable[..., Any] = Operation("GruCell", _gru_cell)
"""``(x[n, i], h, w_ih, w_hh, b_ih, b_hh) -> h``."""
rnn_cell: Callable[..., Any] = Operation("RnnCell", _rnn_cell)
"""``(x[n, i], h, w_ih, w_hh, b_ih, b_hh, is_relu=) -> h``."""
