"""Modes, states of tensors, hooks and functions against PyTorch, with the same code for both.

A scenario is a function of a library (``torch`` or ``functrans.compat.torch``). It returns numbers,
names, types of errors and beginnings of their messages, which are the same for both.
"""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as own

torch = pytest.importorskip("torch")

LENGTH = 75
"""So much of a message is compared: beginnings are what users match on."""


def comparable(x: Any) -> Any:
    """Lists and strings in place of tensors and nodes."""
    if isinstance(x, (tuple, list)):
        return [comparable(item) for item in x]
    if hasattr(x, "next_functions"):
        return x.name().removeprefix("torch::autograd::")
    if isinstance(x, (torch.Tensor, own.Tensor)):
        return np.round(x.tolist(), 3).tolist()
    return x


def tried(action: Callable[[], Any]) -> Any:
    """The result, or type and beginning of the message of the error."""
    try:
        return comparable(action())
    except Exception as error:
        return type(error).__name__, str(error)[:LENGTH]


def leaf(t: Any, values: Any = (1.0, 2.0)) -> Any:
    return t.tensor(values, requires_grad=True)


# modes -------------------------------------------------------------------------------------------


def state(t: Any) -> Any:
    return t.is_grad_enabled(), t.is_inference_mode_enabled()


def switches(t: Any) -> list[Any]:
    return [
        t.no_grad,
        t.enable_grad,
        lambda: t.set_grad_enabled(False),
        lambda: t.set_grad_enabled(True),
        t.inference_mode,
        lambda: t.inference_mode(False),
    ]


def nested_modes(t: Any) -> Any:
    found = []
    for outer in switches(t):
        for inner in switches(t):
            with outer():
                with inner():
                    x = leaf(t)
                    found.append((*state(t), (x * 2).requires_grad, (x * 2).is_inference()))
                found.append(state(t))
            found.append(state(t))
    return found


def decorated(t: Any) -> Any:
    made = [switch()(lambda: state(t)) for switch in switches(t)]
    bare = [mode(lambda: state(t)) for mode in (t.no_grad, t.enable_grad, t.inference_mode)]
    found = [f() for f in (*made, *bare)]
    with t.no_grad():
        found += [f() for f in (*made, *bare)]
    return [*found, state(t)]


def generators(t: Any) -> Any:
    log: list[Any] = []

    @t.no_grad()
    def f() -> Any:
        try:
            log.append((t.is_grad_enabled(), (yield 1)))
            try:
                yield 2
            except KeyError:
                log.append(("caught", t.is_grad_enabled()))
            yield 3
        finally:
            log.append(("end", t.is_grad_enabled()))

    g = f()
    steps = (lambda: next(g), lambda: g.send("s"), lambda: g.throw(KeyError()), g.close)
    outside = [(step(), t.is_grad_enabled()) for step in steps]
    return log, outside


def modes_of_threads(t: Any) -> Any:
    seen: list[Any] = []
    with t.no_grad(), t.inference_mode():
        thread = threading.Thread(target=lambda: seen.append(state(t)))
        thread.start()
        thread.join()
        seen.append(state(t))
    return seen


def wrong_modes(t: Any) -> Any:
    return [tried(lambda w=w: t.set_grad_enabled(w)) for w in (1, None, "no")]


def inference_tensors(t: Any) -> Any:
    x = leaf(t)
    plain = t.tensor([1.0, 2.0])
    with t.inference_mode():
        a = t.tensor([1.0, 2.0])
        b = x * 2
        a.mul_(3)
        plain.add_(1)
        views = [a[:1], x.view(2), plain[:1], plain.detach(), a.detach()]
    return [
        [v.is_inference() for v in (a, b, *views, a[:1], a.view(2), a.detach(), a * 2, a.clone())],
        [v.requires_grad for v in (a, b)],
        plain._version,
        tried(lambda: a._version),
        tried(lambda: a.add_(1))[0],
        tried(lambda: a[:1].mul_(2))[1],
        tried(a.requires_grad_),
        tried(lambda: x * a),
        tried(lambda: x.pow(a)),
        tried(lambda: x / a),
        tried(lambda: (x * b).sum()),
        tried(lambda: views[1].mul_(2)),
        tried(a.sum().backward),
        tried(lambda: pickle.loads(pickle.dumps(a)).is_inference()),
        tried(lambda: copy.deepcopy(a).is_inference()),
    ]


