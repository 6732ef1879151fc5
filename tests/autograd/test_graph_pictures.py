"""The graph as a program, as Graphviz and as a page."""

import gc
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans.numpy as fnp
from functrans.autograd import tensor
from functrans.autograd.composites import composite
from functrans.autograd.graph import to_dot, to_html
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
    assert parser.kinds == ["argument hooked", "equation hooked", "equation", "result"]
    assert "tensor hook clip" in page
    assert "&lt;lambda&gt;" in to_html(with_lambda())
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def with_lambda() -> Any:
    y = leaf() * 2
    y.register_hook(lambda g: None)
    return y


def crossed(x: Any) -> Any:
    """Arrows that pass rows, and a constant that is read late."""
    y = x
    for _ in range(4):
        y = (y.exp() + y.sin() * y) * x
    return Operation("Own", lambda c, v: v * c)(tensor([2.0, 3.0]), y)


def shapes(page: str) -> tuple[list[tuple[float, ...]], list[list[tuple[float, float]]]]:
    """Left, top, right and bottom of boxes; points of arrows."""
    boxes = []
    for x, y, w, h in re.findall(r'x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)" rx', page):
        boxes.append((float(x), float(y), float(x) + float(w), float(y) + float(h)))
    arrows = []
    for path in re.findall(r'<path d="(M[^"]+)"(?: marker-end|/>\n)', page):
        numbers = [float(n) for n in re.findall(r"[-\d.]+", path)]
        points = list(zip(numbers[0:8:2], numbers[1:8:2], strict=True))
        arrows.append([*points, (points[-1][0], numbers[8])] if len(numbers) > 8 else points)
    return boxes, arrows


def test_boxes_and_arrows_are_apart() -> None:
    page = crossed(leaf()).grad_fn.to_html()
    boxes, arrows = shapes(page.split("</defs>")[1])
    assert len(boxes) == 1 + 4 * 5 + 3
    assert len(arrows) > len(boxes)
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
    for (x0, y0), (_, y1), (_, y2), (x3, y3), *rest in arrows:
        ends = [(x0, y0)]
        for t in np.linspace(0, 1, 21):
            w = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
            ends.append(
                (
                    x0 * (w[0] + w[1]) + x3 * (w[2] + w[3]),
                    y0 * w[0] + y1 * w[1] + y2 * w[2] + y3 * w[3],
                )
            )
        for x, y in [*ends, *rest]:
            for left, top, right, bottom in boxes:
                assert not (left < x < right and top + 1 < y < bottom - 1)
    assert "= Own " in page.split("<pre>")[0]


def test_a_drawing_leaves_no_cycle() -> None:
    y = crossed(leaf())
    gc.collect()
    gc.disable()
    try:
        y.grad_fn.to_html()
        assert gc.collect() == 0
    finally:
        gc.enable()
