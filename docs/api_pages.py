"""Pages of the API reference, written from the public namespaces when the site is built.

Here: which names are documented where (``entries``, ``others``), and the text of their pages
(``pages``), which ``conf.py`` writes below ``docs/api``. An object that several names stand for has
one page, under the first of them; the others link to it. Texts are functrans' own: of what is
NumPy's or SciPy's object, the page says what is supported and links to theirs. Not here: the texts,
and the facts on functions of NumPy and SciPy (``support.json``).
"""

from __future__ import annotations

import functools
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import generate

DOCS = Path(__file__).resolve().parent
NAPOLEON = {"napoleon_use_ivar": True, "napoleon_use_rtype": False}
"""Attributes are fields of their class, not entries, of which there would be two."""

ROOTS = (
    "functrans", "functrans.functional", "functrans.numpy", "functrans.scipy", "functrans.lax",
    "functrans.autograd", "functrans.sparse", "functrans.tree", "functrans.random",
    "functrans.nn", "functrans.dask", "functrans.ops", "functrans.extend", "functrans.errors",
    "functrans.testing", "functrans.debug", "functrans.conventions", "functrans.flatten_util",
)  # fmt: skip
"""Namespaces, in the order in which they claim names; public modules inside follow each."""

MIRRORS = {"functrans.numpy": "numpy", "functrans.scipy": "scipy"}
"""Namespaces whose names are those of another library."""

SITES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
}
"""Where the documentation of other libraries is."""

OTHERS = {
    "functrans.compat.torch": ("PyTorch", "/imperative"),
    "functrans.compat.jax": ("JAX", "/compat"),
    "functrans.compat.autograd": ("autograd", "/compat"),
}
"""Vocabularies of other libraries, and the guides on how they differ.

Their names stand in tables, one for each module, without pages of their own.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A public name of a namespace.

    Attributes:
      namespace: name of the module.
      name: the name in it.
      value: what it stands for.
      home: qualified name under which the value has its page.
      page: name of the file of that page.
    """

    namespace: str
    name: str
    value: Any
    home: str
    page: str

    @property
    def full(self) -> str:
        """The qualified name."""
        return f"{self.namespace}.{self.name}"

    @property
    def is_home(self) -> bool:
        """Whether the page of the value is under this name."""
        return self.full == self.home


def _modules(name: str, listed: frozenset[str] = frozenset()) -> Iterator[str]:
    """A namespace and the public modules inside of it, but for those that are listed already."""
    if name in listed:
        return
    yield name
    module = pkgutil.resolve_name(name)
    for inner in sorted(module.__all__):
        value = getattr(module, inner)
        if isinstance(value, ModuleType) and value.__name__ == f"{name}.{inner}":
            yield from _modules(value.__name__, listed)


def namespaces() -> list[str]:
    """All namespaces whose names have pages."""
    listed = frozenset((*ROOTS, "functrans.compat"))
    return [name for root in ROOTS for name in (root, *list(_modules(root, listed - {root}))[1:])]


def _names(namespace: str) -> dict[str, Any]:
    """Public names of a namespace that are not modules, those that name their value first."""
    module = pkgutil.resolve_name(namespace)
    found = {name: getattr(module, name) for name in sorted(module.__all__) if name[0] != "_"}
    return {
        name: value
        for name, value in sorted(
            found.items(), key=lambda item: getattr(item[1], "__name__", "") != item[0]
        )
        if not isinstance(value, ModuleType)
    }


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every public name of the namespaces with pages, once."""
    homes: dict[object, tuple[str, str]] = {}
    files = {namespace.lower() for namespace in namespaces()}
    found = []
    for namespace in namespaces():
        for name, value in _names(namespace).items():
            full = f"{namespace}.{name}"
            # Numbers and texts may be one object by chance.
            identity = id(value) if callable(value) else full
            if identity not in homes:
                # Some file systems do not tell `Tensor` from `tensor`.
                page = full if full.lower() not in files else f"{full}-{_kind(value)}"
                files.add(page.lower())
                homes[identity] = full, page
            found.append(Entry(namespace, name, value, *homes[identity]))
    return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name.lower(), entry.name)))


def others() -> dict[str, dict[str, Any]]:
    """By namespace the names of other libraries' vocabularies, with their values."""
    torch = json.loads((DOCS / "torch_names.json").read_text(encoding="utf-8"))["modules"]
    found: dict[str, dict[str, Any]] = {}
    for place, names in torch.items():
        module = pkgutil.resolve_name(f"functrans.compat.{place}")
        if isinstance(module, ModuleType) and module.__name__ not in namespaces():
            found[module.__name__] = {n: getattr(module, n) for n in names if hasattr(module, n)}
    for root in ("functrans.compat.jax", "functrans.compat.autograd"):
        for namespace in _modules(root):
            found[namespace] = _names(namespace)
    return {
        namespace: {
            name: value for name, value in names.items() if not isinstance(value, ModuleType)
        }
        for namespace, names in found.items()
    }