def views_from_no_grad(t: Any) -> Any:
    found = []
    for write_mode in (t.no_grad, t.enable_grad):
        for mode in (t.no_grad, t.inference_mode):
            y = leaf(t) * 1
            with mode():
                v = y.view(2)
            first = v.grad_fn, v.is_leaf, v._base is y
            refused = tried(lambda v=v: v.mul_(2))
            with write_mode():
                y.add_(1)
            after = [tried(lambda v=v, a=a: getattr(v, a)) for a in ("grad_fn", "is_leaf")]
            found.append([first, refused, after, v.tolist(), tried(lambda v=v: v * 2)])
    return found


def order_of_refusals(t: Any) -> Any:
    class Same(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = leaf(t)
    with t.no_grad():
        parts = x.unbind()
    return [
        tried(lambda: x.unbind()[0].add_(1)),
        tried(lambda: x.view(2).add_(1)),
        tried(lambda: Same.apply(x).add_(1)),
        tried(lambda: parts[0].add_(1)),
        x,
    ]


# states ------------------------------------------------------------------------------------------


def assignments(t: Any) -> Any:
    x, whole = leaf(t), t.tensor([1, 2])
    y = x * 2
    found = [
        tried(lambda: setattr(y, "requires_grad", False)),
        tried(lambda: setattr(y, "requires_grad", True)),
        tried(lambda: setattr(x, "requires_grad", 1)),
        tried(lambda: setattr(whole, "requires_grad", True)),
        tried(whole.requires_grad_),
        tried(lambda: y.requires_grad_(False)),
        tried(lambda: y.requires_grad_().requires_grad),
        tried(lambda: setattr(x, "grad", 5)),
        tried(lambda: setattr(x, "grad", x)),
        tried(lambda: setattr(x, "grad", t.ones(3))),
        tried(lambda: setattr(x, "grad", t.ones(2, dtype=t.float64)))[0],
        x.grad,
        tried(lambda: setattr(x, "data", 5)),
        tried(lambda: setattr(x, "data", whole)),
        x,
        tried(whole.retain_grad),
        tried(y[:1].detach_)[1][:48],
    ]
    names = ("grad_fn", "is_leaf", "_version")
    found += [tried(lambda name=name: setattr(x, name, None))[0] for name in names]
    x.grad = t.ones(2)
    del x.grad
    x = x.detach().requires_grad_()  # of which nothing was computed yet
    x.data = t.tensor([5.0, 6.0, 7.0])
    (x * x).sum().backward()
    y.retain_grad()
    x.retain_grad()
    return [*found, x.grad, x._version, y.retains_grad, x.retains_grad, y.detach_().is_leaf]


def warnings_of_states(t: Any) -> Any:
    x = leaf(t)
    y = x * 2
    found = []
    for action in (
        lambda: y.grad,
        lambda: t.autograd.grad(y.sum(), x, only_inputs=False),
        lambda: float(x[0]),
        lambda: (y.retain_grad(), y.grad),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action()
        found.append([(w.category.__name__, str(w.message)[:50]) for w in caught])
    return found


def copies(t: Any) -> Any:
    x = leaf(t)
    x.grad = t.tensor([3.0, 4.0])
    x.note = 5
    x.register_hook(lambda g: g * 100)
    y = x * 2
    deep, shallow, pickled = copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))
    found = []
    for other in (deep, shallow, pickled):
        found.append((other, other.requires_grad, other.is_leaf, other.grad, other.note))
        (other * 2).sum().backward()
        found.append(other.grad)
    found += [
        shallow.data_ptr() == x.data_ptr(),
        deep.data_ptr() == x.data_ptr(),
        tried(lambda: copy.deepcopy(y)),
        tried(lambda: pickle.loads(pickle.dumps(y)).requires_grad),
        tried(lambda: copy.deepcopy(y.detach())),
    ]
    a = t.tensor([1.0, 2.0, 3.0, 4.0])
    for parts in ([a, a[:2], a], [a[1:], a], [a.detach(), a.view(2, 2)]):
        others = copy.deepcopy(parts)
        others[0].mul_(2)
        found.append((others, parts))
    columns = t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).t()
    return [*found, copy.deepcopy(columns).stride(), pickle.loads(pickle.dumps(columns)).stride()]


