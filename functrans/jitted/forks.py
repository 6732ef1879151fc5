"""Functions that decide by values which are not known: a program with all their paths.

Here: ``forked``. Not here: one program for each path (``jitted.specialize``).

A function that solvers trace without values (integrands, right-hand sides of differential
equations) may say ``if t < 1``. It is traced again and again, with each sequence of answers to what
Python asks; a question at which paths part becomes a ``cond``, whose branches are what follows.
Results of paths get their common dtype: ``return 0`` on one, ``return t * t`` on another.

Layer: ``jitted``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.branches import cond
from functrans.control.callbacks import io_callback, pure_callback
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import Tracer, aval_of, bind, tracing
from functrans.core.jaxpr import Literal, Var
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Array
from functrans.errors import AliasedWriteError, ConcretizationError, FunctransError, PathLimitError
from functrans.passes.layouts import plain_value
from functrans.passes.staging import StagingTrace, StagingTracer
from functrans.primitives.structural import cast

LIMIT = 64
"""Most paths of a function."""


def forked(fun: Callable[..., Any], who: str, is_pure: bool = False) -> Callable[..., Any]:
    """A function which is traced along all its paths where it decides by values that are unknown.

    Args:
      fun: of pytrees of arrays.
      who: what calls it, for messages.
      is_pure: whether it stands where programs with effects have no derivative; a path that raises
        and whose result nothing reads does not raise then.

    Returns:
      A function of the same arguments. It raises ``PathLimitError`` where there are too many paths;
      what a path raises, it raises when the program takes that path.
    """

    @functools.wraps(fun)
    def call(*args: object) -> Any:
        try:
            return fun(*args)
        except (ConcretizationError, AliasedWriteError):
            leaves, treedef = tree.flatten(args)
            if any(isinstance(x, Tracer) and plain_value(x) is None for x in leaves):
                with suppress(ConcretizationError, AliasedWriteError):
                    return _Fork(fun, who, leaves, treedef, is_pure).result()
            # What it asked for, or wrote to, depends on values from outside only.
            return _Fork(fun, who, leaves, treedef, is_pure, is_branch=True).result()

    return call


class _Answers:
    """Answers questions as they were decided beforehand, further ones by no."""

    def __init__(self, trace: StagingTrace, answers: Sequence[bool]) -> None:
        self.trace = trace
        self.answers = list(answers)
        self.asked: list[tuple[int, Var]] = []
        self._known: dict[Var, bool] = {}

    def __call__(self, tracer: StagingTracer, what: str) -> Any:
        """The answer to a question."""
        if what != "bool()" or tracer.shape:
            self.trace.answers = None
            return tracer._concrete(what)  # raises
        if tracer._var in self._known:
            return self._known[tracer._var]
        number = len(self.asked)
        self.asked.append((len(self.trace.eqns), tracer._var))
        if number == len(self.answers):
            self.answers.append(False)
        answer = self._known[tracer._var] = self.answers[number]
        return answer


class _Path:
    """The program of one path, or the error that it ends with.

    Attributes:
      asked: number of equations before each question, and its variable.
      answers: to the questions.
    """

    def __init__(self, fork: _Fork, answers: Sequence[bool]) -> None:
        trace = StagingTrace(fork.who, is_branch=fork.is_branch)
        self.error: Exception | None = None
        self.treedef: Any = None
        with tracing(trace):
            arguments = [trace.argument(aval) for aval in fork.avals]
            invars = [x._var for x in arguments]
            given = trace.answers = _Answers(trace, answers)
            outs: list[Any] = []
            try:
                outs, self.treedef = tree.flatten(
                    fork.fun(*tree.unflatten(fork.treedef, arguments))
                )
            except FunctransError:
                raise
            except Exception as error:
                self.error = error
            finally:
                trace.answers = None
            self.jaxpr = trace.jaxpr(invars, outs, "", [""] * len(arguments))
        self.asked, self.answers = given.asked, given.answers


class _Fork:
    """A function traced along all paths, and a program of them.

    Args:
      fun: the function.
      who: what calls it.
      leaves: its arguments.
      treedef: their structure.
      is_pure: see ``forked``.
      is_branch: whether what it computes of values from outside is part of its paths.
    """

    def __init__(
        self,
        fun: Any,
        who: str,
        leaves: Sequence[Any],
        treedef: Any,
        is_pure: bool,
        is_branch: bool = False,
    ) -> None:
        self.fun, self.who, self.leaves, self.treedef = fun, who, leaves, treedef
        self.is_pure = is_pure
        self.is_branch = is_branch
        self.avals = [aval_of(leaf) for leaf in leaves]
        self.paths: dict[tuple[bool, ...], _Path] = {}
        self._explore(())
        ended = [path for path in self.paths.values() if path.error is None]
        if not ended:
            raise next(iter(self.paths.values())).error  # type: ignore[misc]  # each has one
        self.like = ended[0]
        same = [path.jaxpr.out_avals for path in ended if path.treedef == self.like.treedef]
        self.dtypes = [_common_dtype(avals) for avals in zip(*same, strict=True)]

    def _explore(self, answers: tuple[bool, ...]) -> None:
        """Trace the path of some answers, and those that part from it later."""
        if len(self.paths) == LIMIT:
            raise PathLimitError(
                f"{self.who}{here()}: the function decides by values that are not known while it "
                f"is traced, and has more than {LIMIT} paths; use np.where, ft.lax.cond or "
                "ft.lax.while_loop"
            )
        path = self.paths[answers] = _Path(self, answers)
        for i in range(len(answers), len(path.answers)):
            self._explore((*path.answers[:i], True))

    def result(self) -> Any:
        """What the function gives."""
        path = self.paths[()]
        return self._after(path, 0, 0, self._start(path))

    def _start(self, path: _Path) -> dict[Var, Any]:
        jaxpr = path.jaxpr
        return {
            **dict(zip(jaxpr.constvars, jaxpr.consts, strict=True)),
            **dict(zip(jaxpr.invars, self.leaves, strict=True)),
        }

    def _after(self, path: _Path, number: int, done: int, values: dict[Var, Any]) -> Array:
        """The result of a path after some questions and equations."""
        jaxpr = path.jaxpr
        is_last = number == len(path.asked)
        stop = len(jaxpr.eqns) if is_last else path.asked[number][0]
        for eqn in jaxpr.eqns[done:stop]:
            operands = [_value(atom, values) for atom in eqn.inputs]
            outs = bind(eqn.primitive, *operands, **eqn.params)
            values.update(zip(eqn.outputs, outs, strict=True))
        if is_last:
            if path.error is not None:
                return self._raise(path)
            results = [_value(x, values) for x in jaxpr.outvars]
            if path.treedef == self.like.treedef:  # else ``cond`` says what differs
                results = [
                    x if aval.dtype == dtype else cast(x, dtype)
                    for x, aval, dtype in zip(results, jaxpr.out_avals, self.dtypes, strict=True)
                ]
            return tree.unflatten(path.treedef, results)
        other = self.paths[(*path.answers[:number], True)]
        others = self._start(other)
        for own, its in zip(jaxpr.eqns[:stop], other.jaxpr.eqns[:stop], strict=True):
            _check_same(self.who, own, its)
            for a, b in zip(own.outputs, its.outputs, strict=True):
                if a in values:
                    others[b] = values[a]
        return cond(
            values[path.asked[number][1]],
            lambda: self._after(other, number + 1, stop, dict(others)),
            lambda: self._after(path, number + 1, stop, dict(values)),
        )

    def _raise(self, path: _Path) -> Any:
        """Raise the error of a path when it is taken."""
        error = path.error

        def fail(*_: object) -> Any:
            raise error  # type: ignore[misc]  # it is one

        like = self.like
        shapes = tree.unflatten(
            like.treedef,
            [
                ShapeDtypeStruct(aval.shape, dtype)
                for aval, dtype in zip(like.jaxpr.out_avals, self.dtypes, strict=True)
            ],
        )
        known = [stop_gradient(x) for x in self.leaves]
        if self.is_pure:
            return pure_callback(fail, shapes, *known, vmap_method="expand_dims")
        return io_callback(fail, shapes, *known)


def _common_dtype(avals: Sequence[Any]) -> np.dtype:
    """The dtype of results of several paths, of which one may give an integer, one a fraction."""
    return np.result_type(*{a.dtype.type(0).item() if a.weak else a.dtype for a in avals})


def _value(atom: Any, values: dict[Var, Any]) -> Any:
    return atom.value if type(atom) is Literal else values[atom]


def _check_same(who: str, own: Any, other: Any) -> None:
    """Refuse a function that does not do the same up to the place where its paths part."""
    if own.primitive is not other.primitive or len(own.outputs) != len(other.outputs):
        raise ConcretizationError(
            f"{who}{here()}: the function decides by values that are not known, and did something "
            "else when it was traced again; it must not depend on what earlier calls left"
        )
