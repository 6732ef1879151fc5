"""``jit(f).report``: lines, equations, steps and code side by side, which refer to one another."""

import html
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from compiler.native_programs import ALL, FLOATS, programs
from functrans import lax
from functrans.compiler.origins import anatomy
from functrans.control.native import as_compiled
from pages import Page, checked, in_browser, with_browser


def loss(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    return np.sum(np.exp(-h) * np.sqrt(1 + h * h))


def loops(x: Any) -> Any:
    def step(c: Any, k: Any) -> Any:
        c = np.cos(c) * k
        return c, np.sum(c)

    c, ys = lax.scan(step, x, np.linspace(0, 1, 10))
    c = lax.cond(ys[0] > 0, lambda v: np.exp(v), lambda v: v * 2, c)
    return np.argpartition(lax.while_loop(lambda v: v[0] < 9, lambda v: v + np.abs(v) + 1, c), 3)


def on_threads(x: Any) -> Any:
    return np.sum(np.exp(np.sin(x) * np.cos(x)))


def small(x: Any) -> Any:
    return np.sin(x[0]) * x[1] + x[2]


def mapped(x: Any) -> Any:
    return lax.map(lambda row: np.linalg.solve(np.eye(3) + row[:, None] * row, row), x)


PROGRAMS = [
    (ft.grad(loss, argnums=1), (np.ones((64, 32)), np.ones((32, 16)))),
    (loops, (np.ones(50),)),
    (on_threads, (np.ones(1_000_000),)),
    (ft.hessian(small), (np.ones(3),)),
    (mapped, (np.ones((2000, 3)),)),
    (lambda x: x, (np.ones(3),)),
]


def _lowered(f: Any, args: Any) -> tuple[Any, Any]:
    lowered: Any = ft.jit(f).lower(*args)
    return lowered, anatomy(as_compiled(lowered._hoisted))


def _check(f: Any, args: Any) -> None:
    lowered, found = _lowered(f, args)
    assert not found.obstacle
    # the code that is shown is the code that runs
    assert [row.text for row in found.llvm if row.text] == list(
        filter(None, lowered.llvm.splitlines())
    )
    lines = [line.partition("#")[0].rstrip().expandtabs(4) for line in lowered.asm.splitlines()]
    instructions = [x for x in lines if re.match(r"    +[a-z]", x) and ":" not in x]
    shown = [row.text for row in found.machine if row.text[0] == " "]
    assert sorted(shown) == sorted(instructions)
    # numbers are of steps and equations that are there
    plan = [line for line in str(lowered.plan).splitlines() if re.match(r"\d+\. ", line)]
    tops = [step for step in found.steps if not step.around]
    assert [f"{step.label}. {step.text}" for step in tops] == plan
    steps, eqns = set(range(len(found.steps))), set(range(len(found.equations)))
    for step in found.steps:
        assert step.eqns
        assert set(step.eqns) <= eqns
    for row in (*found.llvm, *found.machine):
        assert row.origin.steps <= steps
        assert row.origin.eqns <= eqns
        for eqn in row.origin.eqns:  # an equation's code is in a step that has it
            assert any(eqn in found.steps[step].eqns for step in row.origin.steps), row
    for number, step in enumerate(found.steps):  # each loop nest has code
        if step.text.startswith("loops"):
            assert any(number in row.origin.steps for row in found.llvm), step


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_what_is_shown_is_what_runs_and_what_is_planned(f: Any, args: Any) -> None:
    _check(f, args)


@settings(max_examples=15)
@given(programs(ALL), st.integers(0, 100))
def test_random_programs(program: Any, seed: int) -> None:
    args = program.point(seed)
    with np.errstate(all="ignore"):
        _check(program, args)


@settings(max_examples=15)
@given(programs(FLOATS), st.integers(0, 100))
def test_derivatives_of_random_programs(program: Any, seed: int) -> None:
    args = program.point(seed)
    with np.errstate(all="ignore"):
        _check(ft.grad(program.loss, argnums=tuple(range(len(args)))), args)


def test_instructions_belong_to_their_equations() -> None:
    _, found = _lowered(*PROGRAMS[0])
    of = {row.text.split(" = ")[1].split("[")[0].split()[0]: n for n, row in
          enumerate(found.equations)}  # fmt: skip
    rows = [row for row in found.llvm if re.match(r"  %v\d+ = call .*@llvm\.sqrt", row.text)]
    assert {(row.origin.steps, row.origin.eqns) for row in rows} == {
        (frozenset({1}), frozenset({of["sqrt"]}))
    }
    roots = [row.origin for row in found.machine if re.search(r"^ +v?f?sqrt", row.text)]
    assert {origin.steps for origin in roots} == {frozenset({1})}
    assert {origin.eqns for origin in roots} <= {frozenset(), frozenset({of["sqrt"]})}
    products = [row for row in found.llvm if "call void @functrans.product" in row.text]
    assert {frozenset(row.origin.eqns) for row in products} == {
        frozenset({0}),
        frozenset({len(found.equations) - 1}),
    }


def test_most_of_the_code_belongs_to_a_step() -> None:
    for f, args in PROGRAMS[:3]:
        _, found = _lowered(f, args)
        for code in (found.llvm, found.machine):
            inside = [row for row in code if row.text.startswith("  ")]
            belonging = [row for row in inside if row.origin.steps]
            assert len(belonging) > 0.7 * len(inside)


def test_steps_of_inner_programs_are_in_their_loop() -> None:
    _, found = _lowered(*PROGRAMS[1])
    labels = [step.label for step in found.steps]
    assert {"1", "1.body.1"} <= set(labels)
    assert any("branches[1]" in label for label in labels)
    assert any(".cond" in label for label in labels)
    inner = found.steps[labels.index("1.body.1")]
    assert [labels[step] for step in inner.around] == ["1"]
    rows = [row for row in found.llvm if labels.index("1.body.1") in row.origin.steps]
    assert all(labels.index("1") in row.origin.steps for row in rows)


# the page ---------------------------------------------------------------------------------------


def _report(f: Any, args: Any, folder: Path) -> str:
    path = ft.jit(f).report(*args, path=folder / "report.html")
    assert path == folder / "report.html"
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_pages_stand_on_their_own(f: Any, args: Any, tmp_path: Path) -> None:
    text = _report(f, args, tmp_path)
    page = checked(text)
    assert len(text) < 400_000
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    for own in page.having("data-k"):
        assert own["data-k"] in ("line", "equation", "step", "code")
        assert own.keys() & {"data-e", "data-n"}


def test_a_page_shows_lines_equations_steps_and_code(tmp_path: Path) -> None:
    page = checked(_report(*PROGRAMS[0], tmp_path))
    for word in ("h = np.tanh(x @ w)", "test_explorer.py", "tanh_slope", "step 2", "define i32"):
        assert word in page.text
    kinds = [own["data-k"] for own in page.having("data-k")]
    assert kinds.count("line") == 2
    assert kinds.count("equation") == 17
    assert kinds.count("step") == 3
    assert kinds.count("code") > 20


def test_texts_are_escaped(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x * 2.0 if "<b>&" else x

    f.__name__ = "<script>alert(1)</script>"
    text = _report(f, (np.ones(3),), tmp_path)
    assert "<script>alert" not in text
    assert "&lt;b&gt;&amp;" in text


def test_functions_without_source_and_steps_on_tensors(tmp_path: Path) -> None:
    space: dict[str, Any] = {"np": np}
    exec(compile("def f(x):\n    return np.sin(x) + 1.0", "<made>", "exec"), space)
    page = checked(_report(space["f"], (np.ones(3),), tmp_path))
    assert "which is not there to be read" in page.text
    short = tmp_path / "short.py"  # it was longer when it was compiled
    short.write_text("x = 1\n")
    code = "\n" * 30 + "def f(x):\n    return np.sin(x) + 1.0"
    exec(compile(code, str(short), "exec"), space)
    assert "(f)" in checked(_report(space["f"], (np.ones(3),), tmp_path)).text
    w = ft.tensor([1.0, 2.0], requires_grad=True)
    text = _report(lambda x: (w * x).sum(), (ft.tensor([3.0, 4.0]),), tmp_path)
    assert "multiply" in checked(text).text


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("gone/report.html", FileNotFoundError, r"there is no folder '.*gone' for 'report.html'"),
        ("", IsADirectoryError, "path is the folder"),
        (3, TypeError, "path must be the name of a file, got int"),
    ],
)
def test_paths_that_make_no_sense_are_refused_at_once(
    path: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return x

    given = tmp_path / path if isinstance(path, str) else path
    with pytest.raises(error, match=message):
        ft.jit(f).report(1.0, path=given)
    assert not calls


def test_notebooks_show_it_in_a_frame() -> None:
    f, args = PROGRAMS[0]
    lowered = ft.jit(f).lower(*args)
    for shown in (lowered, lowered.compile()):
        text = html.unescape(shown._repr_html_())
        checked(text.partition('srcdoc="')[2].partition('" style')[0])
    with ft.config(compile_budget_s=0):
        assert lowered._repr_html_() is None


def test_a_report_replaces_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    assert "old" not in _report(small, (np.ones(3),), tmp_path)[:100]


@with_browser
def test_what_belongs_together_lights_up(tmp_path: Path) -> None:
    f, args = PROGRAMS[0]
    text = _report(f, args, tmp_path)

    def lit(script: str) -> Page:
        return in_browser(text, script, tmp_path)

    by_pointer = lit('document.getElementById("e6").dispatchEvent(new Event("mouseenter"));')
    on = by_pointer.with_class("on")
    assert {own["id"] for own in on if "id" in own} >= {"e6", "s1"}
    assert [own["data-k"] for own in on if "data-k" in own].count("line") == 1
    assert "6" in [own.get("data-e") for own in on if own.get("data-k") == "code"]
    assert by_pointer.with_class("near")
    by_keyboard = lit(
        'document.querySelector("#eqns button").focus();'
        "for (let i = 0; i < 6; i++) document.activeElement.dispatchEvent("
        'new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));'
        "pin(of.get(document.activeElement.closest('[data-k]')));"
    )
    own = [own.get("id") for own in by_keyboard.with_class("on") if own.get("id")]
    assert own == [own.get("id") for own in on if own.get("id")]
    assert [own["aria-pressed"] for own in by_keyboard.having("aria-pressed")].count("true") == 1
    quiet = lit("")
    assert not quiet.with_class("on")
    stops = [own for own in quiet.having("aria-pressed") if own.get("tabindex") != "-1"]
    assert len(stops) == 4  # one for each column: the arrow keys go on from there


def test_a_report_is_written_to_files_only(tmp_path: Path) -> None:
    pipe, target, link = tmp_path / "pipe", tmp_path / "target.html", tmp_path / "link.html"
    os.mkfifo(pipe)
    target.touch(mode=0o600)
    link.symlink_to(target)
    function = ft.jit(np.sin)
    with pytest.raises(OSError, match="is a device or a pipe"):
        function.report(1.0, path=pipe)
    function.report(1.0, path=link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert "<html" in target.read_text(encoding="utf-8")
