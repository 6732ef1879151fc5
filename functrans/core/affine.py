"""Indices that are affine in loop variables.

Here: ``Affine``, exact arithmetic on ``sum(coefficient * variable) + constant``. Not here: what the
variables are (``compiler.nests``), and what is read where (``core.lowering.IndexMap``).

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Sequence


class Affine:
    """An index: an integer constant plus integer multiples of loop variables.

    Attributes:
      terms: ``(variable, coefficient)`` pairs, coefficients not 0, by number of the variable.
      constant: the rest.
    """

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: tuple[tuple[int, int], ...], constant: int) -> None:
        self.terms = terms
        self.constant = constant
        self._hash = hash((terms, constant))

    def __eq__(self, other: object) -> bool:
        """Same terms and constant; a constant equals its integer."""
        if type(other) is Affine:
            return self.constant == other.constant and self.terms == other.terms
        return not self.terms and self.constant == other

    def __hash__(self) -> int:
        """Hash of terms and constant."""
        return self._hash if self.terms else hash(self.constant)

    def __repr__(self) -> str:
        """``2*i0 + i1 - 3``."""
        text = " + ".join(f"{'' if c == 1 else f'{c}*'}i{v}" for v, c in self.terms)
        if not text:
            return str(self.constant)
        if not self.constant:
            return text
        return f"{text} {'+' if self.constant > 0 else '-'} {abs(self.constant)}"

    def __add__(self, other: Affine | int) -> Affine:
        """Sum with an index or an integer."""
        if isinstance(other, int):
            return Affine(self.terms, self.constant + other) if other else self
        if not other.terms:
            return Affine(self.terms, self.constant + other.constant)
        found = dict(self.terms)
        for variable, coefficient in other.terms:
            found[variable] = found.get(variable, 0) + coefficient
        terms = tuple(sorted((v, c) for v, c in found.items() if c))
        return Affine(terms, self.constant + other.constant)

    __radd__ = __add__

    def __sub__(self, other: Affine | int) -> Affine:
        """Difference with an index or an integer."""
        return self + other * -1

    def __rsub__(self, other: int) -> Affine:
        """Difference of an integer and this index."""
        return self * -1 + other

    def __neg__(self) -> Affine:
        """The negative index."""
        return self * -1

    def __mul__(self, factor: int) -> Affine:
        """Multiple by an integer."""
        if factor == 1:
            return self
        if factor == 0:
            return Affine((), 0)
        return Affine(tuple([(v, c * factor) for v, c in self.terms]), self.constant * factor)

    __rmul__ = __mul__

    @property
    def is_constant(self) -> bool:
        """Whether no variable takes part."""
        return not self.terms

    def coefficient(self, variable: int) -> int:
        """What a variable is multiplied by."""
        for v, c in self.terms:
            if v == variable:
                return c
        return 0

    def split(self, divisor: int) -> tuple[Affine, Affine] | None:
        """Quotient and non-negative remainder, if the quotient is affine for sure.

        It is where all coefficients are multiples of the divisor.
        """
        if any(c % divisor for _, c in self.terms):
            return None
        quotient, rest = divmod(self.constant, divisor)
        return Affine(tuple([(v, c // divisor) for v, c in self.terms]), quotient), Affine((), rest)

    def bounds(self, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Least and greatest value for variables in half-open ranges that are not empty."""
        low = high = self.constant
        for v, c in self.terms:
            start, stop = ranges[v]
            if c > 0:
                low += c * start
                high += c * (stop - 1)
            else:
                low += c * (stop - 1)
                high += c * start
        return low, high


def constant(value: int) -> Affine:
    """An index that is an integer."""
    return Affine((), value)


def variable(number: int) -> Affine:
    """An index that is a loop variable."""
    return Affine(((number, 1),), 0)


def as_affine(index: Affine | int) -> Affine:
    """An index from an integer or an index."""
    return index if isinstance(index, Affine) else Affine((), int(index))