def variables(t: Any) -> Any:
    variable = t.autograd.Variable
    x = t.tensor([1.0, 2.0])
    v = variable(x, requires_grad=True)
    return [
        (v, v.requires_grad, v.data_ptr() == x.data_ptr(), x.requires_grad),
        (isinstance(x, variable), isinstance(v, t.Tensor), isinstance(5, variable)),
        tried(lambda: variable(leaf(t) * 2).is_leaf),
        tried(lambda: variable([1.0])),
        tried(lambda: t.autograd.variable(x)),
    ]


def conversions(t: Any) -> Any:
    x = leaf(t)
    return [
        tried(action)
        for action in (
            x.numpy,
            x.tolist,
            x.item,
            lambda: bool(x),
            lambda: bool(t.tensor([])),
            lambda: float(x.detach()),
            lambda: int(x.detach()),
            lambda: complex(x.detach()),
            lambda: len(x[0]),
            lambda: iter(x[0]),
            lambda: [1, 2][t.tensor(1.0)],
            lambda: [1, 2][t.tensor(1)],
            lambda: x.size(3),
            lambda: x.stride(-3),
            lambda: 1.0 in x,
            lambda: (x.element_size(), x.size(), x.stride(), x.dim(), x.numel(), x.nelement()),
        )
    ]


# hooks -------------------------------------------------------------------------------------------


def removal(t: Any) -> Any:
    found = []
    for kind in ("tensor", "pre", "post", "accumulate", "leaf"):
        log: list[Any] = []
        x = leaf(t)
        y = x * 2
        add = {
            "tensor": y.register_hook,
            "pre": y.grad_fn.register_prehook,
            "post": y.grad_fn.register_hook,
            "accumulate": x.register_post_accumulate_grad_hook,
            "leaf": x.register_hook,
        }[kind]
        handles: list[Any] = []

        def first(*_: Any, log: Any = log, handles: Any = handles, add: Any = add) -> None:
            log.append("first")
            handles[1].remove()
            handles[0].remove()
            add(lambda *_: log.append("late"))

        handles.append(add(first))
        handles.append(add(lambda *_, log=log: log.append("second")))
        handles.append(add(lambda *_, log=log: log.append("third")))
        for _ in range(2):
            y.sum().backward(retain_graph=True)
            log.append("|")
        found.append(log)
    return found


def results_that_mean_nothing(t: Any) -> Any:
    y = leaf(t) * 2
    found = []
    for add in (y.register_hook, y.grad_fn.register_prehook, y.grad_fn.register_hook):
        for result in (None, 0, False, [], ()):
            with add(lambda *_, result=result: result):
                found.append(tried(lambda: y.sum().backward(retain_graph=True)))
    return found


def several_tensors(t: Any) -> Any:
    log: list[Any] = []
    x, y, z = leaf(t, [1.0]), leaf(t, [2.0]), leaf(t, [3.0])
    register = t.autograd.graph.register_multi_grad_hook
    every = register((x, y, z), lambda g: log.append(comparable(g)), mode="all")
    first = register((x, y, z), lambda g: log.append(comparable(g)), mode="any")
    w = x * y
    w.sum().backward(retain_graph=True)
    (w * z).sum().backward(create_graph=True)
    every.remove()
    w.sum().backward(retain_graph=True)
    first.remove()
    w.sum().backward()
    return log


