"""The gallery on the site: cards with the first figure of each page, and times of execution.

Here: the directive ``gallery``, whose lines are names of pages and which gives a card for each, the
line below the title of a page, and the thumbnails, which are made from the results of the pages
when the site is built. Not here: how a page is read (``gallery_pages.py``).
"""

from __future__ import annotations

import os
from pathlib import Path

import gallery_pages
from docutils import nodes
from docutils.statemachine import StringList
from myst_nb.sphinx_ import NbMetadataCollector
from PIL import Image
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

_WIDTH = 640  # pixels, twice those of a card
_CARD = """\
::::{{grid-item-card}} {title}
:link: {name}
:link-type: doc
:link-alt: {title}

```{{gallery-thumbnail}} {name}
```
{summary}
```{{gallery-cost}} {name}
```
::::
"""


class _Place(nodes.General, nodes.Element):
    """The place of what is known when all pages have been executed."""


class Later(SphinxDirective):
    """The first figure of a page, small, or what it costs to run."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Leave a place for it."""
        return [_Place(page=self.arguments[0], kind=self.name)]


class Gallery(SphinxDirective):
    """Cards that lead to the pages that are named, and their place in the table of contents."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Write the cards as if they stood in the page."""
        cards = []
        for name in self.content:
            page = gallery_pages.read(name)
            self.env.note_dependency(str(gallery_pages.FOLDER / f"{name}.md"))
            cards.append(_CARD.format(name=name, title=page.title, summary=page.summary))
        grid = ":::::{grid} 1 2 2 3\n:gutter: 3\n\n" + "\n".join(cards) + ":::::\n"
        contents = "```{toctree}\n:hidden:\n\n" + "\n".join(self.content) + "\n```\n"
        container = nodes.container()
        lines = StringList((grid + contents).splitlines(), self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, container)
        return container.children


def _pages(env: BuildEnvironment) -> list[str]:
    return [name for name in gallery_pages.names() if f"gallery/{name}" in env.all_docs]


def _thumbnails(app: Sphinx) -> Path:
    return Path(app.doctreedir) / "thumbnails"


def _draw_thumbnails(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Scale the first figure of each page."""
    _thumbnails(app).mkdir(exist_ok=True)
    for name in _pages(env):
        images = list(env.get_doctree(f"gallery/{name}").findall(nodes.image))
        if not images:
            raise ExtensionError(f"gallery/{name}.md gave no figure")
        with Image.open(Path(app.srcdir) / images[0]["uri"]) as image:
            size = (_WIDTH, round(image.height * _WIDTH / image.width))
            small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        small.save(_thumbnails(app) / f"gallery-{name}.png", optimize=True)
    return []


def _cost(env: BuildEnvironment, name: str) -> nodes.paragraph:
    """How long a page is, and how long it took to run."""
    data = NbMetadataCollector.get_exec_data(env, f"gallery/{name}")
    time = f"runs in {data['runtime']:.1f} s" if data and data["runtime"] else "not run"
    text = f"{gallery_pages.read(name).n_lines} lines of code, {time}"
    return nodes.paragraph(text, text, classes=["gallery-cost"])


def _thumbnail(app: Sphinx, name: str) -> nodes.image:
    """The small figure of a page, whose text stands beside it."""
    file = _thumbnails(app) / f"gallery-{name}.png"
    # What Sphinx does for images that are there when a page is read.
    app.builder.images[str(file)] = file.name
    image = nodes.image(uri=str(file), alt="", classes=["gallery-thumbnail"])
    image["candidates"] = {"*": str(file)}
    return image


def _complete(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put thumbnails and times of execution where they belong."""
    for place in list(doctree.findall(_Place)):
        name = place["page"]
        is_cost = place["kind"] == "gallery-cost"
        place.replace_self(_cost(app.env, name) if is_cost else _thumbnail(app, name))
    folder, _, name = docname.rpartition("/")
    if folder == "gallery" and name in _pages(app.env):
        title = next(doctree.findall(nodes.title))
        title.parent.insert(title.parent.index(title) + 1, _cost(app.env, name))


def setup(app: Sphinx) -> None:
    """Register what the pages of the gallery use."""
    # Kernels run the working tree, too.
    root = str(gallery_pages.FOLDER.parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    # Threads of BLAS gain nothing here, and wait for each other where a machine has other work:
    # SciPy's L-BFGS on 16,384 unknowns then takes several times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    app.add_directive("gallery", Gallery)
    app.add_directive("gallery-thumbnail", Later)
    app.add_directive("gallery-cost", Later)
    app.add_node(_Place)
    app.connect("env-updated", _draw_thumbnails)
    app.connect("doctree-resolved", _complete)