def _kind(value: Any) -> str:
    """What a page describes, in the words of Sphinx's domain of Python."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


def _is_own(value: Any) -> bool:
    """Whether functrans defines an object and wrote its docstring.

    Docstrings of NumPy and SciPy, which some functions take over, underline their sections.
    """
    home = getattr(value, "__module__", None) or type(value).__module__
    text = inspect.getdoc(value)
    own = home.partition(".")[0] in ("functrans", "torch", "jax", "autograd")  # as they are called
    return own and bool(text) and "\n----" not in text


def _summary(value: Any) -> str:
    """The first sentence of a docstring of functrans, or what the object is."""
    if _is_own(value):
        first = " ".join(inspect.getdoc(value).split("\n\n")[0].split())
        ends = [match.start() for match in re.finditer(r"(?<=[.:;]) ", first)]
        end = next((end for end in ends if first[:end].count("``") % 2 == 0), len(first))
        return re.sub(r"[:;]$", ".", first[:end])
    if callable(value):
        library = (getattr(value, "__module__", None) or "builtins").partition(".")[0]
        name = f"``{getattr(value, '__name__', value)}``"
        if library == "functrans":
            return f"{name} of arrays that may be traced."
        return f"{LIBRARIES.get(library, library)} own {name}."
    return "" if len(repr(value)) > 60 or " at 0x" in repr(value) else f"``{value!r}``"


LIBRARIES = {"numpy": "NumPy's", "scipy": "SciPy's", "builtins": "Python's"}


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]], widths: str = "auto") -> list[str]:
    """A table of reStructuredText, with cells of one line."""
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        "   :align: left",
        f"   :widths: {widths}",
        "",
    ]
    for row in (header, *rows):
        for mark, cell in zip(("   * -", *["     -"] * len(row)), row, strict=False):
            lines.append(f"{mark} {cell}".rstrip())
    return [*lines, ""]


def _signature(value: Any) -> str:
    """Parameters of an object of another library."""
    try:
        return re.sub(r"=<[^>]*>", "=...", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)" if callable(value) else ""


def _formatted(docstring: str) -> str:
    """A docstring in Google style as reStructuredText."""
    from sphinx.ext.napoleon import Config, GoogleDocstring  # not needed to find the names

    return str(GoogleDocstring(docstring, Config(**NAPOLEON)))


def _described(entry: Entry) -> list[str]:
    """The description of an object."""
    value, kind = entry.value, _kind(entry.value)
    if kind == "data" or not _is_own(value):
        text = _formatted(inspect.getdoc(value)) if _is_own(value) else ""
        signature = _signature(value) if kind != "data" else ""
        own = _summary(value) if not text else ""
        lines = [f".. py:{kind}:: {entry.full}{signature}", "", *(text or own).splitlines()]
        return [lines[0], *(f"   {line}".rstrip() for line in lines[1:]), ""]
    members = ["   :members:"] if kind in ("class", "exception") else []
    return [f".. auto{kind}:: {entry.full}", *members, ""]


@functools.cache
def _facts() -> Mapping[str, Mapping[str, Any]]:
    """What the tests found out of functions of NumPy and SciPy, by module and name."""
    return json.loads((DOCS / "support.json").read_text(encoding="utf-8"))["modules"]


def _mirrored(entry: Entry) -> list[str]:
    """What is supported of a function of NumPy or SciPy, with a link to its page there."""
    root = ".".join(entry.namespace.split(".")[:2])
    if root not in MIRRORS:
        return []
    module = MIRRORS[root] + entry.namespace.removeprefix(root)
    try:
        pkgutil.resolve_name(f"{module}.{entry.name}")
    except (AttributeError, ImportError):
        return []
    facts = _facts().get(module, {}).get(entry.name, {"status": "plain"})
    lines = [f"{LIBRARIES[MIRRORS[root]]} page: :py:obj:`{module}.{entry.name}`.", ""]
    if facts["status"] == "traced":
        forward, reverse, second = (cell or "not tested" for cell in generate.derivatives(facts))
        compiled = generate.compiled(facts) or "not tested"
        header = ("forward mode", "reverse mode", "second order", "compiled")
        cell = compiled.replace("`", "``")
        lines += _table(header, [(forward, reverse, second, cell)])
        lines += [":doc:`What these columns mean, and all functions </support>`.", ""]
    return lines


def _object_page(entry: Entry, also: list[Entry]) -> str:
    """The page of an object."""
    lines = [*_title(entry.full), f"In :doc:`{entry.namespace}`.", ""]
    lines += [*_described(entry), *_mirrored(entry)]
    if also:
        lines += [f"Also as {', '.join(f'``{other.full}``' for other in also)}.", ""]
    return "\n".join(lines)


def _about(namespace: str) -> list[str]:
    """The first paragraph of a module's docstring."""
    text = inspect.getdoc(pkgutil.resolve_name(namespace)) or ""
    return [*text.split("\n\n")[0].splitlines(), ""]


