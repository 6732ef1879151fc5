"""Pages of HTML that need no other file and no network: their frame and their colours.

Here: ``document``, a page of a body, ``framed``, a page in a notebook, ``PALETTE``. Not here: what
is on a page (``debugging.pages``, ``debugging.explorer`` and others).

Colours follow what the reader's system asks for, light or dark; texts have a contrast of 4.5 to 1
at least against what is behind them.

Layer: ``debugging``.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

PALETTE = """
:root { color-scheme: light dark; --text: #1d2330; --quiet: #5f6778; --page: #ffffff;
  --panel: #f5f6f8; --line: #dfe2e8; --name: #0b57a4; --type: #87520a; --scope: #1d6b3c;
  --bar: #9ec3ee; --hit: #fff1b3; --near: #eef3fb; --note: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #dfe3ea; --quiet: #a1aabb; --page: #15181e;
  --panel: #1e222a; --line: #313743; --name: #7db7f5; --type: #e0b072; --scope: #7fd1a0;
  --bar: #2f5c91; --hit: #463a0e; --near: #232b3a; --note: #f2a29b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 14px/1.5 system-ui, sans-serif; }
:focus-visible { outline: 2px solid var(--name); outline-offset: -2px; }
"""
"""Colours by what they are for, and what all pages begin with."""

HUES = (
    "#4c8bd6", "#d9822b", "#4fa35c", "#c75450", "#8f6fc9", "#8d6e57", "#d071b4", "#6f7885",
    "#a6a12e", "#2ea8b5",
)  # fmt: skip
"""Colours that tell things apart, on light and on dark ground."""


def document(title: str, style: str, body: Sequence[str], script: str = "") -> str:
    """A page.

    Args:
      title: text of its title.
      style: rules after those of the palette.
      body: lines of HTML.
      script: JavaScript that runs at the end.
    """
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{PALETTE}{style}</style></head><body>",
            *body,
            *([f"<script>{script}</script>"] if script else []),
            "</body></html>",
        ]
    )


def framed(page: str, rows: int) -> str:
    """A page as a part of a notebook: in a frame, so that its styles and scripts are its own.

    Args:
      page: the HTML.
      rows: about how many lines of text it has.
    """
    height = min(150 + 26 * rows, 640)
    style = f"width: 100%; height: {height}px; border: 1px solid #8884; resize: vertical"
    title = page.partition("<title>")[2].partition("</title>")[0]
    return f'<iframe srcdoc="{escape(page)}" style="{style}" title="{title}"></iframe>'
