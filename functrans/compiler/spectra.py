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
from functrans.passes.staging import stage
from functrans.primitives import fft, movement
from functrans.primitives.complex_parts import conjugate, real_p
from functrans.primitives.elementwise import multiply_p
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast_p


def with_half_spectra(jaxpr: Jaxpr) -> Jaxpr:
    """The program with real transforms where one side of a complex one is real."""
    if not any(eqn.primitive is fft.fft_c2c_p for eqn in jaxpr.eqns):
        return jaxpr
    program = _Program(jaxpr)
    for eqn in jaxpr.eqns:
        found = program.of_real(eqn) or program.to_real(eqn) or [eqn]
        program.eqns.extend(found)
        program.makers.update({var: own for own in found for var in own.outputs})
    return replace(jaxpr, eqns=tuple(program.eqns), annotations={}, cache={})


class _Program:
    """The equations so far, by what they make, and how often variables are read."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.eqns: list[Equation] = []
        self.makers: dict[Any, Equation] = {}
        self.uses = Counter(x for eqn in jaxpr.eqns for x in eqn.inputs if isinstance(x, Var))
        self.uses.update(x for x in jaxpr.outvars if isinstance(x, Var))

    def of_real(self, eqn: Equation) -> list[Equation] | None:
        """A transform of a real array that was made complex."""
        if eqn.primitive is not fft.fft_c2c_p or eqn.inputs[0].aval.dtype.kind != "c":
            return None
        operand, factor = self.scaled(eqn.inputs[0])
        made = self.makers.get(operand)
        if made is None or made.primitive is not cast_p:
            return None
        (source,) = made.inputs
        if isinstance(source, Literal) or source.aval.dtype.kind != "f":
            return None
        if fft.spectrum_dtype(source.aval.dtype) != eqn.inputs[0].aval.dtype:
            return None
        return _written(eqn, source, lambda x: fft.fft_c2c(_times(x, factor), **eqn.params))

    def to_real(self, eqn: Equation) -> list[Equation] | None:
        """The real part of a transform that nothing else reads."""
        is_part = eqn.primitive is real_p or (
            eqn.primitive is cast_p and eqn.outputs[0].aval.dtype.kind == "f"
        )
        if not is_part or eqn.inputs[0].aval.dtype.kind != "c":
            return None
        result, factor = self.scaled(eqn.inputs[0])
        made = self.makers.get(result)
        if made is None or made.primitive is not fft.fft_c2c_p:
            return None
        (operand,), axes = made.inputs, made.params["axes"]
        if any(self.uses[x] != 1 for x in (eqn.inputs[0], result) if isinstance(x, Var)):
            return None
        is_narrow = eqn.outputs[0].aval.dtype.itemsize * 2 != operand.aval.dtype.itemsize
        if operand.aval.dtype.kind != "c" or len(axes) != 1 or is_narrow:
            return None

        def run(z: Any) -> Any:
            half, n = _symmetric(z if made.params["inverse"] else conjugate(z), axes[0])
            return _times(fft.irfft(half, axes, n), factor)

        return _written(eqn, operand, run)

    def scaled(self, atom: Atom) -> tuple[Atom, Literal | None]:
        """What an atom is the product of, if the other factor is a real number; that number."""
        made = self.makers.get(atom)
        if made is not None and made.primitive is multiply_p:
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


def _written(eqn: Equation, operand: Atom, run: Callable[[Any], Any]) -> list[Equation]:
    """The equations of a function of an operand, the last of which gives the equation's result."""
    program = stage(lambda x: [run(x)], [operand.aval.strong()], eqn.primitive.name)
    names: dict[Any, Any] = {program.invars[0]: operand, program.outvars[0]: eqn.outputs[0]}
    return [
        replace(
            own,
            inputs=tuple([names.get(x, x) if isinstance(x, Var) else x for x in own.inputs]),
            outputs=tuple([names.setdefault(var, Var(var.aval)) for var in own.outputs]),
            source=eqn.source,
        )
        for own in program.eqns
    ]
