"""When twins run: what a transform calls in place of a user's function.

Here: a call of a twin from outside, with the tables of twins made. Not here: twins
(``plain.twins``), which functions need one (``plain.decide``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from functrans import pytrees as tree
from functrans.core.arguments import name_of
from functrans.core.state import open_traces
from functrans.core.values import Array
from functrans.passes.staging import StagingTrace
from functrans.plain import buffer_methods, generators, libraries, numbers, objects, twins
from functrans.plain.containers import give_back_items, without
from functrans.plain.memory import settled
from functrans.plain.memos import Memo, memo_of_call
from functrans.plain.twin_classes import (
    change_attributes,
    give_back_classes,
    give_back_members,
    give_back_slots,
)
from functrans.plain.twins import all_views, given_back
from functrans.plain.twins import twin as twin
from functrans.plain.unreadable import check_program, check_results, explain, notes

buffer_methods.install()
libraries.install()
generators.install()
objects.install()
numbers.install()


def call_twin(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call the twin of a function, and give back what it wrote."""
    outer = memo_of_call.get()
    if outer is not None and outer.is_active:
        return _call_inside(outer, function, args, kwargs)
    own = Memo()
    token = memo_of_call.set(own)
    try:
        own.is_active = True
        for view in all_views():
            view.refresh(own)
        return _called(own, function, args, kwargs, is_outermost=outer is None)
    finally:
        own.is_active = False
        _give_back(own)
        memo_of_call.reset(token)
        if outer is None and notes.get() is not None:
            notes.set(None)


def _call_inside(
    outer: Memo, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """A call within another one, which sees what that one has written, and writes to the same."""
    try:
        return _called(outer, function, args, kwargs, is_outermost=False)
    finally:
        _note_end(outer)


def call_within(function: Callable[..., Any], args: Sequence[Array], kwargs: dict[str, Any]) -> Any:
    """Call a twin within the call of another one."""
    try:
        return function(*args, **kwargs)
    finally:
        outer = memo_of_call.get()
        if outer is not None and outer.is_active:
            _note_end(outer, function)


def _note_end(outer: Memo, function: Callable[..., Any] | None = None) -> None:
    """Look for values of the innermost trace when it ends, also where a function keeps them."""
    traces = open_traces.get()
    if traces and traces[-1] not in outer.inner:
        outer.inner.add(traces[-1])
        traces[-1].at_end.append(functools.partial(_end_inside, outer, traces[-1], function))


def _called(
    own: Memo,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    is_outermost: bool,
) -> Any:
    try:
        result = twin(function)(
            *map(twin, args), **{name: twin(value) for name, value in kwargs.items()}
        )
        result = _result(own, result)
        if notes.get() is not None:
            _check_memory(function, result, is_outermost=is_outermost)
        return result
    except Exception as error:
        explain(error)
        raise


def _result(own: Memo, result: object) -> Any:
    """What a twin returned, as the world gets it."""
    own.of_result = True
    try:
        before = len(own.made)
        result = given_back(result)
        _look_through_made(own, before)
        return tree.map(settled, result)
    finally:
        own.of_result = False
        own.visited.clear()


def _check_memory(function: object, result: Array, *, is_outermost: bool) -> None:
    """Refuse what was read of memory that has become traced, in the result or in programs."""
    check_results(tree.leaves(result), name_of(function))
    traces = open_traces.get()
    for trace in traces if is_outermost else traces[-1:]:
        if isinstance(trace, StagingTrace):
            check_program(trace)


def _give_back(memo: Memo) -> None:
    """Write to globals, closures and objects from outside what the twin wrote.

    Traced values stay traced until the trace that they belong to has ended.
    """
    for view in all_views():
        view.give_back()
    give_back_classes(memo)
    give_back_slots(memo)
    for cell, own, first in memo.cells.values():
        content = twins.contents(own)
        if content is not first:
            if content is twins.EMPTY:
                del cell.cell_contents
            else:
                cell.cell_contents = given_back(content)
                memo.written.append((cell, "cell_contents"))
    for cls, members in list(memo.classes.items()):
        give_back_members(cls, members)
    for container in memo.containers:
        give_back_items(*container)
    _look_through(memo)


def _look_through(memo: Memo) -> None:
    """Give back what objects hold that may have been written to; look again if some is traced."""
    for value in memo.objects:
        change_attributes(value, given_back)
    for container, *_ in memo.containers:
        given_back(container)
    for container in memo.shared:
        given_back(container)
    for owner, name in memo.written:
        if isinstance(owner, dict):
            owner[name] = given_back(owner.get(name))
        else:
            setattr(owner, name, given_back(getattr(owner, name)))
    _look_through_made(memo, 0)
    memo.visited.clear()
    for trace in memo.traces:
        if trace.is_open:
            trace.at_end.append(functools.partial(_end, memo, trace))
    memo.traces.clear()


def _look_through_made(memo: Memo, start: int) -> None:
    """The same for objects that were made, and those that these hold."""
    for value in itertools.islice(memo.made, start, None):  # which grows on the way
        change_attributes(value, given_back)


def _end_inside(memo: Memo, trace: object, function: Callable[..., Any] | None = None) -> None:
    """Put plain values where those of a trace were kept, which has ended, within a call."""
    memo.inner.discard(trace)
    if not memo.is_active:
        _end(memo, trace)
        return
    seen: set[int] = set()
    for value in (*memo.objects, *[own for _, own in memo.slotted]):
        change_attributes(value, lambda content: without(content, trace, seen))
    for held in (*[own for _, own, _ in memo.containers], *memo.shared):
        without(held, trace, seen)
    for view in all_views():
        view.update({k: new for k, x in view.items() if (new := without(x, trace, seen)) is not x})
    function = getattr(function, "__func__", function)
    held = getattr(function, "__closure__", None) or ()
    for own in (*[own for _, own, _ in memo.cells.values()], *held):
        content = twins.contents(own)
        if content is not twins.EMPTY:
            new = without(content, trace, seen)
            if new is not content:
                own.cell_contents = new
    for cls in memo.classes:
        own = memo.known(cls)
        for name, value in list(own.__dict__.items()):
            new = without(value, trace, seen)
            if new is not value:
                setattr(own, name, new)


def _end(memo: Memo, trace: object) -> None:
    """Put plain values where those of a trace were kept, which has ended."""
    token = memo_of_call.set(memo)
    memo.ended = trace
    try:
        _look_through(memo)
    finally:
        memo.ended = None
        memo_of_call.reset(token)
