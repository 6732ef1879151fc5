"""Random arrays as Python text: dtypes, special values, memory layouts."""

from __future__ import annotations

import numpy as np

from .grammar import DTYPES

SHAPES = (
    (), (), (1,), (2,), (3,), (3,), (5,), (8,), (17,), (0,), (2, 3), (3, 2), (3, 3), (2, 2), (1, 3),
    (3, 1), (4, 4), (0, 3), (2, 0), (2, 3, 2), (1, 2, 3), (2, 1, 4), (33,), (67,), (5, 9),
)  # fmt: skip

LAYOUTS = {
    "C": "{}",
    "Fortran": "np.asfortranarray({})",
    "strided": "np.repeat({}, 2, axis=-1)[..., ::2]",
    "negative": "np.flip(np.flip({}).copy())",
    "broadcast": "np.broadcast_to({}[..., :1], {}.shape)",
    "misaligned": "np.frombuffer(bytearray(1) + {}.tobytes(), 'u1')[1:].view('{dtype}')"
    ".reshape({shape})",
    "read-only": "np.frombuffer({}.tobytes(), '{dtype}').reshape({shape})",
    "big-endian": "{}.astype('>{dtype}')",
    "transposed": "np.ascontiguousarray({}.T).T",
}  # fmt: skip


def _special(dtype: np.dtype) -> list[object]:
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [info.min, info.max, info.max - 1, 0, 1, 1 if dtype.kind == "u" else -1]
    info = np.finfo(dtype)
    return [np.nan, np.inf, -np.inf, -0.0, 0.0, info.tiny, info.max, -info.max,
            info.smallest_subnormal, 1 - info.epsneg, 1 + info.eps, 1 / info.eps]  # fmt: skip


def _numbers(rng: np.random.Generator, dtype: np.dtype, size: int, special: float) -> list[object]:
    values = []
    for _ in range(size):
        if rng.random() < special:
            values.append(_special(dtype)[rng.integers(len(_special(dtype)))])
        elif dtype.kind == "f":
            values.append(dtype.type(rng.choice([rng.normal(), rng.integers(-4, 5) / 2])))
        else:
            values.append(int(rng.integers(0 if dtype.kind in "ub" else -5, 9)))
    return [float(v) if isinstance(v, np.floating) else v for v in values]


def _text(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], special: float) -> str:
    size = min(int(np.prod(shape)), 12)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        pairs = zip(*(_numbers(rng, part, size, special) for _ in range(2)), strict=True)
        numbers = "[" + ", ".join(f"complex({a!r}, {b!r})" for a, b in pairs) + "]"
    else:
        numbers = str([bool(v) for v in _numbers(rng, dtype, size, special)]
                      if dtype.kind == "b" else _numbers(rng, dtype, size, special))  # fmt: skip
    array = f"np.array({numbers}, '{dtype.str[1:]}')"
    return f"np.resize({array}, {shape})"


EXTENDED = np.dtype(np.longdouble).str[1:]
"""What processors compute with beyond double precision; double precision itself on some."""


def drawn_array(rng: np.random.Generator, dtypes: tuple[str, ...] = (*DTYPES, EXTENDED)) -> str:
    """The text of a random array."""
    dtype = np.dtype(str(rng.choice(dtypes)))
    shape = SHAPES[rng.integers(len(SHAPES))]
    special = float(rng.choice([0.0, 0.0, 0.15, 0.5]))
    plain = _text(rng, dtype, shape, special)
    layout = LAYOUTS[str(rng.choice(list(LAYOUTS)))] if rng.random() < 0.5 else "{}"
    if not shape or 0 in shape:
        layout = "{}"
    return (
        layout.replace("{dtype}", dtype.str[1:]).replace("{shape}", str(shape)).replace("{}", plain)
    )
