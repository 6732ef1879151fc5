"""How Sphinx builds the site: ``sphinx-build -W docs build/docs``, without network."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

DOCS = Path(__file__).resolve().parent
# The working tree is what is documented, also when another copy of functrans is installed.
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

import api_pages  # noqa: E402
import check_site  # noqa: E402
import gallery_site  # noqa: E402

import functrans  # noqa: E402

project = "functrans"
author = "the functrans developers"
project_copyright = author
version = release = functrans.__version__
html_title = f"functrans {version}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
exclude_patterns = ["build", "_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
# Links to `page.md#a-title`, as they work where the files are read as Markdown.
myst_heading_anchors = 3

# Results of notebooks are kept beside the built site, for the next build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
# A warning in a notebook is a warning of the build.
nb_output_stderr = "warn"
# One box for what a cell prints, however often the kernel sends it.
nb_merge_streams = True

autodoc_typehints = "signature"
# Under their names, not as the unions that they are.
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "DTypeLike", "PyTree")}
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
napoleon_numpy_docstring = False
globals().update(api_pages.NAPOLEON)
python_use_unqualified_type_names = True

# The files are made by `inventories.py`, which says from what.
intersphinx_mapping = {
    library: (site, f"inventories/{library}.inv") for library, site in api_pages.SITES.items()
}

# Furo: all sections in one sidebar, which PyData's theme leaves empty unless each has a page of
# own; static files of 0.5 MB in place of 3; readable on a phone and in the dark.
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False


def _for_the_site(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files beside ``docs/``, which the site has not, become their text.

    The empty line that ends a session for ``doctest`` is no part of what is shown.
    """
    text = re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", source[0])
    source[0] = re.sub(r"\n\n```\n", "\n```\n", text)


def _formula(translator: HTML5Translator, node: nodes.Element) -> None:
    """Formulas as MathML, which browsers draw without a script."""
    block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def _report(app: Sphinx, exception: Exception | None) -> None:
    """Make warnings of what is wrong in the built pages."""
    if exception is None and app.builder.format == "html":
        for finding in check_site.findings(Path(app.outdir)):
            logging.getLogger(__name__).warning("%s", finding, type="site")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages of the API before the build, look at the result after it."""
    gallery_site.setup(app)
    app.connect("builder-inited", lambda app: api_pages.write(Path(app.srcdir) / "api"))
    app.connect("source-read", _for_the_site)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("build-finished", _report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
