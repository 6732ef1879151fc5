"""Annotations of recorded graphs: one table of kinds, met by the backward pass in its order."""

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
import functrans.numpy as fnp
import functrans.passes.batch as batch_module
import functrans.passes.simplify as simplify_module
import functrans.rerolling.rewrite as reroll_module
from functrans.autograd import func, grad, tensor
from functrans.autograd.anomaly import set_detect_anomaly
from functrans.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from functrans.autograd.hooks import add_hook, annotate
from functrans.autograd.jitted import closing
from functrans.core.annotations import KINDS, NODE_NAME, TENSOR_HOOK, Annotation, Kind, When
from functrans.core.jaxpr import Jaxpr
from functrans.errors import JaxprTypeError
from functrans.ir.check import check_jaxpr
from functrans.passes.dce import has_annotations
from functrans.passes.evaluate import evaluate

X = np.array([1.0, 2.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


def double(gradient: Any) -> Any:
    return gradient * 2


def double_all(gradients: Any) -> Any:
    return tuple([g * 2 for g in gradients])


def test_kinds_are_told_apart_by_name() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert {kind.place for kind in KINDS} == {"result", "equation", "saved values"}


@pytest.mark.parametrize(
    ("when", "hook"), [(When.GRADIENT, double), (When.KEPT, double), (When.BEFORE, double_all)]
)
def test_a_new_kind_is_a_row(when: When, hook: Any) -> None:
    place = "equation" if when is When.BEFORE else "result"
    kind = Kind("scale", place, when)
    x = leaf()
    y = x * 3
    handle = add_hook(y.grad_fn, kind, hook)
    assert f"scale {hook.__name__}" in str(y.grad_fn.jaxpr())
    y.sum().backward(retain_graph=True)
    assert_allclose(x.grad, [6.0, 6.0])
    handle.remove()
    y.sum().backward()
    assert_allclose(x.grad, [9.0, 9.0])


def test_graphs_show_hooks_of_several_tensors_pack_hooks_and_origins() -> None:
    x = leaf()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    handle = register_multi_grad_hook((x, y), print)
    text = str(y.grad_fn.jaxpr())
    assert "a:f64[2]{multi-grad hook print}" in text
    assert "b:f64[2]{multi-grad hook print}" in text
    assert "{MulBackward0, saved-value hook <lambda>}" in text
    handle.remove()
    assert "multi-grad" not in str(y.grad_fn.jaxpr())
    with warnings.catch_warnings(), set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        assert "{ExpBackward0, anomaly origin}" in str(x.exp().grad_fn.jaxpr())


def test_a_hook_on_a_leaf_goes_along_to_memory_of_another_shape_and_is_removed_there() -> None:
    x = leaf()
    before = (x * x).sum()
    handle = x.register_hook(double)
    x.data = tensor([1.0, 2.0, 3.0])
    x.sum().backward()
    assert_allclose(x.grad, [2.0, 2.0, 2.0])
    handle.remove()
    x.grad = None
    x.sum().backward()
    assert_allclose(x.grad, [1.0, 1.0, 1.0])
    assert "hook" not in str(before.grad_fn.jaxpr())


def test_hooks_on_several_results_run_result_by_result() -> None:
    a, b = leaf().unbind()
    seen: list[str] = []
    for name, x in (("b1", b), ("a1", a), ("b2", b), ("a2", a)):
        x.register_hook(lambda g, name=name: seen.append(name))
    (a * b).backward()
    assert seen == ["b1", "b2", "a1", "a2"]


def test_an_annotation_refers_to_no_handle() -> None:
    y = leaf() * 2
    handle = y.register_hook(double)
    gone = weakref.ref(handle)
    del handle
    gc.collect()
    assert gone() is None
    assert len(y.grad_fn.annotations) == 1


def test_annotations_go_through_files_as_text(tmp_path: Any) -> None:
    y = leaf() * 2
    y.register_hook(double)
    jaxpr = y.grad_fn.jaxpr()
    jaxpr.save(tmp_path / "graph.jaxpr")
    loaded = Jaxpr.load(tmp_path / "graph.jaxpr")
    assert str(loaded) == str(jaxpr)
    (note,) = loaded.annotations[loaded.eqns[0]]
    assert note.kind is NODE_NAME
    assert loaded.structurally_equal(jaxpr)


def hooked(x: Any, seen: list[Any]) -> Any:
    """A result of several operations, with hooks of all kinds that note what they get."""

    def note(name: str) -> Any:
        return lambda *given: seen.append((name, str(given)))

    x.register_hook(note("leaf"))
    x.register_post_accumulate_grad_hook(note("accumulated"))
    y = x.sin() * x[0]
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(note("pre"))
    y.grad_fn.register_hook(note("post"))
    a, b = y.unbind()
    b.register_hook(note("second"))
    a.register_hook(lambda g: g + 1)
    register_multi_grad_hook((x, y, b), note("all"))
    return fnp.logaddexp(a, b) * y.softmax(0).sum()


def test_a_listed_graph_runs_and_goes_back_with_the_calls_of_its_hooks() -> None:
    seen: list[Any] = []
    x = leaf()
    y = hooked(x, seen)
    jaxpr = y.grad_fn.jaxpr()
    check_jaxpr(jaxpr)
    y.backward()
    expected, seen[:] = list(seen), []
    gradient, x.grad = x.grad, None
    given = iter([x])
    args = [next(given) if not n else np.ones(v.aval.shape) for v, n in named(jaxpr)]
    (again,) = evaluate(jaxpr, args)
    assert_allclose(again.detach(), y.detach())
    assert str(again.grad_fn.jaxpr()) == str(jaxpr)
    again.backward()
    assert seen == expected
    assert_allclose(x.grad, gradient)


def named(jaxpr: Any) -> Any:
    return list(zip(jaxpr.invars, jaxpr.arg_names, strict=True))


def test_a_handle_removes_a_hook_from_graphs_that_were_made_of_the_program() -> None:
    x = leaf()
    y = x * 3
    handle = y.register_hook(double)
    jaxpr = y.grad_fn.jaxpr()
    runs = [evaluate(jaxpr, [x])[0] for _ in range(3)]
    runs[0].sum().backward()
    assert_allclose(x.grad, [6.0, 6.0])
    handle.remove()
    runs[1].sum().backward()
    assert_allclose(x.grad, [9.0, 9.0])


def test_what_belongs_to_a_result_is_refused_elsewhere() -> None:
    jaxpr = (leaf() * 2).grad_fn.jaxpr()
    jaxpr.annotations[jaxpr.eqns[0]] = (Annotation(TENSOR_HOOK, double),)
    with pytest.raises(JaxprTypeError, match=r"tensor hook double is attached to .*, no result"):
        check_jaxpr(jaxpr)


# jitted steps ------------------------------------------------------------------------------------


@pytest.fixture
def annotated(monkeypatch: Any) -> dict[str, list[Any]]:
    """The annotated programs that each pass was given."""
    given: dict[str, list[Any]] = {"simplify": [], "inline": [], "reroll": [], "batch": []}

    def counted(module: Any, name: str, key: str) -> None:
        function = getattr(module, name)

        def count(*args: Any) -> Any:
            program = next((x for x in args if isinstance(x, Jaxpr)), None)
            if program is None or has_annotations(program):
                given[key].append(program)
            return function(*args)

        monkeypatch.setattr(module, name, count)

    counted(simplify_module, "drop_dead", "simplify")
    pipeline = [getattr(simplify_module, p.__name__) for p in simplify_module.PIPELINE]
    monkeypatch.setattr(simplify_module, "PIPELINE", tuple(pipeline))
    counted(closing, "inline_calls", "inline")
    counted(reroll_module, "_roll_once", "reroll")
    counted(batch_module, "pass_on", "batch")
    return given


def test_a_jitted_step_takes_its_hooks_through_inlining_simplification_and_rerolling(
    annotated: Any,
) -> None:
    x = leaf(0.5)

    @ft.jit
    def inner(a: Any) -> Any:
        return np.tanh(a) * 1.0

    def step(v: Any, a: Any) -> Any:
        x.grad = None
        y = x * v
        y.register_hook(double)
        z = tensor(0.0)
        for _ in range(100):
            y = y.sin() * 0.5 + 0.1
            z = z + y.exp()
        y.retain_grad()
        z.backward()
        return z.detach(), x.grad, inner(a)

    jitted = ft.jit(step)
    given = tensor(0.3), np.ones(2)
    for got, expected in zip(jitted(*given), step(*given), strict=True):
        assert_allclose(got, expected)
    assert annotated["inline"]
    assert annotated["simplify"]
    assert annotated["reroll"]
    text = jitted.lower(*given).as_text()
    assert "{tensor hook double}" in text
    assert "{retain_grad}" in text
    assert "tanh" in text
    assert "jit[" not in text


def test_a_batch_of_a_function_with_hooks_takes_them_along(annotated: Any) -> None:
    def one(v: Any) -> Any:
        x = v.detach().requires_grad_()
        y = x.exp()
        y.register_hook(double)
        (y * y).backward()
        return y.detach(), x.grad

    values = tensor([0.1, 0.2, 0.3])
    run = ft.jit(func.vmap(one))
    for got, expected in zip(run(values), zip(*map(one, values), strict=True), strict=True):
        assert_allclose(got, [x.numpy() for x in expected])
    assert annotated["batch"]
    assert "{tensor hook double}" in run.lower(values).as_text()


# slices that are pulled back in place ------------------------------------------------------------


def test_gradients_that_hooks_and_retain_grad_keep_are_not_written_to_later() -> None:
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2
    y.retain_grad()
    kept: list[Any] = []
    y.register_hook(lambda g: kept.append((g, g.clone())))
    z = y * 1
    z[0] = y[1] * y[2]
    (captured,) = grad(sum(z[i] * y[i] for i in range(3)), z, retain_graph=True)
    before = captured.clone()
    sum(z[i] * y[i] for i in range(3)).backward()
    (gradient, copy) = kept[-1]
    assert_allclose(gradient, copy)
    assert_allclose(captured, before)
    assert_allclose(y.grad, gradient)
    assert_allclose(x.grad, y.grad * 2)
    assert_allclose(y.grad, [4.0 * 6.0, 2 * 4.0 + 2.0 * 6.0, 2.0 * 4.0 + 2 * 6.0])


def test_a_new_kind_prints_and_stays_with_what_runs_the_program() -> None:
    note = Kind("note", "equation", When.NEVER)
    y = leaf() * 2
    annotate(y.grad_fn, Annotation(note, "doubled"))
    jaxpr = y.grad_fn.jaxpr()
    assert "{MulBackward0, note doubled}" in str(jaxpr)
    for program in (ft.extend.batch_jaxpr(jaxpr, size=3), simplify_module.simplify(jaxpr)):
        assert "note doubled" in str(program)
    again = ft.extend.evaluate(jaxpr, [leaf()])[0]
    assert "{MulBackward0, note doubled}" in str(again.grad_fn.jaxpr())
    assert "hooked" not in y.grad_fn.to_html().partition("<body")[2]
    y.sum().backward()