def _namespace_page(namespace: str, names: list[Entry]) -> str:
    """The page of a namespace: a table of its names."""
    rows = [(f":doc:`{e.name} <{e.page}>`", _summary(e.value)) for e in names]
    lines = [*_title(namespace), f".. py:module:: {namespace}", "", *_about(namespace)]
    inner = [other for other in namespaces() if other.rpartition(".")[0] == namespace]
    if inner and namespace != "functrans":
        lines += [f"Inside: {', '.join(f':doc:`{other}`' for other in inner)}.", ""]
    return "\n".join(lines + (_table(("name", "what it is"), rows, "30 70") if rows else []))


def _table_page(namespace: str, names: Mapping[str, Any], places: Mapping[int, Entry]) -> str:
    """The page of a module of another library's vocabulary."""
    rows = []
    for name, value in names.items():
        value = inspect.unwrap(value) if inspect.isfunction(value) else value
        entry = places.get(id(value)) if callable(value) else None
        rows.append(
            (
                f"``{name}``",
                f":doc:`{entry.full} <{entry.page}>`" if entry else "",
                _summary(value),
            )
        )
    lines = [*_title(namespace), f".. py:module:: {namespace}", "", *_about(namespace)]
    if namespace in OTHERS:
        library, guide = OTHERS[namespace]
        inside = [f":doc:`{name}`" for name in others() if name.startswith(f"{namespace}.")]
        lines += [f":doc:`How it differs from {library} <{guide}>`.", ""]
        lines += [f"Inside: {', '.join(inside)}.", ""]
    if rows:
        lines += _table(("name", "the same as", "what it is"), rows, "25 30 45")
    return "\n".join(lines)


def _index() -> str:
    """The page of all namespaces."""
    lines = [
        *_title("API reference"),
        "Every public name, by namespace. ``ft`` is ``functrans``. A name that is in several",
        "namespaces has its page in the first of them, and the others link to it.",
        "",
    ]
    groups = {"Own vocabulary": namespaces(), "Vocabularies of other libraries": list(OTHERS)}
    for title, group in groups.items():
        lines += [title, "-" * len(title), ""]
        rows = [(f":doc:`{name}`", " ".join(_about(name)).strip()) for name in group]
        lines += _table(("namespace", "what is in it"), rows, "30 70")
        lines += [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in group), ""]
    return "\n".join(lines)


_UNLISTED = ":orphan:\n\n"
"""Pages that the sidebar does not list, as it is a part of every page: tables link to them."""


def pages() -> dict[str, str]:
    """The text of all pages, by the names of their files."""
    by_home: dict[str, list[Entry]] = {}
    by_namespace: dict[str, list[Entry]] = {namespace: [] for namespace in namespaces()}
    for entry in entries():
        by_home.setdefault(entry.home, []).append(entry)
        by_namespace[entry.namespace].append(entry)
    homes = {home: next(e for e in same if e.is_home) for home, same in by_home.items()}
    places = {id(entry.value): entry for entry in homes.values()}
    found = {"index": _index()}
    for home, same in by_home.items():
        also = [entry for entry in same if not entry.is_home]
        found[homes[home].page] = _UNLISTED + _object_page(homes[home], also)
    for namespace, names in by_namespace.items():
        found[namespace] = _namespace_page(namespace, names)
    for namespace, values in others().items():
        listed = "" if namespace in OTHERS else _UNLISTED
        found[namespace] = listed + _table_page(namespace, values, places)
    return found


def write(folder: Path) -> None:
    """Write the pages that changed, and remove those of names that are gone."""
    folder.mkdir(exist_ok=True)
    texts = {folder / f"{name}.rst": text.rstrip() + "\n" for name, text in pages().items()}
    for path in folder.glob("*.rst"):
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
