"""The pages of the gallery: what they must have. The site's build runs them."""

import ast
import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@functools.cache
def _reader() -> Any:
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("gallery_pages")
    finally:
        sys.path.remove(str(DOCS))


PAGES = _reader().names()


def _text(name: str) -> str:
    return (DOCS / "gallery" / f"{name}.md").read_text(encoding="utf-8")


def test_the_index_has_every_page_once() -> None:
    listed = re.findall(r"^```\{gallery\}\n(.*?)^```$", _text("index"), re.MULTILINE | re.DOTALL)
    assert sorted("".join(listed).split()) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_30_to_120_lines_of_code(name: str) -> None:
    page = _reader().read(name)
    assert 30 <= page.n_lines <= 120
    assert len(page.cells) == _text(name).count("```{code-cell}")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_a_figure_and_each_has_an_alternative_text(name: str) -> None:
    drawing = [cell for cell in _reader().read(name).cells if "plt.show()" in cell.code]
    assert drawing
    for cell in drawing:
        assert len(cell.alternative) > 40, cell.code
        assert cell.code.count("plt.show()") == 1, "one figure for each text"


@pytest.mark.parametrize("name", PAGES)
def test_code_can_be_read_on_its_own(name: str) -> None:
    cells = _reader().read(name).cells
    source = "\n".join(cell.code for cell in cells)
    modules = {
        alias.name.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert {"functrans", "numpy", "matplotlib"} <= modules
    assert 'plt.style.use("gallery.mplstyle")' in source
    assert max(map(len, source.splitlines())) <= 100


def test_what_a_page_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader()
    monkeypatch.setattr(reader, "FOLDER", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Title\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"gallery/page\.md does not begin with front matter"):
        reader.read("page")
    page.write_text("---\nfile_format: mystnb\n---\n# Title\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no `functrans_gallery:` with `summary:`"):
        reader.read("page")
    front = "---\nfunctrans_gallery:\n  summary: What it does.\n---\n"
    page.write_text(front + "text\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no heading"):
        reader.read("page")
    options = "---\nmystnb:\n  image:\n    alt: Two\n      lines.\n---\n"
    cell = f"```{{code-cell}}\n{options}x = 1\n\n# why\n```\n"
    page.write_text(f"{front}# Title\n{cell}```{{code-cell}}\ny = 2\n```\n", encoding="utf-8")
    found = reader.read("page")
    assert (found.title, found.summary, found.n_lines) == ("Title", "What it does.", 2)
    assert [cell.alternative for cell in found.cells] == ["Two lines.", ""]
