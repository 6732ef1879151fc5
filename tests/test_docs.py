"""Pages made from tables are up to date."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


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
