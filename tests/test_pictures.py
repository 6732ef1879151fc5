"""Pictures of costs, patterns, profiles and graphs: pages that need nothing else."""

import ast
import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.autograd import profiler
from functrans.debugging.documents import PALETTE
from pages import checked


def chain(x: Any) -> Any:
    y = np.outer(x, x)
    return np.sum(np.sin(y)) + np.sum(x)


def banded(x: Any) -> Any:
    return x[1:] * x[:-1] + np.sin(x[1:])


# memory -----------------------------------------------------------------------------------------


def test_memory_over_the_equations() -> None:
    cost = ft.make_jaxpr(chain)(np.ones(100)).cost()
    text = cost.to_html()
    page = checked(text)
    assert "chain" in page.text
    bars = page.with_class("given")
    assert len(bars) == len(cost.equations)
    assert len({bar["height"] for bar in bars}) == 1  # the arguments are there all the time
    used = [*page.with_class("used"), *page.with_class("peak")]
    heights = [float(own["height"]) for own in used if "height" in own]
    base = float(bars[0]["height"])
    assert max(heights) + base == pytest.approx(200)
    expected = [200 * eqn.peak_bytes / cost.peak_bytes - base for eqn in cost.equations]
    assert sorted(heights) == pytest.approx(sorted(expected), abs=0.01)
    for eqn in cost.equations:
        assert eqn.text in page.text


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x, 1.0),
        (lambda: 1.0, None),
        (lambda x: ft.lax.while_loop(np.any, np.sin, x), 1.0),
    ],
)
def test_costs_of_small_programs(f: Any, x: Any) -> None:
    args = () if x is None else (x,)
    checked(ft.make_jaxpr(f)(*args).cost().to_html())


def test_costs_of_long_programs_take_bounded_room() -> None:
    def f(x: Any) -> Any:
        for _ in range(5000):
            x = x + 1.0
        return x

    text = ft.make_jaxpr(f)(1.0).cost().to_html()
    assert len(text) < 400_000
    page = checked(text)
    assert len(page.with_class("given")) <= 450
    assert "of 5000 equations" in page.text


# patterns ---------------------------------------------------------------------------------------


def test_entries_have_the_colours_of_their_products() -> None:
    slopes = ft.sparse_jacobian(banded)
    matrix = slopes(np.ones(12))
    page = checked(slopes.to_html())
    paths = [own for tag, own in page.elements if tag == "path"]
    assert len(paths) == slopes.n_colors
    places = [tuple(map(int, at.split("h")[0].split())) for own in paths
              for at in own["d"].split("M")[1:]]  # fmt: skip
    entries = matrix.tocoo()
    assert sorted(places) == sorted(zip(entries.col.tolist(), entries.row.tolist(), strict=True))
    colors = slopes.coloring.column_colors
    assert colors is not None
    for own in paths:
        columns = {int(at.split()[0]) for at in own["d"].split("M")[1:]}
        assert len({int(colors[column]) for column in columns}) == 1
    assert "columns 0, 2, 4" in page.text


def test_large_patterns_take_bounded_room() -> None:
    slopes = ft.sparse_jacobian(banded)
    slopes(np.ones(100_000))
    text = slopes.to_html()
    assert len(text) < 100_000
    assert "199998 entries" in checked(text).text
    curvature = ft.sparse_hessian(lambda x: np.sum(x[0] * x[1:] ** 2))
    curvature(np.ones(9))
    checked(curvature.to_html())
    both = ft.sparse_jacobian(lambda x: np.concatenate([x * x[0], [np.sum(x)]]))
    both(np.ones(40))
    assert "row" in checked(both.to_html()).text
    nothing = ft.sparse_jacobian(lambda x: np.zeros(3))
    nothing(np.ones(4))
    checked(nothing.to_html())


def test_a_pattern_is_known_after_the_first_call() -> None:
    slopes = ft.sparse_jacobian(banded)
    assert slopes._repr_html_() is None
    with pytest.raises(RuntimeError, match=r"to_html\(\) is known after the first call"):
        slopes.to_html()


# profiles ---------------------------------------------------------------------------------------


def test_events_over_time() -> None:
    x = ft.tensor(np.ones((20, 20)), requires_grad=True)
    with profiler.profile(record_shapes=True) as prof:
        assert prof._repr_html_() is None
        with profiler.record_function("<step>"):
            (x @ x).sin().sum().backward()
    page = checked(prof.to_html())
    assert "<step>" in page.text
    assert "aten::sin" in page.text
    events = list(prof.function_events)
    rects = [own for tag, own in page.elements if tag == "rect"]
    assert len(rects) == len(events)
    rows = {float(own["y"]) for own in rects}
    assert len(rows) > 1  # what is in the step is below it
    for own in rects:
        assert 0 <= float(own["x"]) <= 1000.01
    averages = checked(prof.key_averages().to_html())
    assert not [tag for tag, _ in averages.elements if tag == "svg"]
    assert "aten::sin" in averages.text


def test_no_events() -> None:
    with profiler.profile() as prof:
        pass
    checked(prof.to_html())
    with pytest.raises(RuntimeError, match="didn't finish"):
        profiler.profile().to_html()


# graphs and notebooks ---------------------------------------------------------------------------


def test_graphs() -> None:
    x = ft.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    y.retain_grad()
    page = checked((y * x).sum().grad_fn.to_html())
    assert page.with_class("hooked")
    assert [own for tag, own in page.elements if tag == "svg" and own["role"] == "img"]


def test_notebooks_show_them_in_frames() -> None:
    slopes = ft.sparse_jacobian(banded)
    slopes(np.ones(4))
    with profiler.profile() as prof:
        ft.tensor([1.0]).sin()
    for shown in (ft.make_jaxpr(chain)(np.ones(3)).cost(), slopes, prof, prof.key_averages()):
        text = shown._repr_html_()
        assert html.unescape(text.partition('srcdoc="')[2].partition('" style')[0]) == (
            shown.to_html()
        )


def test_the_page_of_the_documentation_shows_each_picture() -> None:
    page = (Path(__file__).parent.parent / "docs/pictures.md").read_text(encoding="utf-8")
    cells = re.findall(r"```{code-cell} ipython3\n(.*?)```", page, re.DOTALL)
    space: dict[str, Any] = {}
    shown = []
    for cell in cells:
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), space)
        if last is not None:
            value = eval(compile(ast.unparse(last), "<cell>", "eval"), space)
            assert value._repr_html_().startswith("<iframe ")
            shown.append(type(value).__name__)
    assert len(shown) == page.count("\n## ") - 1  # all but progress
    assert len(set(shown)) == len(shown)


# colours ----------------------------------------------------------------------------------------


def _luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("scheme", [0, 1])
def test_texts_stand_out_from_what_is_behind_them(scheme: int) -> None:
    rules = PALETTE.split("@media (prefers-color-scheme: dark)")[scheme]
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", rules))
    for text in ("text", "quiet", "name", "type", "scope", "note"):
        for ground in ("page", "panel", "hit", "near"):
            dark, light = sorted(_luminance(colors[name]) for name in (text, ground))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
