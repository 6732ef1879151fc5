"""How tensors print.

Here: ``repr`` of tensors and ``set_printoptions``. Not here: how modules print
(``compat.torch.nn``).

A tensor names its dtype unless that is the default of the namespace it comes from: float64 in
``functrans.autograd``, ``get_default_dtype()`` in ``functrans.compat.torch``. Numbers are printed
as NumPy prints them, and as PyTorch does where ``sci_mode`` is set.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.labels import edge_of
from functrans.autograd.promotion import default_dtype, torch_defaults
from functrans.autograd.recording import node_of
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer
from functrans.passes.pushing import PushingTracer

_DEFAULTS: dict[str, Any] = {
    "precision": 4, "threshold": 1000, "edgeitems": None, "linewidth": None, "sci_mode": None,
}  # fmt: skip
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options = dict(_DEFAULTS)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Say how tensors print, for the process.

    Args:
      precision: digits behind the point.
      threshold: number of elements above which only the first and the last ones are printed.
      edgeitems: how many of these along each axis.
      linewidth: characters in a line.
      profile: ``"default"``, ``"short"`` or ``"full"``, before the other options.
      sci_mode: whether numbers are printed with exponents; ``None``: in NumPy's manner.

    Raises:
      ValueError: there is no such profile.

    Example:
      >>> from functrans.autograd import tensor
      >>> set_printoptions(precision=2)
      >>> tensor([1 / 3])
      tensor([0.33])
      >>> set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, but got {profile!r}")
        _options.update(_PROFILES[profile])
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def _alike(numbers: list[Any]) -> Callable[[Any], str]:
    """How numbers are written under ``sci_mode``: with as many digits, and as wide as the widest.

    Those that are whole have none behind the point; zeros, NaN and infinities do not count.
    """
    if any(isinstance(x, np.complexfloating) for x in numbers):
        real, imag = _alike([x.real for x in numbers]), _alike([x.imag for x in numbers])
        return lambda x: f"{real(x.real)}+{imag(x.imag).strip()}j".replace("+-", "-")
    counted = [x for x in numbers if x and math.isfinite(x)]
    is_whole = not any(x % 1 for x in counted)
    form, point = f".{_options['precision']}f", ""
    if _options["sci_mode"] and counted:
        form = form[:-1] + "e"
    elif is_whole:
        form, point = ".0f", "."

    def written(x: Any) -> str:
        return f"{x:{form}}{point if math.isfinite(x) else ''}"

    width = max((len(written(x)) for x in counted), default=0)
    return lambda x: written(x).rjust(width)


def _numbers(value: np.ndarray) -> str:
    if value.dtype.kind == "V":  # bfloat16
        value = value.astype(np.float32)
    threshold = _options["threshold"]
    text: Any = functools.partial(
        np.array2string,
        value,
        max_line_width=_options["linewidth"],
        precision=_options["precision"],
        separator=", ",
        prefix="tensor(",
        threshold=value.size + 1 if threshold == math.inf else int(threshold),
        edgeitems=_options["edgeitems"],
    )
    if _options["sci_mode"] is None or value.dtype.kind not in "fc":
        return str(text())
    shown: list[Any] = []
    text(formatter={"all": lambda x: str(shown.append(x))})  # type: ignore[func-returns-value]  # notes it
    return str(text(formatter={"all": _alike(shown)}))


def _dtype_text(x: Tensor) -> str | None:
    """How the dtype is told; ``None`` if it goes without saying."""
    dtype = x._value.dtype
    default = torch_defaults.dtype if x._follows else default_dtype
    if dtype == default:
        return None
    usual = (np.int64, bool, np.result_type(default, np.complex64))
    if dtype in usual and 0 not in x._value.shape:  # elements would show what they are
        return None
    return f"dtype={'torch.' if x._follows else ''}{dtype}"


def _repr(self: Tensor) -> str:
    """``tensor([1., 2.], requires_grad=True)``."""
    extras = []
    try:
        node = node_of(self)  # first: a view takes over what was written to its base
    except RuntimeError:  # a view whose base was written to in another mode
        node = None
        extras.append("grad_fn=<Invalid>")
    value = self._memory()
    tangent = None
    while isinstance(value, PushingTracer) and value._trace.gives_values:  # of a dual level
        tangent, inner = value._tangent, value._value
        value = inner._memory() if isinstance(inner, Tensor) else inner
    text = repr(value) if isinstance(value, Tracer) else _numbers(np.asarray(value))
    dtype = _dtype_text(self)
    if dtype is not None:
        extras.insert(0, dtype)
    if 0 in self.shape and len(self.shape) != 1:
        extras.insert(0, f"size={tuple(self.shape)}")
    if node is not None:
        if node.primitive is None:
            extras.append("requires_grad=True")
        else:
            extras.append(f"grad_fn=<{edge_of(node)[0].name()}>")
    if tangent is not None:
        if not isinstance(tangent, Tensor):
            tangent = Tensor.of(np.asarray(tangent))
            tangent._follows = self._follows
        extras.append(f"tangent={_repr(tangent)}")
    return f"tensor({', '.join([text, *extras])})"


METHODS: dict[str, Any] = {"__repr__": _repr}
