"""Blocks of code in Markdown pages: which of them are Python, which are run, and running them.

A page is run from top to bottom in one namespace. Sessions (``>>>``) must give what they show, all
other blocks of Python must not raise. What is not to be run stands below a comment that says why::

    <!-- excerpt: the left side needs JAX, which is no dependency -->
"""

import ast
import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("", "docs/", "docs/gallery/", "examples/", "tests/autograd/", "tests/benchmarks/")
# Run elsewhere: by pytest itself (`testpaths`), and when the site is built.
RUN_BY_PYTEST = ("README.md",)
RUN_BY_THE_SITE = "docs/gallery/"

PYTHON = ("python", "pycon", "py", "python3", "{code-cell}", "{code-cell} ipython3")
OTHER = (
    "c",
    "llvm",
    "sh",
    "text",
    "{include}",
    "{toctree}",
    "{raw}",
    "{figure}",
    "{image}",
    "{gallery}",
)
_FENCE = re.compile(
    r"(?:<!-- excerpt:(?P<reason>[^>]*)-->\n+)?"
    r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^\n`]*)\n(?P<code>.*?)^ *(?P=ticks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_OPTIONS = re.compile(r"(?:---\n.*?\n---\n|(?::[^\n]*\n)+)?", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its code, the line where that begins, and why it is not run."""

    language: str
    code: str
    line: int
    reason: str | None

    @property
    def is_session(self) -> bool:
        return self.code.lstrip().startswith(">>>")

    @property
    def lines(self) -> range:
        return range(self.line, self.line + self.code.count("\n"))


def pages() -> tuple[str, ...]:
    """All pages of the repository, data apart."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md"))]
    return tuple(path.relative_to(ROOT).as_posix() for path in found)


def blocks(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        language, start = match["info"].strip(), match.start("code")
        if language.startswith("{code-cell}"):
            start += _OPTIONS.match(match["code"]).end()  # type: ignore[union-attr]  # may be empty
        code = text[start : match.end("code")]
        yield Block(language, code, text.count("\n", 0, start) + 1, match["reason"])


def runnable(text: str) -> list[Block]:
    return [block for block in blocks(text) if block.language in PYTHON and block.reason is None]


def findings(page: str, text: str) -> list[str]:
    """What keeps a block of Python from being run although nothing says so."""
    found = []
    for block in blocks(text):
        where = f"{page}:{block.line}: "
        name = block.language.split(" ")[0]
        if block.language not in PYTHON and name not in OTHER:
            found.append(f"{where}a block of {block.language!r}: say its language, or list it here")
        elif block.language not in PYTHON and block.reason is not None:
            found.append(f"{where}{name} is not run in any case")
        elif block.reason is not None and len(block.reason.split()) < 3:
            found.append(f"{where}an excerpt without a reason")
        elif block.language in PYTHON and not block.is_session:
            try:
                ast.parse(block.code)
            except SyntaxError as error:
                found.append(f"{where}{error}")
    if page not in RUN_BY_PYTEST and not page.startswith(RUN_BY_THE_SITE):
        examples = Page(page, text).get_examples(text)
        starts = {example.lineno + 1 for example in examples}
        found += [
            f"{page}:{block.line}: nothing of it is run"
            for block in runnable(text)
            if starts.isdisjoint(block.lines)
        ]
        found += [
            f"{page}:{example.lineno + 1}: is skipped"
            for example in examples
            if example.options.get(doctest.OPTIONFLAGS_BY_NAME["SKIP"])
        ]
    elif not all(block.is_session for block in runnable(text)) and page in RUN_BY_PYTEST:
        found.append(f"{page}: pytest runs sessions only")
    return found


class Page(doctest.DocTestParser):
    """The examples of a page: those of its sessions, and one for each other block."""

    def __init__(self, page: str, text: str) -> None:
        self._name, self._blocks = str(ROOT / page), tuple(blocks(text))

    def get_examples(self, string: str, name: str = "<string>") -> list[doctest.Example]:
        excerpts = {n for block in self._blocks if block.reason is not None for n in block.lines}
        sessions = super().get_examples(string, name)
        found = [example for example in sessions if example.lineno + 1 not in excerpts]
        found += [
            doctest.Example(f"run_block({number}, globals())\n", "", lineno=block.line - 1)
            for number, block in enumerate(self._blocks)
            if block.language in PYTHON and block.reason is None and not block.is_session
        ]
        return sorted(found, key=lambda example: example.lineno)

    def run_block(self, number: int, namespace: dict[str, Any]) -> None:
        """Run a block with the lines that it has in the page, which tracebacks then show."""
        block = self._blocks[number]
        code = compile("\n" * (block.line - 1) + block.code, self._name, "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)


def run(path: Path) -> doctest.TestResults:
    """Run the page, and tell how many examples failed, out of how many."""
    page = Page(str(path), path.read_text(encoding="utf-8"))
    return doctest.testfile(
        str(path),
        module_relative=False,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
        extraglobs={"run_block": page.run_block},
        parser=page,
        verbose=False,
    )
