"""Programs: typed lists of equations in evaluation order.

Here: ``Var``, ``Literal``, ``Equation``, ``Jaxpr``. Not here: how they are printed
(``ir.printing``), checked (``ir.check``), written to files and hashed (``ir.serialize``), made
(``passes.staging``) or rewritten (``passes``).

A forward pass is a loop over ``eqns``, a backward pass a reversed loop; there is no pointer from a
variable to its equation and nothing is recursive in the length of a program. Control flow holds
sub-Jaxprs in ``params``. ``Var``, ``Equation`` and ``Jaxpr`` compare by identity.

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from functrans.core.analyses import analysis
from functrans.core.avals import Aval, ShapedArray, aval_of_plain
from functrans.core.deferred import deferred
from functrans.core.primitive import Primitive
from functrans.core.source import Captured, SourceLine
from functrans.records import dataclass, field

_EMPTY: Mapping[Any, tuple[Any, ...]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A variable, bound once; compares by identity."""

    aval: Aval

    def __repr__(self) -> str:
        """``Var(f64[3])``."""
        return f"Var({self.aval})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar constant in place; compares by value, type and aval (``1``, ``1.0``, ``True``).

    A Python scalar stays one, since it is weak.
    """

    value: Any
    aval: ShapedArray = field(default=None)  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        """Fill in the aval of the value."""
        if self.aval is None:
            aval = aval_of_plain(self.value)
            if aval is None:
                raise TypeError(f"a Literal holds a number, got {type(self.value).__name__}")
            object.__setattr__(self, "aval", aval)

    def __eq__(self, other: object) -> bool:
        """Same type, same aval, same value; NaN equals NaN and -0.0 differs from 0.0."""
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and self.aval == other.aval
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        """Hash by the text of the value and the aval."""
        return hash((repr(self.value), self.aval))


Atom = Var | Literal


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """``outputs = primitive[params](inputs)``.

    Attributes:
      params: static parameters; treat as frozen.
      source: the user's line that made it.
      scope: the name scope it was made in (``ft.named_scope``).
    """

    primitive: Primitive
    inputs: tuple[Atom, ...]
    params: Mapping[str, Any]
    outputs: tuple[Var, ...]
    source: Captured | SourceLine | None = None
    scope: str = ""

    @property
    def effects(self) -> frozenset[str]:
        """Effects of the primitive and of the programs in its parameters."""
        effects = self.primitive.effects
        for jaxpr in subjaxprs(self.params):
            effects = effects | jaxpr.effects
        return effects


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Jaxpr:
    """A closed, typed program.

    Attributes:
      constvars: variables bound to ``consts``.
      consts: arrays captured from outside; a captured writable array is a hidden input, never
        folded into the program.
      invars: arguments.
      eqns: equations in evaluation order.
      outvars: results.
      name: name of the function it came from.
      arg_names: key path of each argument, for messages and printing.
      annotations: Var or Equation to what is attached to it; hooks are annotations.
      cache: what is known of it (``core.analyses``).
    """

    constvars: tuple[Var, ...]
    consts: tuple[Any, ...]
    invars: tuple[Var, ...]
    eqns: tuple[Equation, ...]
    outvars: tuple[Atom, ...]
    name: str = ""
    arg_names: tuple[str, ...] = ()
    annotations: Mapping[Any, tuple[Any, ...]] = field(default_factory=lambda: _EMPTY)
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def in_avals(self) -> tuple[Any, ...]:
        """Avals of the arguments."""
        return tuple(v.aval for v in self.invars)

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """Avals of the results."""
        return tuple(v.aval for v in self.outvars)

    @property
    @analysis
    def effects(self) -> frozenset[str]:
        """Union of the effects of all equations."""
        return frozenset().union(*(eqn.effects for eqn in self.eqns))

    def __str__(self) -> str:
        """The program as text, stable between runs."""
        return self.pretty()

    def __repr__(self) -> str:
        """The program as text."""
        return self.pretty()

    def pretty(self, source: bool = False, hooks: bool = True) -> str:
        """The program as text.

        Args:
          source: write the user's line behind each equation.
          hooks: write annotations behind the variables and equations that carry them.

        Returns:
          Lines of text; names are stable between runs.
        """
        text: str = _method("pretty")(self, source=source, hooks=hooks)
        return text

    def to_dot(self) -> str:
        """The program as a Graphviz digraph, one node an equation."""
        text: str = _method("to_dot")(self)
        return text

    def to_html(self) -> str:
        """The program as a page that needs nothing else: scopes to fold, costs, lines, search."""
        text: str = _method("to_html")(self)
        return text

    def _repr_html_(self) -> str:
        """What a notebook shows: ``to_html`` in a frame."""
        text: str = _method("in_notebook")(self)
        return text

    def cost(self) -> Any:
        """Flops, bytes moved and peak memory, per equation and in total, from shapes alone.

        Returns:
          A ``Cost``, which prints as a table of the dearest equations.
        """
        return _method("cost")(self)

    def structural_hash(self) -> str:
        """Hexadecimal SHA-256 of the program's structure and constants; equal for equal programs.

        Names of variables, sources and callables in annotations do not count.

        Raises:
          UnsupportedOperationError: a primitive is not functrans' own, so that its name does not
            say what it does, or a parameter is a Python function.
        """
        text: str = _method("structural_hash")(self)
        return text

    def structurally_equal(self, other: Jaxpr) -> bool:
        """Whether both programs are the same but for the identity of their variables."""
        return self.structural_hash() == other.structural_hash()

    def save(self, path: object) -> None:
        """Write the program to a file (versioned; data only, no code).

        Args:
          path: file name.

        Raises:
          UnsupportedOperationError: a parameter is a Python function (a callback, a custom rule).
        """
        _method("save")(self, path)

    @staticmethod
    def load(path: object) -> Jaxpr:
        """Read a program written by :meth:`save`.

        Raises:
          CacheFormatError: the file is damaged, or of another format version.
        """
        jaxpr: Jaxpr = _method("load")(path)
        return jaxpr

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle through the file format, so that primitives come back by name."""
        recipe: tuple[Any, ...] = _method("reduce")(self)
        return recipe


def _method(name: str) -> Callable[..., Any]:
    """The function behind a method."""
    method: Callable[..., Any] = getattr(deferred, f"jaxpr_{name}")
    return method


def subjaxprs(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """The programs among the parameters of an equation, in order."""
    for value in params.values():
        if isinstance(value, Jaxpr):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Jaxpr):
                    yield item
