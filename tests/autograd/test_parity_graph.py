"""Graph and hooks against PyTorch: what runs, in which order, with which values and errors.

A scenario is a function of a library; what it returns is the same for both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from functrans import autograd
from functrans.autograd import anomaly
from functrans.autograd import graph as own_graph

torch = pytest.importorskip("torch")

OWN = SimpleNamespace(
    tensor=lambda values, grad=True, dtype="float64": autograd.tensor(
        values, dtype=np.dtype(dtype), requires_grad=grad
    ),
    grad=autograd.grad,
    backward=autograd.backward,
    no_grad=autograd.no_grad,
    enable_grad=autograd.enable_grad,
    graph=own_graph,
    detect_anomaly=anomaly.detect_anomaly,
)
TORCH = SimpleNamespace(
    tensor=lambda values, grad=True, dtype="float64": torch.tensor(
        values, dtype=getattr(torch, dtype), requires_grad=grad
    ),
    grad=torch.autograd.grad,
    backward=torch.autograd.backward,
    no_grad=torch.no_grad,
    enable_grad=torch.enable_grad,
    graph=torch.autograd.graph,
    detect_anomaly=torch.autograd.detect_anomaly,
)

Scenario = Callable[[Any], Any]


def comparable(x: Any) -> Any:
    """Lists and strings in place of tensors, nodes and errors."""
    if isinstance(x, (tuple, list)):
        return [comparable(item) for item in x]
    if hasattr(x, "next_functions"):
        return x.name().removeprefix("torch::autograd::")
    if isinstance(x, (torch.Tensor, autograd.Tensor)):
        return x.tolist()
    return x


def tried(action: Callable[[], Any]) -> Any:
    """The result, or type and beginning of the message of the error."""
    try:
        return comparable(action())
    except Exception as error:
        return type(error).__name__, str(error).split("Hint")[0].split(" It was saved")[0]


# the order of hooks ------------------------------------------------------------------------------


def order_of_all_kinds(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: log.append(("first", g)))
    y.retain_grad()
    y.register_hook(lambda g: log.append("second") or g * 10)
    y.grad_fn.register_prehook(lambda g: log.append(("pre", g)))
    y.grad_fn.register_hook(lambda gi, go: log.append(("post", gi, go)))
    leaf = y.grad_fn.next_functions[0][0]
    leaf.register_hook(lambda gi, go: log.append(("leaf post", gi, go)))
    leaf.register_prehook(lambda g: log.append(("leaf pre", g)))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad * 1)))
    x.register_hook(lambda g: log.append(("leaf", g)))
    y.sum().backward()
    return log, y.grad, x.grad


def order_across_nodes(lib: Any) -> Any:
    log: list[str] = []
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])

    def watch(name: str, t: Any) -> Any:
        t.register_hook(lambda g: log.append(f"t {name}"))
        t.grad_fn.register_prehook(lambda g: log.append(f"pre {name}"))
        t.grad_fn.register_hook(lambda gi, go: log.append(f"post {name}"))
        return t

    for name, t in (("x", x), ("w", w)):
        t.register_hook(lambda g, name=name: log.append(f"leaf {name}"))
        t.register_post_accumulate_grad_hook(lambda p, name=name: log.append(f"acc {name}"))
    a = watch("a", x * w)
    b = watch("b", a * 2)
    c = watch("c", a * w)
    watch("d", (b * c).sum()).backward()
    return log


def hooks_on_several_results(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0, 2.0, 3.0])
    a, b, c = x.unbind()
    c.register_hook(lambda g: log.append(("c", g)))
    b.retain_grad()
    a.retain_grad()
    a.register_hook(lambda g: log.append(("a", g)) or g * 5)
    c.register_hook(lambda g: log.append(("c again", g)))
    a.grad_fn.register_prehook(lambda g: log.append(("pre", g)))
    a.grad_fn.register_hook(lambda gi, go: log.append(("post", gi, go)))
    (a * 2 + b * 3).backward()
    return log, a.grad, b.grad, x.grad


def removed_and_added_while_running(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0])
    y = x * 2
    handles: list[Any] = []

    def remover(g: Any) -> None:
        log.append("remover")
        for handle in handles:
            handle.remove()

    def adder(g: Any) -> None:
        log.append("adder")
        y.register_hook(lambda g: log.append("added"))

    handles.append(y.register_hook(remover))
    handles.append(y.register_hook(adder))
    handles.append(y.register_hook(lambda g: log.append("last")))
    for _ in range(3):
        log.append("pass")
        y.sum().backward(retain_graph=True)
    return log


def node_hooks_removed_while_running(lib: Any) -> Any:
    log: list[Any] = []
    y = lib.tensor([1.0]) * 2
    handles: list[Any] = []
    handles.append(y.grad_fn.register_hook(lambda gi, go: log.append(1) or handles[1].remove()))
    handles.append(y.grad_fn.register_hook(lambda gi, go: log.append(2)))
    handles.append(y.grad_fn.register_prehook(lambda g: log.append(3) or handles[2].remove()))
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    with y.register_hook(lambda g: log.append("in block")):
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    return log


def replacements(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.grad_fn.register_prehook(lambda g: (g[0] * 3,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + go[0], None))
    x.register_hook(lambda g: g * 100)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    return x.grad


def replaced_by_nothing(lib: Any) -> Any:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: (None, gi[1]))
    y.sum().backward()
    return x.grad, w.grad


def nothing_reaches_a_node(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: log.append(("y", g)))
    y.grad_fn.register_hook(lambda gi, go: log.append(("post", gi, go)))
    x.register_hook(lambda g: log.append(("x", g)))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("acc", p.grad)))
    z = y * 3
    z.grad_fn.register_hook(lambda gi, go: (None, None))
    z.sum().backward()
    return log, x.grad


# hooks and inputs --------------------------------------------------------------------------------


def hooks_and_grad(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    for name, t in (("x", x), ("y", y)):
        t.register_hook(lambda g, name=name: log.append(name) or g * 2)
    y.retain_grad()
    node = lib.graph.get_gradient_edge(x).node
    for n, name in ((node, "leaf"), (y.grad_fn, "mul")):
        n.register_prehook(lambda g, name=name: log.append(f"pre {name}"))
        n.register_hook(lambda gi, go, name=name: log.append(f"post {name}"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    z = (y * 3).sum()
    found = [lib.grad(z, x, retain_graph=True), log[:]]
    log.clear()
    found += [lib.grad(z, y, retain_graph=True), log[:], y.grad]
    log.clear()
    z.backward(inputs=[x], retain_graph=True)
    found += [x.grad, log[:]]
    log.clear()
    z.backward(inputs=[y])
    return [*found, y.grad, x.grad, log]


def backward_to_a_result_keeps_its_gradient(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    z = (y * 3).sum()
    z.backward(inputs=[y], retain_graph=True)
    first = y.grad.tolist(), x.grad, y.retains_grad
    z.backward(retain_graph=True)
    second = y.grad.tolist(), x.grad.tolist()
    z.backward(inputs=[y, x])
    return first, second, y.grad, x.grad


def hooks_of_the_other_operand_do_not_run(lib: Any) -> Any:
    log: list[Any] = []
    x, w = lib.tensor([1.0]), lib.tensor([2.0])
    x.register_hook(lambda g: log.append("x"))
    w.register_hook(lambda g: log.append("w"))
    a = x * 2
    b = w * 2
    a.register_hook(lambda g: log.append("a"))
    b.register_hook(lambda g: log.append("b"))
    (a * b).sum().backward(inputs=[w])
    return log, x.grad, w.grad


# writes ------------------------------------------------------------------------------------------


def hooks_stay_with_the_old_gradient(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: log.append(("old", g)))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: log.append(("new", g)))
    y.sum().backward()
    return log, y.grad, x.grad


def retain_grad_follows_the_tensor(lib: Any) -> Any:
    found = []
    for write in (lambda y: y.mul_(3).mul_(5), lambda y: y[:1].mul_(5), lambda y: y.zero_()):
        x = lib.tensor([1.0, 2.0])
        y = x * 2
        y.retain_grad()
        write(y)
        (y * 7).sum().backward()
        found.append((y.grad, x.grad, y.retains_grad))
    return found


def retain_grad_of_views(lib: Any) -> Any:
    found = []
    for write in (lambda y, v: y.mul_(5), lambda y, v: v.mul_(5)):
        x = lib.tensor([1.0, 2.0])
        y = x * 2
        v = y[:1]
        v.retain_grad()
        write(y, v)
        (y.sum() + v.sum() * 3).backward()
        found.append((v.grad, x.grad, v.retains_grad))
    return found


def hooks_of_views_before_a_write(lib: Any) -> Any:
    log: list[Any] = []
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    v = y[:1]
    v.register_hook(lambda g: log.append(("view", g)))
    y.mul_(5)
    (y.sum() + v.sum()).backward()
    return log, x.grad


def views_of_views(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0, 3.0, 4.0])
    y = x * 1
    v = y.view(2, 2)
    w = v[0]
    w.mul_(10)
    v[1].add_(w)
    (v * v).sum().backward()
    return y, v, w, x.grad, y.grad_fn, w._base is y, v._version, w._version


def a_view_of_what_became_differentiable(lib: Any) -> Any:
    x = lib.tensor([5.0])
    y = lib.tensor([0.0, 1.0, 2.0], False)
    v = y[:2]
    y[:1] = x
    w = v[:1]
    flags = [t.requires_grad for t in (y, v, w)]
    (w * 3).sum().backward()
    return flags, x.grad


def constants_written_over(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.copy_(lib.tensor([7.0, 8.0], False))
    flag = y.requires_grad
    y.sum().backward()
    return flag, x.grad, y


def version_counters(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0], False)
    versions = []
    for write in (
        lambda: x.add_(1),
        lambda: x[:1].mul_(2),
        lambda: x.detach().add_(1),
        lambda: x.data.add_(1),
        lambda: lib.graph.increment_version(x),
        lambda: lib.graph.increment_version([x, x.detach()]),
    ):
        write()
        versions.append((x._version, x.view(2)._version))
    return versions, x


def saved_values_written_to(lib: Any) -> Any:
    found = []
    for write in (
        lambda y: y.add_(1),
        lambda y: y.detach().add_(1),
        lambda y: y[:1].zero_(),
        lambda y: y.view(2).mul_(2),
        lib.graph.increment_version,
    ):
        x = lib.tensor([1.0, 2.0])
        y = x * 1
        z = (y * y).sum()
        write(y)
        found.append(tried(z.backward))
        found.append(x.grad)
    x = lib.tensor([1.0, 2.0])
    y = x * 1
    z = (y * y).sum()
    y.data.add_(1)
    z.backward()
    return [isinstance(f, tuple) and f[0] for f in found], x.grad


def refused_writes(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    with lib.no_grad():
        v = x[:1]
    y = (x * 1).unbind()[0]
    return [
        tried(lambda: x.add_(1)),
        tried(lambda: x[:1].add_(1)),
        tried(lambda: v.add_(1)),
        tried(lambda: y.add_(1)),
        tried(lambda: x.view(2).detach_())[0],
        x,
    ]


# errors ------------------------------------------------------------------------------------------


def wrong_results_of_hooks(lib: Any) -> Any:
    def of_tensor(result: Any) -> Any:
        def hook(g: Any) -> Any:
            return result

        y = lib.tensor([1.0, 2.0]) * 2
        y.register_hook(hook)
        return tried(lambda: y.sum().backward())

    def of_node(kind: str, result: Any) -> Any:
        def hook(*g: Any) -> Any:
            return result

        x, w = lib.tensor([1.0, 2.0]), lib.tensor([1.0, 2.0])
        y = x * w
        getattr(y.grad_fn, kind)(hook)
        return tried(lambda: y.sum().backward())

    one = lib.tensor([1.0, 1.0], False)
    narrow = lib.tensor([1.0, 1.0], False, "float32")
    whole = lib.tensor([1, 1], False, "int64")
    return [
        of_tensor(5),
        of_tensor(lib.tensor([1.0, 1.0, 1.0], False)),
        of_tensor(narrow),
        of_tensor(whole),
        *[of_node("register_prehook", r) for r in (5, one, (5,), (narrow,), (one, one), ())],
        *[of_node("register_hook", r) for r in (5, one, (5, None), (narrow, None), (one,), ())],
    ]


def wrong_results_of_other_hooks(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    x.register_post_accumulate_grad_hook(lambda p: 5)
    node = lib.graph.get_gradient_edge(lib.tensor([1.0])).node
    y = lib.tensor([1.0])
    node = (y * 2).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: (go[0],))
    a, _ = lib.tensor([1.0, 2.0]).unbind()
    a.grad_fn.register_prehook(lambda g: (g[0], g[0]))
    return [
        tried(lambda: (x * 2).sum().backward())[0] in ("TypeError", "RuntimeError"),
        tried(lambda: (y * 2).sum().backward()),
        tried(a.backward),
    ]


def refused_hooks(lib: Any) -> Any:
    c = lib.tensor([1.0], False)
    y = lib.tensor([1.0]) * 2
    return [
        tried(lambda: c.register_hook(print)),
        tried(lambda: c.register_post_accumulate_grad_hook(print)),
        tried(c.retain_grad),
        tried(lambda: y.register_post_accumulate_grad_hook(print)),
        tried(lambda: lib.graph.get_gradient_edge(c)),
        tried(lambda: lib.graph.register_multi_grad_hook([y], print, mode="most")),
        tried(lambda: lib.graph.increment_version([5])),
        tried(lambda: lib.graph.increment_version(5)),
    ]


def arguments_of_grad(lib: Any) -> Any:
    x, other, c = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0]), lib.tensor([1.0, 2.0], False)
    y = x * 2
    z = (y * 3).sum()
    keep = {"retain_graph": True}
    eye = lib.tensor([[1.0, 0.0], [0.0, 1.0]], False)
    return [
        tried(lambda: lib.grad(z, other, **keep)),
        tried(lambda: lib.grad(z, [x, other], allow_unused=True, **keep)),
        tried(lambda: lib.grad(z, [x, other], materialize_grads=True, **keep)),
        tried(lambda: lib.grad(z, x, materialize_grads=True, allow_unused=False, **keep)),
        tried(lambda: lib.grad(z, [x, x, y], **keep)),
        tried(lambda: lib.grad(z, z, **keep)),
        tried(lambda: lib.grad(y, y, c, **keep)),
        tried(lambda: lib.grad([y, z], [x], [c, None], **keep)),
        tried(lambda: lib.grad(y, x, eye, is_grads_batched=True, **keep)),
        tried(lambda: lib.grad(z, [], **keep)),
        tried(lambda: lib.grad(z, c, **keep)),
        tried(lambda: lib.grad(z, [5], **keep)),
        tried(lambda: lib.grad(c.sum(), x)),
        tried(lambda: lib.grad(y, x)),
        tried(lambda: y.backward(lib.tensor([1.0, 1.0, 1.0], False))),
        tried(lambda: z.backward(inputs=[])),
        tried(lambda: z.backward(inputs=[c])),
        tried(lambda: z.backward(inputs=[5])),
        tried(lambda: c.sum().backward()),
        tried(lambda: lib.backward([])),
        x.grad,
        tried(z.backward),
        tried(z.backward),
    ]


# edges -------------------------------------------------------------------------------------------


def edges(lib: Any) -> Any:
    graph = lib.graph
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    z = y * 3
    one = lib.tensor([1.0, 1.0], False)
    node = z.grad_fn.next_functions[0]
    found = [
        lib.grad(z.sum(), graph.get_gradient_edge(y), retain_graph=True),
        lib.grad(graph.get_gradient_edge(z), x, one, retain_graph=True),
        lib.grad(graph.GradientEdge(*node), x, one, retain_graph=True),
        lib.grad(z.sum(), [x, graph.GradientEdge(*node)], retain_graph=True),
        tried(lambda: lib.grad(graph.get_gradient_edge(z), x, retain_graph=True)),
        [(n, i) for n, i in z.grad_fn.next_functions],
        [(n, i) for n, i in y.grad_fn.next_functions],
        len(graph.get_gradient_edge(z)),
        graph.get_gradient_edge(x).node,
        isinstance(z.grad_fn, graph.Node),
        isinstance(graph.get_gradient_edge(x).node, graph.Node),
        isinstance(z, graph.Node),
    ]
    lib.backward(graph.get_gradient_edge(z), one, retain_graph=True)
    lib.backward(z.sum(), inputs=[graph.get_gradient_edge(x)], retain_graph=True)
    lib.backward(z.sum(), inputs=[graph.get_gradient_edge(y)])
    return [*found, x.grad, y.grad]


def edges_of_several_results(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0, 3.0])
    parts = x.unbind()
    z = parts[0] * 2 + parts[2] * 5
    edge = lib.graph.get_gradient_edge(parts[2])
    return [
        edge.output_nr,
        [p.output_nr for p in parts],
        lib.grad(z, edge, retain_graph=True),
        lib.grad(z, list(parts), allow_unused=True, retain_graph=True),
        lib.grad(edge, x),
    ]


# saved tensors -----------------------------------------------------------------------------------


def saved_attributes(lib: Any) -> Any:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    y, e, p, s = x * w, x.exp(), x**2, x * 3
    found = [
        y.grad_fn._saved_self is x,
        y.grad_fn._saved_other is w,
        e.grad_fn._saved_result,
        e.grad_fn._saved_result.grad_fn is e.grad_fn,
        p.grad_fn._saved_self is x,
        p.grad_fn._saved_exponent,
        s.grad_fn._saved_self,
        s.grad_fn._saved_other,
        (x / w).grad_fn._saved_other is w,
        (y * e).grad_fn._saved_self.grad_fn is y.grad_fn,
        tried(lambda: s.grad_fn._saved_nothing)[0],
    ]
    e.sum().backward()
    return [
        *found,
        tried(lambda: e.grad_fn._saved_result),
        tried(lambda: e.grad_fn._raw_saved_result.register_hooks(abs, abs))[0],
    ]


def saved_attributes_written_to(lib: Any) -> Any:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    y = x * w
    with lib.no_grad():
        x.add_(1)
    return (
        tried(lambda: y.grad_fn._saved_self)[0],
        tried(lambda: y.grad_fn._saved_other),
    )


def raw_saved_hooks(lib: Any) -> Any:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    y = x * w
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: t.tolist(), lambda v: lib.tensor([v[0] * 10, 0.0], False))
    again = tried(lambda: raw.register_hooks(abs, abs))
    none = tried(lambda: (x * 2).grad_fn._raw_saved_self.register_hooks(abs, abs))
    number = tried(lambda: y.grad_fn._raw_saved_other.register_hooks(1, 2))[0]
    y.sum().backward()
    return again, none, number, x.grad, w.grad


def packing(lib: Any) -> Any:
    log: list[Any] = []

    def pack(t: Any) -> Any:
        log.append(("pack", t * 1))
        return t.detach()

    def unpack(t: Any) -> Any:
        log.append(("unpack", t * 1))
        return t

    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0], False)
    with lib.graph.saved_tensors_hooks(pack, unpack):
        y = ((x * x).exp() * w * 2 + x).sum()
        lib.tensor([1.0], False) * 2
    log.append("backward")
    y.backward(retain_graph=True)
    y.backward()
    return log, x.grad


def failing_packing(lib: Any) -> Any:
    def use(pack: Any, unpack: Any) -> Any:
        x = lib.tensor([1.0, 2.0])
        with lib.graph.saved_tensors_hooks(pack, unpack):
            y = x * x
        y.sum().backward()

    def nested() -> Any:
        with lib.graph.disable_saved_tensors_hooks("outer"):
            with lib.graph.disable_saved_tensors_hooks("inner"):
                pass
            use(lambda t: t, lambda t: t)

    def inside() -> Any:
        with (
            lib.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
            lib.graph.disable_saved_tensors_hooks("inside"),
        ):
            pass

    return [
        tried(lambda: use(lambda t: 1 // 0, lambda t: t)),
        tried(lambda: use(lambda t: t, lambda t: 1 // 0)),
        tried(lambda: use(lambda t: t, lambda t: 5)),
        tried(lambda: use(lambda t: t.detach().add_(1), lambda t: t))[1][:60],
        tried(lambda: use(5, 5))[0],
        tried(nested),
        tried(inside),
    ]


def mutation(lib: Any) -> Any:
    found = []
    for write in (lambda y: y.add_(1), lambda y: y[:1].mul_(5), lambda y: y.add_(1).add_(1)):
        x = lib.tensor([1.0, 2.0])
        with lib.graph.allow_mutation_on_saved_tensors():
            y = x * 1
            z = (y * y * y).sum()
            write(y)
            z.backward()
        found.append(x.grad)
    x = lib.tensor([1.0, 2.0])
    with lib.graph.allow_mutation_on_saved_tensors():
        z = (x * x).sum()
    found.append(tried(z.backward))
    with lib.graph.allow_mutation_on_saved_tensors():
        found.append(tried(lambda: lib.graph.allow_mutation_on_saved_tensors().__enter__()))
    return found


# several tensors ---------------------------------------------------------------------------------


def multi_grad_hooks(lib: Any) -> Any:
    found = []
    for mode in ("all", "any"):
        log: list[Any] = []
        t = [lib.tensor([1.0 * i]) for i in range(1, 5)]
        y = t[0] * t[1]
        handle = lib.graph.register_multi_grad_hook([*t, y], log.append, mode=mode)
        z = (y * t[2]).sum()
        z.backward(retain_graph=True)
        (t[3] * 2).sum().backward()
        z.backward(inputs=t[:1], retain_graph=True)
        with pytest.raises(ZeroDivisionError), y.register_hook(lambda g: 1 // 0):
            z.backward(retain_graph=True)
        z.backward(retain_graph=True)
        handle.remove()
        z.backward()
        found.append(log)
    return found


# failures and re-entry ---------------------------------------------------------------------------


def a_hook_that_fails(lib: Any) -> Any:
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    y = w * 2
    z = (y * x).sum()
    handle = y.register_hook(lambda g: 1 // 0)
    first = tried(lambda: z.backward(retain_graph=True))
    between = (x.grad * 1, w.grad)
    handle.remove()
    z.backward(retain_graph=True)
    return first, between, x.grad, w.grad


def re_entrant(lib: Any) -> Any:
    log: list[Any] = []
    x, w = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])

    def hook(g: Any) -> Any:
        log.append(g)
        with lib.enable_grad():
            (w * w).sum().backward()
            (inner,) = lib.grad((x * x).sum(), x)
        return g + inner

    y = x * w
    y.register_hook(hook)
    (y * 2).sum().backward()
    return log, x.grad, w.grad


def create_graph_and_hooks(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = lib.grad(y.sum(), x, create_graph=True)
    (h,) = lib.grad(g.sum(), x)
    return g, h


def accumulation(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    same = x.grad is first
    (x * x).sum().backward(create_graph=True)
    return same, x.grad is first, x.grad, x.grad.requires_grad, first


def layouts(lib: Any) -> Any:
    found = []
    for make in (lambda t: t, lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[:, :1]):
        base = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], False)
        x = make(base).detach().requires_grad_()
        (x * x).sum().backward()
        strides = [x.stride(), x.grad.stride()]
        x.grad = None
        (x * x).sum().backward(create_graph=True)
        found.append((*strides, x.grad.stride()))
    return found


def complex_gradients(lib: Any) -> Any:
    z = lib.tensor([1 + 2j, 3 - 1j], True, "complex128")
    w = lib.tensor([2 - 1j, 1j], True, "complex128")
    log: list[Any] = []
    y = z * w
    y.register_hook(log.append)
    y.grad_fn.register_hook(lambda gi, go: log.append((gi, go)))
    out = (y * y.exp()).sum()
    seed = lib.tensor(1 + 1j, False, "complex128")
    first = lib.grad(out, [z, w], seed, create_graph=True)
    second = lib.grad((first[0] * first[1]).sum(), [z, w], seed)
    return [np.round(comparable(x), 8).tolist() for x in (*first, *second)], len(log)


def complex_refusals(lib: Any) -> Any:
    z = lib.tensor([1 + 2j], True, "complex128")
    x = lib.tensor([1.0])
    one = lib.tensor([1.0], False)
    return [
        tried(lambda: (z * 2).sum().backward())[1][:60],
        tried(lambda: (z * 2).backward(one))[1][:80],
        tried(lambda: (x * 2).backward(z.detach()))[1][:80],
    ]


def anomalies(lib: Any) -> Any:
    def run(check_nan: bool) -> Any:
        x = lib.tensor(0.0)
        with lib.detect_anomaly(check_nan=check_nan):
            (x * 0 * float("nan")).backward()
        return np.isnan(x.grad.item())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tried(lambda: run(True)), bool(run(False))


def anomaly_warnings(lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = lib.tensor(0.0)
        outside = x * float("nan")
        with lib.detect_anomaly():
            y = x * float("nan")
            for z in (y, outside):
                tried(z.backward)
    heads = [str(w.message).split("\n")[0] for w in caught]
    shown = [("y = x * float" in str(w.message)) for w in caught]
    return [h.split(" (Triggered")[0] for h in heads], shown, [w.category.__name__ for w in caught]


def batched(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x.exp() * x
    seeds = lib.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]], False)
    found = lib.grad(y, [x, y], seeds, is_grads_batched=True, retain_graph=True)
    unused = lib.tensor([1.0, 1.0])
    more = lib.grad(y, unused, seeds, is_grads_batched=True, materialize_grads=True)
    return [np.round(comparable(g), 8).tolist() for g in (*found, *more)]


def batched_with_hooks(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x * x
    y.register_hook(lambda g: g * g.sum())
    y.grad_fn.register_prehook(lambda g: (g[0] + 1,))
    seeds = lib.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]], False)
    return lib.grad(y, x, seeds, is_grads_batched=True)


def metadata_and_names(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    y = x * 2
    y.grad_fn.metadata["key"] = 5
    names = [n.grad_fn.name() for n in (x * x, x + x, x - x, x / x, -x, x.exp(), x**2, x.sum())]
    return y.grad_fn.metadata, names, x.grad_fn, lib.graph.get_gradient_edge(x).node.variable is x


SCENARIOS = [
    order_of_all_kinds,
    order_across_nodes,
    hooks_on_several_results,
    removed_and_added_while_running,
    node_hooks_removed_while_running,
    replacements,
    replaced_by_nothing,
    nothing_reaches_a_node,
    hooks_and_grad,
    backward_to_a_result_keeps_its_gradient,
    hooks_of_the_other_operand_do_not_run,
    hooks_stay_with_the_old_gradient,
    retain_grad_follows_the_tensor,
    retain_grad_of_views,
    hooks_of_views_before_a_write,
    views_of_views,
    a_view_of_what_became_differentiable,
    constants_written_over,
    version_counters,
    saved_values_written_to,
    refused_writes,
    wrong_results_of_hooks,
    wrong_results_of_other_hooks,
    refused_hooks,
    arguments_of_grad,
    edges,
    edges_of_several_results,
    saved_attributes,
    saved_attributes_written_to,
    raw_saved_hooks,
    packing,
    failing_packing,
    mutation,
    multi_grad_hooks,
    a_hook_that_fails,
    re_entrant,
    create_graph_and_hooks,
    accumulation,
    layouts,
    complex_gradients,
    complex_refusals,
    anomalies,
    anomaly_warnings,
    batched,
    batched_with_hooks,
    metadata_and_names,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_the_same_as_torch(scenario: Scenario) -> None:
    assert comparable(scenario(OWN)) == comparable(scenario(TORCH))