def several_tensors_and_errors(t: Any) -> Any:
    log: list[Any] = []

    def fails(g: Any) -> None:
        log.append("called")
        raise ValueError("no")

    x, y = leaf(t, [1.0]), leaf(t, [2.0])
    for mode in ("any", "all"):
        with_hook = t.autograd.graph.register_multi_grad_hook((x, y), fails, mode=mode)
        log += [tried(lambda: (x * y).sum().backward()) for _ in range(2)]
        with_hook.remove()
        log.append(tried(lambda: (x * y).sum().backward()))
    return log


def packing_of_functions(t: Any) -> Any:
    log: list[Any] = []

    class Square(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, x * 2)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            _, double = ctx.saved_tensors
            log.append("again")
            _, double = ctx.saved_tensors
            return g * double

    def hooks(name: str) -> Any:
        return t.autograd.graph.saved_tensors_hooks(
            lambda x: (log.append(f"pack {name}"), x.detach() * 1)[1],
            lambda x: (log.append(f"unpack {name}"), x)[1],
        )

    x = leaf(t)
    with hooks("outer"):
        y = x.exp()
        with hooks("inner"):
            z = Square.apply(y)
    (g,) = t.autograd.grad(z.sum(), x, create_graph=True)
    return log, g, tried(lambda: t.autograd.grad(g.sum(), x))


def refused_packing(t: Any) -> Any:
    graph = t.autograd.graph
    x = leaf(t)

    @graph.disable_saved_tensors_hooks("decorated")
    def f() -> Any:
        with graph.save_on_cpu():
            return x * x

    found = [tried(f)]
    with graph.disable_saved_tensors_hooks("block"):
        y = (x * x).sum()
        found.append(tried(lambda: graph.save_on_cpu().__enter__()))
        y.backward()
    return [*found, x.grad]


# functions ---------------------------------------------------------------------------------------


