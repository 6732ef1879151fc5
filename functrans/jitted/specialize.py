"""The paths that a function takes by the values of its arguments: ``jit(f, specialize=True)``.

Here: ``Path``, the program of one path, and ``Paths``, the tree of those that are known for one
kind of arguments. Not here: how a path is traced (``jitted.guards``) and cut into steps
(``jitted.steps``), the cache of a jitted function (``jitted.jit``).

A call runs the path that was taken last and compares its guards with what they were. The first that
differs tells where in the tree the call belongs: to a path that is known, which is run in turn, or
to a new one, which is traced from the values of the call. Paths share their guards up to where they
part, so that a call tries at most one path for each guard. The function is traced once per path.

Results come from the program of the path, also in the call that it is traced in: the first call and
later ones with the same arguments give the same bits. In that call guards are not compared: the
trace has decided, with NumPy's mathematics, which may differ from the program's in the last bit.

Operands that are traced by a transform with values (``grad``, ``jvp``) decide the path by these;
then the program of the path is one equation of the transform. Where values are not known (a plain
``jit``, ``vmap``, the body of a loop), and where the trace around specialises as well, the function
runs as a part of what is around it: its questions are those of the outer function.

Layer: ``jitted``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from functrans import pytrees as tree
from functrans.compiler.compiled import Compiled
from functrans.control.native import call_program, runs_of
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Jaxpr, Literal
from functrans.core.ownership import own_arrays
from functrans.errors import PathLimitError
from functrans.jitted.captured import in_order, prepare_to_compile
from functrans.jitted.explanations import Origin
from functrans.jitted.guards import Guard, StagedPath, unmarked
from functrans.jitted.steps import Step, plan_steps
from functrans.passes.programs import hoist
from functrans.passes.simplify import simplify

Decided = tuple[int, bytes]
"""The number of a guard that does not hold, and its integers."""


class Path:
    """The program of one path through a function.

    Attributes:
      whole: ``(*captured, *leaves) -> leaves of the result``, in one piece and without guards.
      captured: arrays and tracers that the function refers to.
      treedef: structure of the result.
      guards: what decides for the path, in order.
      origin: the kind of call that it was traced for, and its guards as text.
      taken: how often it was taken.
      nodes: where each guard is in the tree.
    """

    __slots__ = (
        "_decisions", "_direct", "_marked", "_steps", "captured", "guards", "nodes", "origin",
        "taken", "treedef", "whole",
    )  # fmt: skip

    def __init__(self, staged: StagedPath, treedef: Any, origin: Origin) -> None:
        self._marked, captured = hoist(staged.jaxpr)
        self.captured = tuple(map(in_order, captured))
        self.whole = simplify(unmarked(self._marked))
        prepare_to_compile(self.whole, self.captured)
        self.treedef = treedef
        self.guards = staged.guards
        self.origin = origin
        self.taken = 0
        self.nodes: list[_Node] = []
        self._steps: tuple[Step, ...] | None = None
        self._decisions: tuple[Step, ...] | None = None
        self._direct: _Direct | None = None

    @property
    def key(self) -> tuple[bytes, ...]:
        """The answers that lead along the path."""
        return tuple([guard.outcome for guard in self.guards])

    @property
    def steps(self) -> tuple[Step, ...]:
        """The program in steps, with guards."""
        if self._steps is None:
            self._steps = self._plan(with_results=True)
        return self._steps

    def _plan(self, with_results: bool) -> tuple[Step, ...]:
        steps = plan_steps(self._marked, self.guards, with_results)
        known = dict(zip(self._marked.invars, self.captured, strict=False))
        for step in steps:
            prepare_to_compile(step.jaxpr, [known.get(var) for var in step.inputs])
        return steps

    @property
    def jaxpr(self) -> Jaxpr:
        """The program that calls run: the last step, if there are several."""
        return self._steps[-1].jaxpr if self._steps else self.whole

    @property
    def native(self) -> Compiled | None:
        """Its machine code, if there is any so far."""
        return runs_of(self.jaxpr).codes.get(False)

    def run(
        self, leaves: Sequence[Any], name: str, is_certain: bool
    ) -> tuple[list[Any] | None, Decided | None]:
        """Results, or the first guard that does not hold.

        Args:
          leaves: plain values of the arguments.
          name: of the function, for printed programs.
          is_certain: whether guards are known to hold.
        """
        operands = (*self.captured, *leaves)
        env, decided = self._run_steps(self.steps, operands, name, is_certain)
        if decided is not None:
            return None, decided
        results = [a.value if type(a) is Literal else env[a] for a in self._marked.outvars]
        return own_arrays(results, operands), None

    def decide(self, leaves: Sequence[Any], name: str) -> Decided | None:
        """The first guard that does not hold; nothing but guards is computed."""
        if self._decisions is None:
            self._decisions = self._plan(with_results=False)
        operands = (*self.captured, *leaves)
        return self._run_steps(self._decisions, operands, name, False)[1]

    def _run_steps(
        self, steps: Sequence[Step], operands: Sequence[Any], name: str, is_certain: bool
    ) -> tuple[dict[Any, Any], Decided | None]:
        env: dict[Any, Any] = dict(zip(self._marked.invars, operands, strict=True))
        for step in steps:
            outs = call_program(step.jaxpr, [env[var] for var in step.inputs], name)
            if step.expected is not None:
                integers = outs.pop(0)
                if not is_certain and integers.tobytes() != step.expected:
                    return env, step.first_difference(integers)
            env.update(zip(step.outputs, outs, strict=True))
        return env, None

    def apply(self, leaves: Sequence[Any], name: str) -> list[Any]:
        """Results for traced arguments, whose values lead along this path."""
        return call_program(self.whole, (*self.captured, *leaves), name)

    @property
    def direct(self) -> _Direct | None:
        """The machine code of a path that is one step, where it needs nothing around it."""
        if self._direct is None and self._steps is not None and len(self._steps) == 1:
            (step,) = self._steps
            native = runs_of(step.jaxpr).codes.get(False)
            if native is not None and native.direct is not None:
                self._direct = _Direct(native.direct.call, self.captured, step, self.treedef)
        return self._direct


class _Direct:
    """Machine code that is all there is to do on a path."""

    __slots__ = ("_call", "_captured", "_expected", "_step", "_treedef")

    def __init__(
        self, call: Callable[..., Any], captured: tuple[Any, ...], step: Step, treedef: Any
    ) -> None:
        self._call = call
        self._captured = captured
        self._step = step
        self._expected = step.expected
        self._treedef = None if treedef == tree.LEAF else treedef

    def __call__(self, leaves: Sequence[Any]) -> tuple[Any, Decided | None]:
        """The result, or ``NotImplemented``; and the first guard that does not hold."""
        result = self._call(*self._captured, *leaves)
        if type(result) is not tuple:
            if self._expected is None and type(result) is not int and self._treedef is None:
                return result, None
            return NotImplemented, None
        if self._expected is not None:
            integers, *result = result
            if integers.tobytes() != self._expected:
                return NotImplemented, self._step.first_difference(integers)
        return result[0] if self._treedef is None else tree.unflatten(self._treedef, result), None


class _Node:
    """What is known of the paths after some answers.

    Attributes:
      children: by the next answer.
      guard: an example of the next question; ``None`` where no known path asks.
      recent: the path through here that was taken last.
    """

    __slots__ = ("children", "guard", "recent")

    def __init__(self) -> None:
        self.children: dict[bytes, _Node] = {}
        self.guard: Guard | None = None
        self.recent: Path | None = None


class Paths:
    """The paths of a function for one kind of arguments.

    Attributes:
      label: the function, for messages.
      limit: how many are kept; one more is an error.
    """

    def __init__(self, label: str, name: str, limit: int) -> None:
        self.label = label
        self.limit = limit
        self._name = name
        self._root = _Node()
        self._paths: dict[tuple[bytes, ...], Path] = {}
        self._lock = Lock()

    def kept(self) -> list[Path]:
        """The paths that are known."""
        with self._lock:
            return list(self._paths.values())

    def __len__(self) -> int:
        return len(self._paths)

    def call(
        self, leaves: Sequence[Any], values: Sequence[Any], trace: Callable[[], Path | None]
    ) -> Any:
        """Call the function along the path that the values lead.

        Args:
          leaves: arguments, which may be traced.
          values: plain values of these.
          trace: makes the path of the call; ``None`` where that cannot be.

        Returns:
          The result; ``NotImplemented`` where ``trace`` gives none.

        Raises:
          PathLimitError: there would be too many paths.
        """
        is_traced = any(isinstance(leaf, Tracer) for leaf in leaves)
        path: Path | None = self._root.recent
        outs: list[Any] | None = None
        while path is not None:
            if is_traced or any(isinstance(value, Tracer) for value in path.captured):
                decided = path.decide(values, self._name)
            else:
                outs, decided = path.run(values, self._name, False)
            if decided is None:
                break
            path = self._next(path, decided)
        if path is None:
            path = trace()
            if path is None:
                return NotImplemented
            path = self._add(path)
        if outs is None:
            if is_traced:
                outs = path.apply(leaves, self._name)
            else:
                outs, _ = path.run(values, self._name, True)
                assert outs is not None
        self._take(path)
        return tree.unflatten(path.treedef, outs)

    def quick(self, *leaves: object) -> Any:
        """Call the function where the machine code of a known path is all there is to do.

        ``NotImplemented`` elsewhere.
        """
        path: Path | None = self._root.recent
        while path is not None:
            direct = path.direct
            if direct is None:
                return NotImplemented
            result, decided = direct(leaves)
            if decided is None:
                if result is not NotImplemented:
                    self._take(path)
                return result
            path = self._next(path, decided)
        return NotImplemented

    def has_quick(self) -> bool:
        """Whether calls like the last one can go the short way."""
        recent = self._root.recent
        return recent is not None and recent.direct is not None

    def _next(self, path: Path, decided: Decided) -> Path | None:
        """The path to try after one whose guard did not hold."""
        number, outcome = decided
        child = path.nodes[number].children.get(outcome)
        return None if child is None else child.recent

    def _take(self, path: Path) -> None:
        """Note that a path was taken."""
        path.taken += 1
        if self._root.recent is not path and path.nodes:
            for node in path.nodes:
                node.recent = path

    def _add(self, path: Path) -> Path:
        """Keep a path; that which is known already, if another thread was faster."""
        with self._lock:
            known = self._paths.get(path.key)
            if known is not None:
                return known
            if any(isinstance(value, Tracer) for value in path.captured):
                return path  # for this call only
            if len(self._paths) >= self.limit:
                raise self._too_many()
            node = self._root
            nodes = [node]
            for guard in path.guards:
                node.guard = guard
                node = node.children.setdefault(guard.outcome, _Node())
                nodes.append(node)
            path.nodes = nodes
            for node in nodes:
                node.recent = path
            self._paths[path.key] = path
            return path

    def _too_many(self) -> PathLimitError:
        """The error for one path more than are kept; names the line at which most of them part."""
        splits: Counter[str] = Counter()
        longest: Counter[str] = Counter()
        kinds: dict[str, str] = {}
        for node in {node for path in self._paths.values() for node in path.nodes}:
            if node.guard is not None:
                splits[node.guard.line] += len(node.children) - 1
                kinds[node.guard.line] = node.guard.what
        for path in self._paths.values():
            for line, count in Counter(guard.line for guard in path.guards).items():
                longest[line] = max(longest[line], count)
        line, _ = splits.most_common(1)[0]
        if longest[line] > 1:
            why = (
                f"which asks up to {longest[line]} times in one call, so that there is a path for "
                "each sequence of answers. If it is a loop that ends by values, write it as "
                "ft.lax.while_loop; a choice in each round as np.where or ft.lax.cond"
            )
        elif kinds[line] == "bool()":
            why = "together with the others; write the choices as np.where or ft.lax.cond"
        else:
            why = (
                f"by the values of {kinds[line]}: each has a program of its own. Use array "
                "operations, ft.lax.switch or ft.lax.fori_loop, or a static argument"
            )
        return PathLimitError(
            f"{self.label} has taken {self.limit} paths, and max_paths allows no more. Most of "
            f"them part at {line or 'a place outside of the code that can be named'}, {why}. "
            "max_paths of jit allows more"
        )


def facts_of(guards: Sequence[Guard]) -> dict[str, str]:
    """What decides for a path, as text: by line the answers in order, repeated ones counted."""
    answers: dict[str, list[list[Any]]] = {}
    for guard in guards:
        runs = answers.setdefault(f"{guard.what} at {guard.line}", [])
        if runs and runs[-1][0] == guard.answer:
            runs[-1][1] += 1
        else:
            runs.append([guard.answer, 1])
    return {
        place: ", ".join(f"{answer} {n} times" if n > 1 else str(answer) for answer, n in runs)
        for place, runs in answers.items()
    }
