"""The documentation site: every public name has its place, and what is built stands on its own."""

import functools
import importlib
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import functrans
from test_namespaces import NAMESPACES

DOCS = Path(__file__).resolve().parent.parent / "docs"


@functools.cache
def _docs(name: str) -> Any:
    """A module of ``docs/``, which import one another."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


# names -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def entries() -> tuple[Any, ...]:
    return _docs("api_pages").entries()


def test_every_public_name_appears_once(entries: tuple[Any, ...]) -> None:
    found = [entry.full for entry in entries]
    assert len(found) == len(set(found))
    expected = {
        f"{namespace}.{name}"
        for namespace in NAMESPACES
        for name in importlib.import_module(namespace).__all__
        if name[0] != "_"
        and not isinstance(getattr(importlib.import_module(namespace), name), ModuleType)
    }
    assert expected - set(found) == set()
    assert len(expected) > 1500


def test_every_object_has_one_page(entries: tuple[Any, ...]) -> None:
    homes = [entry for entry in entries if entry.is_home]
    objects = [id(entry.value) for entry in homes if callable(entry.value)]
    assert len(objects) == len(set(objects))
    places = {entry.full: entry for entry in homes}
    for entry in entries:
        assert places[entry.home].page == entry.page
        assert not callable(entry.value) or places[entry.home].value is entry.value, entry.full


def test_pages_differ_where_file_systems_do_not_tell_cases_apart(entries: tuple[Any, ...]) -> None:
    pages = [entry.page for entry in entries if entry.is_home]
    pages += [*_docs("api_pages").namespaces(), *_docs("api_pages").others()]
    assert len({page.lower() for page in pages}) == len(pages)


def test_a_name_has_its_page_where_it_is_met_first(entries: tuple[Any, ...]) -> None:
    homes = {entry.full: entry.home for entry in entries}
    assert homes["functrans.lax.sin"] == "functrans.numpy.sin"
    assert homes["functrans.autograd.Tensor"] == "functrans.Tensor"
    assert homes["functrans.sparse.sparse_jacobian"] == "functrans.sparse_jacobian"
    assert homes["functrans.numpy.abs"] == "functrans.numpy.absolute"


def test_tables_of_other_vocabularies_have_public_names_only() -> None:
    tables = _docs("api_pages").others()
    assert "relu" in tables["functrans.compat.torch.nn.functional"]
    assert "grad" in tables["functrans.compat.jax"]
    assert "elementwise_grad" in tables["functrans.compat.autograd"]
    for namespace, names in tables.items():
        assert not [name for name in names if name[0] == "_"], namespace
        assert not [n for n, value in names.items() if isinstance(value, ModuleType)], namespace
    assert sum(map(len, tables.values())) > 3000


@pytest.mark.parametrize("library", ["python", "numpy", "scipy"])
def test_inventories_have_what_pages_link_to(library: str) -> None:
    content = (DOCS / "inventories" / f"{library}.inv").read_bytes()
    header, _, rest = content.partition(b"zlib.\n")
    assert header.startswith(b"# Sphinx inventory version 2")
    names = {line.split()[0] for line in zlib.decompress(rest).decode().splitlines()}
    assert (
        names
        >= {
            "python": {"ValueError", "int", "str"},
            "numpy": {"numpy.sin", "numpy.linalg.inv", "numpy.pi", "numpy.float64"},
            "scipy": {"scipy.special.jv", "scipy.stats.norm", "scipy.optimize.minimize"},
        }[library]
    )


# the check of what is built ----------------------------------------------------------------------


def _findings(folder: Path, body: str) -> list[str]:
    (folder / "other.html").write_text('<p id="here">text</p>', encoding="utf-8")
    (folder / "page.html").write_text(body, encoding="utf-8")
    return _docs("check_site").findings(folder)


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ('<a href="gone.html">', "gone.html leads to no file"),
        ('<a href="other.html#gone">', "other.html#gone leads to no place"),
        ('<a class="reference internal" href="#gone">', "#gone leads to no place"),
        ('<img src="gone.png">', "gone.png leads to no file"),
        ('<script src="https://example.org/x.js">', "<script> loads"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "<link> loads"),
        ('<img src="http://example.org/x.png">', "<img> loads"),
        ('<th class="head"><p></p></th>', "a column has no title"),
        ("<style>@import 'https://example.org/x.css'</style>", "loads https://example.org"),
        ('<p style="background: url(//example.org/x.png)">', "loads //example.org"),
    ],
)
def test_what_is_broken_or_from_another_host_is_found(
    tmp_path: Path, body: str, finding: str
) -> None:
    (found,) = _findings(tmp_path, body)
    assert found.startswith("page.html: ")
    assert finding in found


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#here">',
        '<p id="there"><a href="#there">',
        '<a href="https://example.org/">',
        '<a href="mailto:someone@example.org">',
        '<link rel="canonical" href="https://example.org/page.html">',
        '<img src="data:image/png;base64,AAAA">',
        '<th class="head"><p>name</p></th>',
        '<a href="./other.html?highlight=text#here">',
    ],
)
def test_what_is_right_is_not_found(tmp_path: Path, body: str) -> None:
    assert _findings(tmp_path, body) == []


def test_styles_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("@font-face { src: url('https://example.org/f.woff') }")
    assert _findings(tmp_path, "") == ["x.css: loads https://example.org/f.woff"]


# files beside it ---------------------------------------------------------------------------------


def test_the_citation_names_this_version() -> None:
    lines = (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {functrans.__version__}" in lines
