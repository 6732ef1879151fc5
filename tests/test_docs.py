"""Pages made from tables are up to date, and examples give what the pages show."""

import importlib.util
import json
import logging
import runpy
import sys
import traceback
from pathlib import Path

import pytest

import page_blocks
from functrans.emitter.math import BOUNDS

FORMATTED = traceback.format_exception_only
ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RUN = [
    page
    for page in page_blocks.pages()
    if page_blocks.runnable((ROOT / page).read_text(encoding="utf-8"))
    and page not in page_blocks.RUN_BY_PYTEST
    and not page.startswith(page_blocks.RUN_BY_THE_SITE)
]


def _generator():
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(_generator().PAGES))
def test_page_is_what_its_table_gives(name):
    assert (DOCS / name).read_text(encoding="utf-8") == _generator().PAGES[name]()


def test_every_primitive_is_listed_with_its_file():
    page = (DOCS / "primitives.md").read_text(encoding="utf-8")
    assert "| `sin` | `elementwise.py` |" in page
    assert "| `` |" not in page


@pytest.mark.parametrize("name", BOUNDS)
def test_measured_errors_are_within_the_bounds(name):
    measured = json.loads((DOCS / "vector_math.json").read_text(encoding="utf-8"))
    for dtype, row in measured["functions"][name].items():
        assert row["points"] >= 20_000, dtype
        assert row["ulp"] <= BOUNDS[name], f"{row['ulp']} ulp at {row['at']} in {dtype}"


def _as_one_line(*exception):
    """Type, message and notes: the first versions of Python 3.11 compare the last line alone."""
    return ["".join(FORMATTED(*exception))]


@pytest.fixture
def _level_of_the_logger():
    """What a page says to the library's logger ends with the page."""
    logger = logging.getLogger("functrans.jit")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.usefixtures("_level_of_the_logger")
@pytest.mark.parametrize("page", RUN)
def test_examples_give_what_they_show(page, monkeypatch):
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "off")
    monkeypatch.setattr(traceback, "format_exception_only", _as_one_line)
    results = page_blocks.run(ROOT / page)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("page", page_blocks.pages())
def test_every_block_of_python_is_run_or_says_why_not(page):
    assert page_blocks.findings(page, (ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("```\nx = 1\n```\n", "say its language"),
        ("```python repl\nx = 1\n```\n", "say its language"),
        ("<!-- excerpt: -->\n```py\nx = 1\n```\n", "without a reason"),
        ("<!-- excerpt: later -->\n```py\nx = 1\n```\n", "without a reason"),
        ("<!-- excerpt: needs a thing -->\n```py\nx = = 1\n```\n", "invalid syntax"),
        ("<!-- excerpt: this is no Python -->\n```sh\nls\n```\n", "not run in any case"),
        ("```pycon\n>>> f()  # doctest: +SKIP\n```\n", "is skipped"),
    ],
)
def test_blocks_that_would_not_be_run_are_found(text, finding):
    (found,) = page_blocks.findings("docs/page.md", text)
    assert finding in found


@pytest.mark.parametrize("block", ["```py\n1 / x\n```", "```pycon\n>>> x\n1\n\n```"])
def test_blocks_are_run_in_the_order_of_the_page(block, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"```python\nx = 1\nprint(x)\n```\n\n{block}\n", encoding="utf-8")
    assert page_blocks.run(page) == (0, 2)
    page.write_text(f"```python\nx = 0\n```\n\n{block}\n", encoding="utf-8")
    assert page_blocks.run(page) == (1, 2)
    assert "line 6" in capsys.readouterr().out


def test_the_small_version_of_the_library_has_150_lines():
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    cells = text.split("```{code-cell} ipython3\n:tags: [library]\n")[1:]
    lines = "".join(cell.partition("```")[0] for cell in cells).splitlines()
    code = [line for line in lines if line and not line.startswith(("import ", "from "))]
    assert len(code) == 150
    assert max(map(len, code)) < 110


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/**/*.py")), ids=lambda p: p.stem)
def test_a_program_that_cannot_draw_says_so_before_it_computes(path, monkeypatch, capsys):
    if path.stem == "alignment":
        pytest.importorskip("numba")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *_: None if name == "matplotlib" else find(name, *_),
    )
    monkeypatch.setattr(sys, "argv", [path.name])
    monkeypatch.setattr(sys, "path", [*sys.path])  # one of them adds to it
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(path), run_name="__main__")
    assert "the figure needs matplotlib" in capsys.readouterr().err
