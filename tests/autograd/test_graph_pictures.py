"""The graph as a program, as Graphviz and as a page."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans.numpy as fnp
from functrans.autograd import tensor
from functrans.autograd.graph import to_dot, to_html
from functrans.autograd.operations import composite
from functrans.autograd.programs import Operation
from functrans.ir.check import check_jaxpr
from functrans.passes.evaluate import evaluate

X = np.array([1.0, 2.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


def clip(g: Any) -> Any:
    return g


def watched() -> Any:
    """A graph with hooks of all kinds."""
    x = leaf()
    x.register_hook(clip)
    x.register_post_accumulate_grad_hook(clip)
    y = x * x
    y.register_hook(clip)
    y.retain_grad()
    y.grad_fn.register_prehook(clip)
    y.grad_fn.register_hook(clip)
    return y.sum()


def test_the_program_shows_hooks() -> None:
    assert str(watched().grad_fn.jaxpr()) == (
        "{ lambda ; a:f64[2]{tensor hook clip, post-accumulate hook clip}. let\n"
        "    b:f64[2]{tensor hook clip, retain_grad} = multiply a a"
        " {MulBackward0, node pre-hook clip, node hook clip}\n"
        "    c:f64[] = reduce_sum[axes=(0,)] b {SumBackward0}\n"
        "  in (c,) }"
    )
    assert "clip" not in watched().grad_fn.jaxpr().pretty(hooks=False)


def sum_of_parts(x: Any) -> Any:
    a, b = x.unbind()
    return a * b + a


def part_of_a_constant(x: Any) -> Any:
    y = tensor([1.0, 1.0, 1.0])
    y[1:] = x * x
    return y


def overwritten(x: Any) -> Any:
    y = x * 2
    y[:1] = x[1:] * 3
    return (y * x).sum()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * x).sum(),
        lambda x: x * np.array([3.0, 4.0]),
        lambda x: x**2 / (1 + x * x),
        lambda x: composite("Own", lambda v: fnp.exp(v) / fnp.sum(fnp.exp(v)), x) * x,
        lambda x: composite("Own", lambda c, v, n: v * c**n, tensor([2.0, 3.0]), x, 2),
        lambda x: Operation("Own", lambda c, v: v * fnp.exp(c))(tensor([2.0, 3.0]), x),
        part_of_a_constant,
        lambda x: x.reshape(1, 2) @ tensor([[1.0, 2.0], [3.0, 4.0]]),
        sum_of_parts,
        overwritten,
    ],
    ids=[
        "sum", "array", "numbers", "composite", "constant first", "operation", "constant base",
        "product", "results", "write",
    ],
)  # fmt: skip
def test_the_program_computes_the_value(function: Any) -> None:
    y = function(leaf())
    jaxpr = y.grad_fn.jaxpr()
    check_jaxpr(jaxpr)
    args = [X]
    for name, aval in list(zip(jaxpr.arg_names, jaxpr.in_avals, strict=True))[1:]:
        assert name.startswith("unkept")
        args.append(np.ones(aval.shape))  # the numbers of x**2 / (1 + x * x) are kept or one
    (found,) = evaluate(jaxpr, args)
    assert_allclose(found, y.detach().numpy())


def test_what_was_not_kept_is_an_argument() -> None:
    y = leaf() + 5.0
    assert str(y.grad_fn.jaxpr()).splitlines()[:2] == [
        "{ lambda ; a:f64[2] unkept0:f64[2]. let",
        "    b:f64[2] = add a unkept0 {AddBackward0}",
    ]
    y = fnp.exp(leaf())
    y.sum().backward()
    assert "exp a {ExpBackward0}" in str(y.grad_fn.jaxpr())


def test_deep_graphs_are_listed_without_recursion() -> None:
    y = leaf()
    for _ in range(5000):
        y = y * 1.0
    assert len(y.grad_fn.jaxpr().eqns) == 5000
    assert y.grad_fn.to_html().count("<rect") == 5002


def test_graphviz() -> None:
    y = watched()
    text = to_dot(y)
    assert text == y.grad_fn.to_dot()
    assert text.startswith("digraph jaxpr {")
    assert "{tensor hook clip, retain_grad}" in text
    assert text.count("->") == 3
    with pytest.raises(RuntimeError, match="does not require grad"):
        to_dot(tensor([1.0]))


def test_the_page_is_well_formed_and_marks_hooks() -> None:
    class Parser(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.kinds: list[Any] = []

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag == "rect":
                self.kinds.append(dict(attrs)["class"])
            if tag not in ("meta", "rect", "line"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("rect", "line"):
                assert self.open.pop() == tag

    parser = Parser()
    page = to_html(watched())
    parser.feed(page)
    assert not parser.open
    assert parser.kinds == ["hooked", "hooked", "equation", "result"]
    assert "tensor hook clip" in page
    assert "&lt;lambda&gt;" in to_html(with_lambda())
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def with_lambda() -> Any:
    y = leaf() * 2
    y.register_hook(lambda g: None)
    return y
