"""Finding the equation that made a NaN or an infinity: ``debug_nans``.

Here: ``debug_nans``, and the search in programs for the equation, iteration and lane. Not here:
where operations are checked (``debugging.watched``, ``passes.pullback``, ``control.native``,
``transforms.vectorize``), torch's anomaly mode (``autograd.anomaly``).

Operations on values are checked one by one, in forward and backward passes. A loop, a branch, a
compiled or batched program is checked by its results; when one is not finite, it is run again,
interpreted, one equation after the other.

Layer: ``debugging``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.control.loops import scan_shape
from functrans.core.avals import Zero
from functrans.core.dispatch import Tracer, aval_of, bind, shape_of
from functrans.core.jaxpr import Jaxpr, Literal
from functrans.core.primitive import Joint, Primitive
from functrans.core.source import SourceLine, capture, resolve
from functrans.core.state import config, replayed, scope
from functrans.core.values import Array
from functrans.errors import NonFiniteError
from functrans.passes.batch import named_axes
from functrans.passes.cotangents import plain
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram, Node
from functrans.passes.pullback import pull
from functrans.passes.pushforward import push
from functrans.passes.staging import stage
from functrans.records import dataclass

_SHOWN = 4
_DIRECTIONS = {
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "tangent": "in the tangent",
}


@dataclass(frozen=True, slots=True)
class Watch:
    """What is looked for while ``debug_nans`` is on; stands in the configuration.

    Attributes:
      nan: whether NaN counts.
      inf: whether infinities count.
    """

    nan: bool
    inf: bool

    # what counts

    def _marks(self, value: object) -> Array | None:
        """Where a plain value is what is looked for; ``None`` if it cannot be."""
        if value is None or type(value) is Zero or isinstance(value, Tracer):
            return None
        dtype = getattr(value, "dtype", None)
        if dtype is None and not isinstance(value, (float, complex)):
            return None
        array = np.asarray(value)
        if array.dtype.kind in "iubOV":
            return None
        found = np.isnan(array) if self.nan else np.zeros(array.shape, bool)
        return found | np.isinf(array) if self.inf else found

    def is_bad(self, value: object) -> bool:
        """Whether a plain value holds what is looked for."""
        marks = self._marks(value)
        return marks is not None and bool(marks.any())

    def _any_bad(self, values: Sequence[Any]) -> bool:
        return any(map(self.is_bad, values))

    # checks of one step

    def operation(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        params: Mapping[str, Any],
        outs: Sequence[Any],
    ) -> None:
        """Check an operation that a trace has evaluated.

        Raises:
          NonFiniteError: it made what is looked for.
        """
        if self._any_bad(outs) and not self._any_bad(operands):
            with config(nan_watch=None):
                path = (f"{primitive.name}{_at(_line())}",)
                self._look_into(primitive, operands, params, "forward", path)
                raise self._error(primitive.name, "forward", _line(), operands, outs, ())

    def tangents(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        dots: Sequence[Any],
        params: Mapping[str, Any],
        out_dots: Sequence[Any],
    ) -> None:
        """Check the tangents of an operation.

        Raises:
          NonFiniteError: they are what is looked for, and those that went in are not.
        """
        if not self._any_bad(out_dots) or self._any_bad([*values, *dots]):
            return
        with config(nan_watch=None):
            rule = primitive.jvp
            if type(rule) is Joint:
                given = [i for i, dot in enumerate(dots) if dot is not None]

                def push(*own: Any) -> list[Any]:
                    full: list[Any] = [Zero(aval_of(value)) for value in values]
                    for i, dot in zip(given, own, strict=True):
                        full[i] = dot
                    _, results = rule.rule(tuple(values), tuple(full), **params)
                    return [t for t in results if t is not None and type(t) is not Zero]

                args = [dots[i] for i in given]
                path = (f"tangent of {primitive.name}{_at(_line())}",)
                self._look_staged(push, args, "tangent", path)
            raise self._error(primitive.name, "tangent", _line(), (*values, *dots), out_dots, ())

    def pull(self, node: Node, ct: Any, size: int | None = None) -> Sequence[Any]:
        """``passes.pullback.pull``, checked.

        Raises:
          NonFiniteError: the pullback made what is looked for.
        """
        pulled = pull(node, ct, size)
        given = [None if c is None else plain(c) for c in (ct if node.shape is None else [ct])]
        found = [None if c is None or type(c) is Zero else plain(c) for c in pulled]

        def again(slots: list[Any]) -> list[Any]:
            slots = [
                None if c is None else np.broadcast_to(c, _aval(node, i).shape)
                for i, c in enumerate(slots)
            ]
            results = pull(node, slots if node.shape is None else slots[0])
            return [plain(r) for r in results if r is not None and type(r) is not Zero]

        self._check_linear(node, "backward", "backward pass", given, found, size, again)
        return pulled

    def push(self, node: Node, tangents: Sequence[Any], size: int | None = None) -> Any:
        """``passes.pushforward.push``, checked.

        Raises:
          NonFiniteError: the pushforward made what is looked for.
        """
        pushed = push(node, tangents, size)
        found = [pushed] if node.shape is not None else list(pushed or ())

        def again(slots: list[Any]) -> list[Any]:
            outs = push(node, slots)
            outs = [outs] if node.shape is not None else outs
            return [t for t in outs if t is not None]

        self._check_linear(node, "tangent", "tangent", tangents, found, size, again)
        return pushed

    def _check_linear(
        self,
        node: Node,
        stage: str,
        title: str,
        given: Sequence[Any],
        found: Sequence[Any],
        size: int | None,
        again: Callable[[list[Any]], list[Any]],
    ) -> None:
        """Check what the linear map of an operation, or its transpose, gave.

        Args:
          node: the operation.
          stage: of the derivative, for the error.
          title: likewise, in words.
          given: what it was applied to; ``None`` where there is nothing.
          found: what it gave.
          size: how many were computed at once, along a first axis.
          again: computes one of them again, to find the equation within the map.

        Raises:
          NonFiniteError: it made what is looked for.
        """
        inputs = [x for x in given if x is not None]
        if not self._any_bad(found) or self._any_bad([*inputs, *_saved_values(node)]):
            return
        primitive = node.primitive
        assert primitive is not None
        line = resolve(node.source)
        with config(nan_watch=None):
            lane = None if size is None else self._lane(found)
            if isinstance(node.saved, LinearProgram) and not any(
                isinstance(value, Tracer) for value in (*inputs, *node.saved.residuals)
            ):
                present = [i for i, x in enumerate(given) if x is not None]

                def run(*own: Any) -> list[Any]:
                    slots: list[Any] = [None] * len(given)
                    for i, x in zip(present, own, strict=True):
                        slots[i] = x
                    return again(slots)

                args = [np.asarray(x if lane is None else x[lane]) for x in inputs]
                self._look_staged(
                    run, args, stage, (f"{title} of {primitive.name}{_at(line)}",), lane
                )
                if self._any_bad([*node.saved.residuals, *node.saved.jaxpr.consts]):
                    return
            operands = [*_saved_values(node), *inputs]
            raise self._error(primitive.name, stage, line, operands, found, (), lane)

    # programs

    def program(self, jaxpr: Jaxpr, args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Check the results of a compiled or interpreted program on plain values.

        Raises:
          NonFiniteError: they are what is looked for, and the arguments are not.
        """
        if self._any_bad(outs) and not self._any_bad(args):
            name = jaxpr.name or "a program"
            with config(nan_watch=None):
                self._look(jaxpr, args, "forward", ())
                raise self._error(f"jit of {name}", "forward", _line(), args, outs, ())

    def call(self, fun: Callable[..., list[Any]], args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Check the results of a loop on plain values.

        Raises:
          NonFiniteError: they are what is looked for, and the arguments are not.
        """
        if self._any_bad(outs) and not self._any_bad(args):
            with config(nan_watch=None):
                self._look_staged(fun, args, "forward", ())

    def batched(
        self,
        jaxpr: Jaxpr,
        args: Sequence[Any],
        axes: Sequence[int | None],
        outs: Sequence[Any],
        out_axes: Sequence[int | None],
    ) -> None:
        """Check the results of a program that ran on a batch.

        Raises:
          NonFiniteError: they are what is looked for, and the arguments are not.
        """
        if not self._any_bad(outs) or self._any_bad([*args, *jaxpr.consts]):
            return
        fronted = [
            out if axis is None or not self.is_bad(out) else np.moveaxis(out, axis, 0)
            for out, axis in zip(outs, out_axes, strict=True)
            if axis is not None
        ]
        lane = self._lane(fronted)
        with config(nan_watch=None):
            is_plain = not any(isinstance(x, Tracer) for x in (*args, *jaxpr.consts))
            if lane is not None and is_plain and not named_axes(jaxpr):
                own = [
                    x if axis is None else np.take(x, lane, axis)
                    for x, axis in zip(args, axes, strict=True)
                ]
                self._look(jaxpr, own, "forward", (), lane)
            name = f"vmap of {jaxpr.name or 'a program'}"
            raise self._error(name, "forward", _line(), args, outs, (), lane)

    def _lane(self, values: Sequence[Any]) -> int | None:
        """The first entry of a leading axis that holds what is looked for."""
        lanes = [
            int(np.argwhere(marks.reshape(marks.shape[0], -1).any(axis=1))[0, 0])
            for marks in map(self._marks, values)
            if marks is not None and marks.ndim and marks.any()
        ]
        return min(lanes, default=None)

    # the search

    def _look_staged(
        self,
        fun: Callable[..., list[Any]],
        args: Sequence[Any],
        direction: str,
        path: tuple[str, ...],
        lane: int | None = None,
    ) -> None:
        """Search in a function of plain values, as a program."""
        if any(isinstance(arg, Tracer) for arg in args):
            return
        jaxpr = stage(fun, [aval_of(arg).strong() for arg in args], "debug_nans")
        if not any(isinstance(value, Tracer) for value in jaxpr.consts):
            self._look(jaxpr, args, direction, path, lane)

    def _look(
        self,
        jaxpr: Jaxpr,
        args: Sequence[Any],
        direction: str,
        path: tuple[str, ...],
        lane: int | None = None,
    ) -> list[Any]:
        """Run a program on plain values, one equation after the other; its results."""
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            operands = [a.value if type(a) is Literal else env[a] for a in eqn.inputs]
            if eqn.primitive.effects:  # it took place already
                outs: Sequence[Any] = [np.zeros(v.aval.shape, v.aval.dtype) for v in eqn.outputs]
            else:
                with np.errstate(all="ignore"):
                    outs = bind(eqn.primitive, *operands, **eqn.params)
            if self._any_bad(outs) and not self._any_bad(operands):
                line = resolve(eqn.source)
                inside = (*path, f"{eqn.primitive.name}{_at(line)}")
                self._look_into(eqn.primitive, operands, eqn.params, direction, inside, lane)
                raise self._error(eqn.primitive.name, direction, line, operands, outs, path, lane)
            env.update(zip(eqn.outputs, outs, strict=True))
        return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]

    def _look_into(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        params: Mapping[str, Any],
        direction: str,
        path: tuple[str, ...],
        lane: int | None = None,
    ) -> None:
        """Search in the programs of an equation."""
        if any(isinstance(operand, Tracer) for operand in operands):
            return
        *outer, own = path
        if primitive.name == "scan":
            self._look_into_scan(operands, params, direction, (*outer, own), lane)
        elif primitive.name == "while":
            self._look_into_while(operands, params, direction, (*outer, own), lane)
        elif primitive.name == "cond":
            index = int(operands[0])
            inside = (*outer, f"branch {index} of {own}")
            self._look(params["branches"][index], operands[1:], direction, inside, lane)
        elif primitive.name == "cond_lanes":
            batched = params["batched"]
            for k, index in enumerate(operands[0]):
                given = [x[k] if flag else x for x, flag in zip(operands[1:], batched, strict=True)]
                inside = (*outer, f"branch {int(index)} of {own}")
                self._look(params["branches"][int(index)], given, direction, inside, k)
        else:
            jaxpr = params.get("jaxpr")
            if isinstance(jaxpr, Jaxpr) and len(jaxpr.invars) == len(operands):
                self._look(jaxpr, operands, direction, path, lane)

    def _look_into_scan(
        self, operands: Sequence[Any], params: Mapping[str, Any], direction: str,
        path: tuple[str, ...], lane: int | None,
    ) -> None:  # fmt: skip
        jaxpr: Jaxpr = params["jaxpr"]
        shape = scan_shape(dict(params))
        first, consts, carry, xs = shape.unpack(operands)
        n = int(first[0]) if first else params["length"]
        *outer, own = path
        for turn in range(n):
            i = n - 1 - turn if shape.reverse else turn
            entries = [x.read(i) if hasattr(x, "read") else x[i] for x in xs]
            inside = (*outer, f"iteration {i} of {own}")
            outs = self._look(jaxpr, [*consts, *carry, *entries], direction, inside, lane)
            carry = list(outs[: shape.n_carry])

    def _look_into_while(
        self, operands: Sequence[Any], params: Mapping[str, Any], direction: str,
        path: tuple[str, ...], lane: int | None,
    ) -> None:  # fmt: skip
        n_cond, n_body = params["n_cond_consts"], params["n_body_consts"]
        cond_consts, body_consts = operands[:n_cond], operands[n_cond : n_cond + n_body]
        carry = list(operands[n_cond + n_body :])
        *outer, own = path
        i = 0
        while evaluate(params["cond_jaxpr"], [*cond_consts, *carry])[0]:
            inside = (*outer, f"iteration {i} of {own}")
            outs = self._look(params["body_jaxpr"], [*body_consts, *carry], direction, inside, lane)
            carry = list(outs[: len(carry)])
            i += 1

    # the error

    def _error(
        self,
        primitive: str,
        direction: str,
        line: SourceLine | None,
        operands: Sequence[Any],
        outs: Sequence[Any],
        path: tuple[str, ...],
        lane: int | None = None,
    ) -> NonFiniteError:
        """The error for an equation."""
        out, marks = next(
            (np.asarray(out), marks)
            for out, marks in ((out, self._marks(out)) for out in outs)
            if marks is not None and marks.any()
        )
        index = tuple(int(i) for i in np.argwhere(marks)[0])
        value = out[index]
        kind = "NaN" if np.isnan(value) else "infinity"
        given = tuple(x for x in operands if x is not None and type(x) is not Zero)
        shown = [f"operand {i}: {_excerpt(x, out.shape, index)}" for i, x in enumerate(given)]
        place = f"[{', '.join(map(str, index))}]" if index else ""
        lines = [
            f"{primitive} gave {kind} {_DIRECTIONS[direction]}{_at(line)}",
            *(f"  in {step}" for step in reversed(path)),
            *([f"  in element {lane} of the batch"] if lane is not None else []),
            f"  result{place} = {value} of {aval_of(out)}, "
            f"{int(marks.sum())} of {out.size} elements are like this",
            *(f"  {text}" for text in shown),
        ]
        return NonFiniteError(
            "\n".join(lines),
            primitive=primitive,
            direction=direction,
            source=line,
            operands=given,
            results=tuple(outs),
            index=index,
            path=path,
            lane=lane,
        )


def _aval(node: Node, i: int) -> Any:
    """The type of a result of a node."""
    return node.dtype[i] if node.shape is None else node.aval


def _saved_values(node: Node) -> list[Any]:
    """Plain values that a node keeps for its derivative."""
    if isinstance(node.saved, LinearProgram) or not node.saved:
        return []
    items: list[Any] = []
    for item in node.saved:
        items.extend(item if isinstance(item, tuple) else (item,))
    return [x for x in items if isinstance(x, (np.ndarray, np.generic, float, int, complex))]


def _line() -> SourceLine | None:
    """The user's line, or that of the equation that a pass applies again."""
    origin = replayed.get()
    return resolve(capture(2) if origin is None else origin[0])


def _at(line: SourceLine | None) -> str:
    return f" (at {line})" if line is not None else ""


def _excerpt(operand: object, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
    """An operand at the place of a result if it has one there, else in short."""
    if isinstance(operand, Tracer):
        return str(operand.aval)
    if shape_of(operand) == ():
        return str(operand)
    array = np.asarray(operand)
    try:
        there = np.broadcast_to(array, shape)[index]
    except ValueError:
        pass
    else:
        return f"{aval_of(array)}, here {there}"
    if array.dtype.kind == "c" or not array.size:
        return str(aval_of(array))
    if array.size <= _SHOWN:
        return f"{aval_of(array)} {array.tolist()}"
    return f"{aval_of(array)} between {array.min()} and {array.max()}"


@scope
def debug_nans(nan: bool = True, inf: bool = False) -> Iterator[None]:
    """Raise where the first NaN comes to exist, in forward and backward passes.

    Within the ``with`` block (or the decorated function), in this thread or task only, functions
    under ``grad``, ``vjp``, ``jvp``, ``vmap``, ``jit`` and the other transforms are watched. An
    operation that makes NaN of operands that have none raises. Compiled programs, batches, loops
    and branches are watched by their results; they are run again, interpreted, to find the
    equation. Without transforms, NumPy computes: ``np.errstate(invalid="raise")`` is for that.

    Args:
      nan: whether NaN raises.
      inf: whether infinities raise.

    Yields:
      Nothing.

    Raises:
      NonFiniteError: names the primitive, the pass, the user's line, the iteration of each loop
        and the element of the batch; has the operands as arrays.

    Example:
      >>> import numpy as np
      >>> import functrans as ft
      >>> with ft.debug_nans():
      ...     try:
      ...         ft.grad(lambda x: np.sqrt(0.0 * x))(1.0)
      ...     except ft.errors.NonFiniteError as error:
      ...         print(error.primitive, error.direction)
      multiply backward
    """
    with config(nan_watch=Watch(bool(nan), bool(inf)) if nan or inf else None):
        yield
