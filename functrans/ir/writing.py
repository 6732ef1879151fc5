"""Programs as JSON: what files and hashes have in common.

Here: ``Writer``. Not here: single values (``ir.encoding``), the archive around the JSON and the way
back (``ir.serialize``).

Layer: ``ir``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.annotations import Annotation
from functrans.core.avals import aval_of_plain
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.source import resolve
from functrans.core.values import Array
from functrans.errors import JaxprTypeError, UnsupportedOperationError
from functrans.ir.encoding import Unencodable, encode_aval, encode_value
from functrans.ir.printing import callable_text
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class SavedHook:
    """What is left of a function attached to a program that went through a file: its name."""

    name: str

    def __str__(self) -> str:
        """The name."""
        return self.name


class Table:
    """Values numbered in order of first use."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}

    def __call__(self, key: object) -> int:
        """The number of a value."""
        return self.number.setdefault(key, len(self.number))


class Writer:
    """Encodes programs as JSON.

    Attributes:
      action: what is being done, for messages: ``save``.
      subprogram: what stands for a sub-program.
      stray: what stands for a parameter that has no encoding; ``None`` refuses it.
    """

    def __init__(
        self,
        action: str,
        subprogram: Callable[[Jaxpr], Any],
        stray: Callable[[Any], Any] | None = None,
    ) -> None:
        self.action = action
        self.subprogram = subprogram
        self.stray = stray
        self.avals = Table()
        self.literals = Table()

    def structure(self, jaxpr: Jaxpr, name_of: Callable[[Any], Any]) -> dict[str, Any]:
        """Variables, equations and results: all of a program that a hash covers but constants."""
        number: dict[Any, int] = {}
        for var in (*jaxpr.constvars, *jaxpr.invars):
            number[var] = len(number)
        avals = self.avals
        rows = []
        for eqn in jaxpr.eqns:
            inputs = [self._atom(atom, number) for atom in eqn.inputs]
            outputs = []
            for var in eqn.outputs:
                number[var] = len(number)
                outputs.append(avals(var.aval))
            params = self._params(eqn) if eqn.params else {}
            rows.append([name_of(eqn.primitive), inputs, params, outputs])
        return {
            "constvars": [avals(var.aval) for var in jaxpr.constvars],
            "invars": [avals(var.aval) for var in jaxpr.invars],
            "eqns": rows,
            "outvars": [self._atom(atom, number) for atom in jaxpr.outvars],
            "annotations": self._annotations(jaxpr, number),
        }

    def _atom(self, atom: Atom, number: dict[Any, int]) -> int:
        if type(atom) is Literal:
            return -1 - self.literals(atom)
        if atom not in number:
            raise JaxprTypeError(
                f"{self.action}: {atom!r} is read before it is bound; check_jaxpr says where"
            )
        return number[atom]

    def _params(self, eqn: Equation) -> dict[str, Any]:
        encoded = {}
        for key, value in eqn.params.items():
            try:
                encoded[key] = encode_value(value, self.subprogram, self.stray)
            except Unencodable as problem:
                raise self._refusal(eqn, key, problem.value) from None
        return encoded

    def _refusal(self, eqn: Equation, key: str, value: object) -> UnsupportedOperationError:
        what = (
            f"a Python function, {callable_text(value)}"
            if callable(value)
            else f"of type {type(value).__name__}"
        )
        line = resolve(eqn.source)
        at = f" (at {line})" if line is not None else ""
        return UnsupportedOperationError(
            f"{self.action}: parameter {key} of primitive {eqn.primitive.name}{at} is {what}, "
            "which has no representation as data. Numbers, strings, tuples, dtypes and programs "
            "have one; keep the function in Python and save the program around it, or pickle the "
            "Jaxpr, which refers to functions that their module has under their own name (of "
            "g = custom_jvp(_g) that is _g; a decorated function has hidden it)"
        )

    def _annotations(self, jaxpr: Jaxpr, number: dict[Any, int]) -> list[Any]:
        if not jaxpr.annotations:
            return []
        position = {eqn: i for i, eqn in enumerate(jaxpr.eqns)}
        rows = []
        for key, values in jaxpr.annotations.items():
            place = ["var", number[key]] if isinstance(key, Var) else ["eqn", position[key]]
            rows.append([*place, [self._annotation(value) for value in values]])
        return sorted(rows, key=lambda row: row[:2])

    def _annotation(self, value: object) -> Any:
        if isinstance(value, SavedHook):
            return {"hook": value.name}
        if isinstance(value, Annotation):
            is_text = isinstance(value.value, str)
            return {"note": [value.kind.name, value.value]} if is_text else {"hook": str(value)}
        try:
            return encode_value(value, self.subprogram)
        except Unencodable:
            return {"hook": str(getattr(value, "__name__", None) or type(value).__name__)}

    def literal_rows(self) -> list[Any]:
        """The table of literals."""
        return [
            [encode_value(literal.value, self.subprogram), self.avals(literal.aval)]
            for literal in self.literals.number
        ]

    def aval_rows(self) -> list[Any]:
        """The table of avals."""
        return [encode_aval(aval) for aval in self.avals.number]


def require_plain(const: Array, position: int, action: str) -> None:
    """Refuse a constant that is no data.

    Raises:
      UnsupportedOperationError: it is a tracer.
    """
    if aval_of_plain(const) is None:
        raise UnsupportedOperationError(
            f"{action}: constant {position} of the program is {type(const).__name__}, not an "
            "array: the program was made inside a traced function and captured one of its values. "
            "Pass that value as an argument of the function instead"
        )
