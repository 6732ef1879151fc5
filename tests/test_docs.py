"""Pages made from tables are up to date, and examples give what the pages show."""

import doctest
import importlib.util
import json
import runpy
import sys
import traceback
from pathlib import Path

import pytest

from functrans.emitter.math import BOUNDS

FORMATTED = traceback.format_exception_only
DOCS = Path(__file__).resolve().parent.parent / "docs"
WITH_EXAMPLES = sorted(
    path.name for path in DOCS.glob("*.md") if "\n>>> " in path.read_text(encoding="utf-8")
)


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


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_give_what_they_show(name, monkeypatch):
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "off")
    monkeypatch.setattr(traceback, "format_exception_only", _as_one_line)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    results = doctest.testfile(
        str(DOCS / name), module_relative=False, optionflags=flags, verbose=False
    )
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("path", sorted(DOCS.parent.glob("examples/**/*.py")), ids=lambda p: p.stem)
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