def written_arguments(t: Any) -> Any:
    class Doubled(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(t, [1.0, 2.0, 3.0])
    found = [tried(lambda: Doubled.apply(x))]
    x = leaf(t, [1.0, 2.0, 3.0])
    y = x * 1
    found += [Doubled.apply(y) is y, y.grad_fn.name(), y._version]
    y.sum().backward()
    found.append(x.grad)
    y = x * 1
    part = y[:2]
    Doubled.apply(part)
    y.sum().backward()
    one, _, _ = (x * 1).unbind()
    return [*found, y, x.grad, tried(lambda: Doubled.apply(one))]


def gradients_that_do_not_come(t: Any) -> Any:
    found: list[Any] = []

    class Two(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any, materialize: bool) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            found.append((a is None, b is None, ctx.needs_input_grad))
            parts = [g * k for g, k in ((a, 2), (b, 3)) if g is not None]
            return sum(parts[1:], parts[0]), None

    x = leaf(t)
    for materialize in (True, False):
        for pick in (lambda a, b: a, lambda a, b: b, lambda a, b: a + b):
            pick(*Two.apply(x, materialize)).sum().backward()
            found.append(x.grad.tolist())
    return found


def gradients_that_are_none(t: Any) -> Any:
    class Nothing(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    x, log = leaf(t), []
    x.register_hook(log.append)
    y = Nothing.apply(x).sum()
    return [
        tried(lambda: t.autograd.grad(y, x, retain_graph=True)),
        tried(lambda: t.autograd.grad(y, x, retain_graph=True, allow_unused=True)),
        tried(lambda: t.autograd.grad(y, x, retain_graph=True, materialize_grads=True)),
        tried(y.backward),
        x.grad,
        len(log),
    ]


def checks_of_gradients(t: Any) -> Any:
    class Late(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return t.ones(2, dtype=t.float64) if g is None else g * 2

    class Never(t.autograd.Function):  # type: ignore[misc,name-defined]  # of a library
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(g)
            return g * 2

    log: list[Any] = []
    x = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
    y = Never.apply(x) * 1
    y.grad_fn.register_hook(lambda gi, go: (None,) * len(gi))
    y.sum().backward()
    check = t.autograd.gradcheck
    return [
        tried(lambda: check(Late.apply, x)),
        tried(lambda: check(Never.apply, x)),
        tried(lambda: check(Late.apply, x, check_undefined_grad=False)),
        tried(lambda: check(Late.apply, x, raise_exception=False)),
        tried(lambda: check(lambda v: v * 2, x.detach())),
        log[0],
        x.grad,
    ]


# arguments ---------------------------------------------------------------------------------------


def batches(t: Any) -> Any:
    x = leaf(t)
    y = x * x
    keep = {"is_grads_batched": True, "retain_graph": True}
    eye = t.eye(2)
    (g,) = t.autograd.grad(y, x, eye, create_graph=True, is_grads_batched=True)
    return [
        tried(lambda: t.autograd.grad(y, x, eye, **keep)),
        tried(lambda: t.autograd.grad([y, y], x, [eye, t.ones(3, 2)], **keep)),
        tried(lambda: t.autograd.grad(y.sum(), x, **keep))[0],
        tried(lambda: t.autograd.grad(y, x, **keep)),
        tried(lambda: t.autograd.grad(g.sum(), x)),
    ]


def arguments_of_backward(t: Any) -> Any:
    x = leaf(t)
    y = x * x
    keep = {"retain_graph": True}
    return [
        tried(lambda: t.autograd.backward([y], t.ones(2), **keep)),
        tried(lambda: t.autograd.backward(y, [None], **keep)),
        tried(lambda: y.backward(t.ones(2, dtype=t.float64), **keep)),
        tried(lambda: y.backward(t.ones(2, dtype=t.int64), **keep)),
        tried(lambda: y.backward(t.ones(2, 2), **keep)),
        x.grad,
        tried((x.sum() * t.ones(1)).backward),
        tried(lambda: t.ones(2, requires_grad=True).sum().backward(inputs=x)),
        tried(x.backward),
        tried(lambda: x.backward(t.ones(2))),
        x.grad,
        tried(lambda: t.autograd.grad(x * x, x, leaf(t), create_graph=True)[0].requires_grad),
        tried(lambda: t.autograd.grad(x * x, x, leaf(t))[0].requires_grad),
    ]


def levels(t: Any) -> Any:
    fw = t.autograd.forward_ad
    x, v = leaf(t), t.tensor([1.0, 3.0])
    found = [tried(lambda: fw.make_dual(x, v)), tried(fw.exit_dual_level)]
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        (g,) = t.autograd.grad((dual**3).sum(), dual, create_graph=True)
        primal, tangent = fw.unpack_dual(g)
        found += [primal, tangent, tried(lambda: t.autograd.grad(tangent.sum(), x))]
        found += [tried(fw.enter_dual_level), tried(lambda: fw.make_dual(x, t.ones(3)))]
        found += [tried(lambda: fw.make_dual(dual, v)), fw.unpack_dual(x).tangent]
        found.append(tried(lambda: fw.unpack_dual(5))[0])
    return found


SCENARIOS = [
    nested_modes,
    decorated,
    generators,
    modes_of_threads,
    wrong_modes,
    inference_tensors,
    views_from_no_grad,
    order_of_refusals,
    assignments,
    warnings_of_states,
    copies,
    variables,
    conversions,
    removal,
    results_that_mean_nothing,
    several_tensors,
    several_tensors_and_errors,
    packing_of_functions,
    refused_packing,
    written_arguments,
    gradients_that_do_not_come,
    gradients_that_are_none,
    checks_of_gradients,
    batches,
    arguments_of_backward,
    levels,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_the_same_code_gives_the_same(scenario: Callable[[Any], Any]) -> None:
    assert comparable(scenario(own)) == comparable(scenario(torch))
