"""Look for broken links in the built site, and for what its pages load from other hosts.

Here: ``findings``, which reads the HTML files of a folder. ``conf.py`` calls it at the end of a
build, so that a finding is a warning of Sphinx; ``python docs/check_site.py build/docs`` calls it
on its own. Sphinx itself reports links in the sources that lead nowhere; this looks at what a
browser gets, with the theme and the pages that are generated. Addresses of other sites, to which a
reader may go, are not visited.
"""

from __future__ import annotations

import functools
import html
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

_ID = re.compile(r"""\s(?:id|name)=["']?([^"'\s>]+)""")
_TAG = re.compile(r"<(a|area|link|script|img|iframe|source|video|audio|object|embed|use)\s([^>]*)>")
_ADDRESS = re.compile(r"""(?:^|\s)(href|src|srcset|data|poster|xlink:href)=["']([^"']*)["']""")
_LOADED_BY_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
_LINKS_NOT_LOADED = re.compile(r"""rel=["'](?:canonical|next|prev|search|index|author|license)""")
_EMPTY_HEADER = re.compile(r"<th[^>]*>\s*(?:<p>\s*</p>\s*)?</th>")
_FOREIGN = re.compile(r"(?:[a-zA-Z][\w+.-]*:)|//")
_BACK = "viewcode-back"
"""Links from sources to pages: the page is right, its place may have the name of another module."""


class _Site:
    """The pages of a built site.

    Args:
      root: folder of the site.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.texts = {p: p.read_text(encoding="utf-8") for p in sorted(self.root.rglob("*.html"))}
        self.places = {
            path: set(map(html.unescape, _ID.findall(text))) for path, text in self.texts.items()
        }
        # Most links of a page are those of the others beside it.
        self.target = functools.cache(self._target)

    def _target(self, folder: Path, address: str) -> Path:
        """The file that an address means on pages of a folder."""
        path = Path(os.path.normpath(folder / address))
        return path / "index.html" if path not in self.places and path.is_dir() else path

    def broken(self, page: Path, address: str) -> str:
        """What is wrong with a link to a place of the site, or an empty text."""
        address, _, place = address.partition("#")
        place = unquote(place)
        target = self.target(page.parent, unquote(address.partition("?")[0])) if address else page
        if target not in self.places:
            return "" if target.is_file() else "leads to no file"
        if place and place not in self.places[target]:
            return f"leads to no place in {target.name}"
        return ""

    def findings(self, page: Path) -> Iterator[str]:
        """What is wrong on one page."""
        for tag, rest in _TAG.findall(self.texts[page]):
            for attribute, raw in _ADDRESS.findall(rest):
                address = html.unescape(raw)
                if _FOREIGN.match(address):
                    is_followed = tag in ("a", "area") or _LINKS_NOT_LOADED.search(rest)
                    if not is_followed and not address.startswith("data:"):
                        yield f"<{tag}> loads {attribute}={address}"
                elif address and attribute != "srcset" and _BACK not in rest:
                    wrong = self.broken(page, address)
                    if wrong:
                        yield f"{address} {wrong}"
        for address in _LOADED_BY_STYLE.findall(self.texts[page]):
            yield f"loads {address}"
        if _EMPTY_HEADER.search(self.texts[page]):
            yield "a column has no title: a screen reader has nothing to say for it"


def findings(root: Path) -> list[str]:
    """What is wrong in the pages and style sheets below a folder.

    Args:
      root: folder of the built site.

    Returns:
      One line for each broken link, and for each address of another host that a page loads.
    """
    site = _Site(root)
    found = [
        f"{page.relative_to(site.root)}: {finding}"
        for page in site.texts
        for finding in site.findings(page)
    ]
    for path in sorted(site.root.rglob("*.css")):
        addresses = _LOADED_BY_STYLE.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site.root)}: loads {address}" for address in addresses]
    return found


def main() -> int:
    """Print the findings for the folder that is named on the command line."""
    root = Path(sys.argv[1])
    found = findings(root) if root.is_dir() else [f"{root} is no folder: build the site first"]
    print("\n".join(found) or f"no findings in {root}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
