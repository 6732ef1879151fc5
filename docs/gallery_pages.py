"""The pages of the gallery, as they stand in ``docs/gallery``.

Here: ``PAGES``, their order on the index, and ``read``, which finds title, summary and code cells
of a page. Not here: what Sphinx makes of them (``gallery_site.py``). Nothing but the standard
library is needed, so that tests can look at the sources where the site cannot be built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "gallery"

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_CELL = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?:---\n(.*?)^---\n)?(.*?)^```$", re.MULTILINE | re.DOTALL
)
_SUMMARY = re.compile(r"^functrans_gallery:\n  summary: (.+)$", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_ALTERNATIVE = re.compile(r"^ +alt: *(\S.*(?:\n {6,}\S.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of code.

    Attributes:
      options: what stands between the lines of dashes, in YAML, or an empty text.
      code: its lines.
    """

    options: str
    code: str

    @property
    def alternative(self) -> str:
        """The text that stands for the figure of the cell, or an empty one."""
        found = _ALTERNATIVE.search(self.options)
        return " ".join(found[1].removeprefix(">-").split()) if found else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the gallery.

    Attributes:
      name: name of its file, without the ending.
      title: its heading.
      summary: one sentence, for the index.
      cells: its cells of code, in order.
    """

    name: str
    title: str
    summary: str
    cells: tuple[Cell, ...]

    @property
    def n_lines(self) -> int:
        """How many lines of code it has, without empty ones and comments."""
        lines = (line.strip() for cell in self.cells for line in cell.code.splitlines())
        return sum(bool(line) and not line.startswith("#") for line in lines)


def names() -> list[str]:
    """Pages that there are, by the names of their files."""
    return sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")


def read(name: str) -> Page:
    """Read a page.

    Args:
      name: name of its file, without the ending.

    Returns:
      Its parts.

    Raises:
      ValueError: the file has no front matter, no summary in it, or no heading.
    """
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    front = _FRONT.search(text)
    if front is None:
        raise ValueError(
            f"gallery/{name}.md does not begin with front matter between two lines ---"
        )
    summary, title = _SUMMARY.search(front[1]), _TITLE.search(text, front.end())
    if summary is None:
        raise ValueError(
            f"the front matter of gallery/{name}.md has no `functrans_gallery:` with `summary:` on "
            "the next line"
        )
    if title is None:
        raise ValueError(f"gallery/{name}.md has no heading `# ...`")
    cells = tuple(Cell(options, code) for options, code in _CELL.findall(text))
    return Page(name, title[1], summary[1].strip("\"'"), cells)
