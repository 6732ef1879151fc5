"""Fourier transforms of which one side is real, at half of the work.

Here: ``with_half_spectra``. Code writes ``fft(x)`` of a real ``x``, ``ifft(z).real``; derivatives
add casts and factors between::

    fft(complex(x) * c)   ->  fft(x * c)        which computes half of the spectrum
    (fft(z) * c).real     ->  irfft(h) * c      h_k = (z_k + conj(z_(n - k))) / 2, k = 0 ... n // 2

The real part of an inverse transform is the transform of the part of ``z`` that is symmetric as the
spectrum of a real signal is; of a forward transform, the same of ``conj(z)``. Both are rounded in
another way than the complex transform, by no more. Not here: the transforms
(``primitives.native.ufuncs``).

Layer: ``compiler``. Reference: Van Loan, Computational Frameworks for the Fast Fourier Transform
(1992), ch. 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import Structured
from functrans.core.primitive import Primitive, linear
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import Found, Walk, walk_forward
from functrans.passes.staging import stage
from functrans.primitives import fft, movement
from functrans.primitives.complex_parts import conjugate, real_p
from functrans.primitives.elementwise import multiply_p
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast_p

_half_spectrum_p = Primitive(
    "half_spectrum",
    impl=lambda x, *, jaxpr: tuple(evaluate(jaxpr, [x])),
    abstract_eval=lambda x, *, jaxpr: jaxpr.out_avals,
    jvp=linear,
    lower=Structured("call"),
)
"""What stands for a transform until its program is written out."""


def with_half_spectra(jaxpr: Jaxpr) -> Jaxpr:
    """The program with real transforms where one side of a complex one is real."""
    if not any(eqn.primitive is fft.fft_c2c_p for eqn in jaxpr.eqns):
        return jaxpr
    uses = Counter(x for eqn in jaxpr.eqns for x in eqn.inputs if isinstance(x, Var))
    uses.update(x for x in jaxpr.outvars if isinstance(x, Var))

    def of_real(eqn: Equation, walk: Walk) -> Found:
        if eqn.primitive is not fft.fft_c2c_p or eqn.inputs[0].aval.dtype.kind != "c":
            return None
        operand, factor = _scaled(eqn.inputs[0], walk)
        made = walk.maker(operand)
        if made is None or made.primitive is not cast_p:
            return None
        (source,) = made.inputs
        if isinstance(source, Literal) or source.aval.dtype.kind != "f":
            return None
        if fft._spectrum_dtype(source.aval.dtype) != eqn.inputs[0].aval.dtype:
            return None
        return _called(eqn, source, lambda x: fft.fft_c2c(_times(x, factor), **eqn.params))

    def to_real(eqn: Equation, walk: Walk) -> Found:
        is_part = eqn.primitive is real_p or (
            eqn.primitive is cast_p and eqn.outputs[0].aval.dtype.kind == "f"
        )
        (spectrum, *_) = eqn.inputs
        if not is_part or spectrum.aval.dtype.kind != "c":
            return None
        result, factor = _scaled(spectrum, walk, uses)
        made = walk.maker(result)
        if made is None or made.primitive is not fft.fft_c2c_p:
            return None
        if uses[made.outputs[0]] != 1:
            return None
        (operand,) = made.inputs
        axes, is_inverse = made.params["axes"], made.params["inverse"]
        is_narrow = eqn.outputs[0].aval.dtype.itemsize * 2 != operand.aval.dtype.itemsize
        if operand.aval.dtype.kind != "c" or len(axes) != 1 or is_narrow:
            return None

        def run(z: Any) -> Any:
            half, n = _symmetric(z if is_inverse else conjugate(z), axes[0])
            return _times(fft.irfft(half, axes, n), factor)

        return _called(eqn, operand, run)

    return walk_forward(jaxpr, (of_real, to_real))


def _scaled(
    atom: Atom, walk: Walk, uses: Counter[Var] | None = None
) -> tuple[Atom, Literal | None]:
    """What an atom is the product of, if the other factor is a real number, and that number."""
    made = walk.maker(atom)
    if made is None or made.primitive is not multiply_p or (uses and uses[made.outputs[0]] != 1):
        return atom, None
    for own, other in (made.inputs, made.inputs[::-1]):
        is_number = isinstance(other, Literal) and other.aval.dtype.kind in "fi"
        if is_number and isinstance(own, Var) and own.aval.shape == atom.aval.shape:
            return own, other  # type: ignore[return-value]  # it is a literal
    return atom, None


def _times(x: Any, factor: Literal | None) -> Any:
    return x if factor is None else x * factor.value


def _symmetric(z: Any, axis: int) -> tuple[Any, int]:
    """Half of the part of a spectrum that is one of a real signal, and the signal's length."""
    n = z.aval.shape[axis]
    before = (slice(None),) * axis

    def part(start: int, stop: int) -> Any:
        return slice_index(z, BasicIndex((*before, slice(start, stop))))

    middle = n // 2 + 1
    if middle == 1:
        return z, n
    mirrored = conjugate(movement.reverse(part(n - middle + 1, n), (axis,)))
    return movement.concatenate((part(0, 1), (part(1, middle) + mirrored) * 0.5), axis), n


def _called(eqn: Equation, operand: Atom, run: Callable[[Any], Any]) -> Equation:
    """The equation as a call of a function of another operand."""
    program = stage(lambda x: [run(x)], [operand.aval.strong()], eqn.primitive.name)
    return replace(eqn, primitive=_half_spectrum_p, inputs=(operand,), params={"jaxpr": program})
