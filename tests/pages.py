"""What tests of pages share: a reader of HTML that checks it, and a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

VOID = {"meta", "input", "br", "hr"}
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
with_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


class Page(HTMLParser):
    """A page whose tags nest; notes attributes of all elements, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]  # there is one
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def with_class(self, name: str) -> list[dict[str, str]]:
        return [own for _, own in self.elements if name in own.get("class", "").split()]

    @property
    def classes(self) -> list[str]:
        return [name for _, own in self.elements for name in own.get("class", "").split()]

    @property
    def ids(self) -> list[str]:
        return [own["id"] for own in self.having("id")]

    @property
    def urls(self) -> list[str]:
        return [own["href"] for own in self.having("href")]

    def having(self, attribute: str) -> list[dict[str, str]]:
        return [own for _, own in self.elements if attribute in own]


def checked(text: str) -> Page:
    """A page that needs nothing else, whose links lead somewhere and whose ids are its own."""
    page = Page(text)
    ids = page.ids
    assert len(set(ids)) == len(ids)
    assert not page.having("src")
    for url in page.urls:
        assert url.startswith("#"), url
        assert url[1:] in ids, url
    for own in [*page.having("aria-labelledby"), *page.having("aria-controls")]:
        for key in ("aria-labelledby", "aria-controls"):
            assert own.get(key, ids[0] if ids else "") in ids, own
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    return page


def in_browser(text: str, script: str, folder: Path) -> Page:
    """The page after a script at its end has run."""
    assert BROWSER is not None
    file = folder / "page.html"
    body, _, end = text.rpartition("</body>")
    file.write_text(f"{body}<script>{script}</script></body>{end}", encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'own'}",
        "--window-size=1400,900", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return Page(run.stdout.partition(">")[2])
