"""``Jaxpr.to_html``: a page that needs nothing else and says everything once."""

import html
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.jaxpr import subjaxprs
from pages import checked


def model(params: Any, x: Any) -> Any:
    for i, w in enumerate(params):
        with ft.named_scope(f"layer{i}"):
            x = np.tanh(x @ w)
    with ft.named_scope("head"), ft.named_scope("steps"):
        x, ys = lax.scan(lambda c, k: (np.cos(c) * k, c.sum()), x, np.linspace(0, 1, 10))
    return lax.cond(ys[0] > 0, np.exp, lambda v: v * 2, x)


def test_scopes_programs_types_and_lines() -> None:
    jaxpr = ft.make_jaxpr(model)([np.ones((4, 4))] * 2, np.ones((3, 4)))
    page = checked(jaxpr.to_html())
    text = page.text
    for word in ("layer0", "layer1", "head", "steps", "dot_general", ":f64[3,4]", "10 times"):
        assert word in text
    assert "branches[0]" in text
    assert "branches[1]" in text
    assert "test_jaxpr_pages.py:" in text
    assert page.classes.count("scope") == 4
    n_rows = page.classes.count("row") - page.classes.count("scope")
    assert n_rows == sum(_equations(jaxpr))


def _equations(jaxpr: Any) -> Any:
    yield len(jaxpr.eqns)
    for eqn in jaxpr.eqns:
        for sub in subjaxprs(eqn.params):
            yield from _equations(sub)


def test_a_program_that_occurs_again_is_shown_once() -> None:
    f = ft.jit(lambda x: np.sin(x) + 1.0)
    jaxpr = ft.make_jaxpr(lambda x: f(x) * f(2.0 * x))(1.0)
    page = checked(jaxpr.to_html())
    assert page.ids.count("p1") == 1
    assert "#p1" in page.urls


def test_names_are_escaped() -> None:
    def f(x: Any) -> Any:
        with ft.named_scope("<b>&"):
            return np.sin(x)

    f.__name__ = "<script>alert(1)</script>"
    page = ft.make_jaxpr(f)(1.0).to_html()
    assert "<script>alert" not in page
    assert "&lt;b&gt;&amp;" in page
    checked(page)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda: 1.0, ()),
        (lambda x: x, (1.0,)),
        (lambda x: ft.debug.print("{}", x), (1.0,)),
        (lambda x: lax.while_loop(lambda v: v < 3, lambda v: v + 1, x), (1.0,)),
        (lambda x: x * 2, (np.zeros((0, 3)),)),
    ],
)
def test_small_programs(f: Any, args: Any) -> None:
    checked(ft.make_jaxpr(f)(*args).to_html())


def test_long_programs_take_linear_room() -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = x + 1.0
        return x

    page = ft.make_jaxpr(f)(1.0).to_html()
    assert len(page) < 3000 * 600
    checked(page)


def test_notebooks_show_programs_and_graphs_in_frames() -> None:
    x = ft.tensor([1.0, 2.0], requires_grad=True)
    for shown in (ft.make_jaxpr(lambda x: np.sin(x) * "<b>".count("b"))(1.0), x.sin().grad_fn):
        text = shown._repr_html_()
        assert text.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        assert text.count("<") == 2  # the page is an attribute, and cannot end it
        assert html.unescape(text.partition('srcdoc="')[2].partition('" style')[0]) == (
            shown.to_html()
        )
