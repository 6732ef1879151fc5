"""Check the types of the code in README.md and docs/, of examples/ and of tests/typed.

Each block of code is a module that imports what earlier blocks of its page define, with its code on
the lines that it has in the page. ``mypy --strict`` and ``pyright`` must find nothing. Statements
that show an error are left out.
"""

import ast
import doctest
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCOPES = (
    ast.FunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
PYRIGHT = {
    "reportUnusedExpression": False,  # lines of a session
    "useLibraryCodeForTypes": False,  # what SciPy's defaults look like is no type
    "extraPaths": [str(ROOT), str(ROOT / "tests" / "typed")],
}
FENCE = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> Iterator[str]:
    """The code of each block of a page, behind as many empty lines as are before it there."""
    for match in FENCE.finditer(page):
        start = page.count("\n", 0, match.start(1))
        text = match[1]
        if ">>>" in text:
            lines = [""] * text.count("\n")
            for example in doctest.DocTestParser().get_examples(text):
                if example.exc_msg is None:
                    source = example.source.splitlines()
                    lines[example.lineno : example.lineno + len(source)] = source
            text = "\n".join(lines) + "\n"
        yield "\n" * start + text


def imported(code: str, known: dict[str, str]) -> str:
    """Imports, in one line, of what a block reads before it defines it, and earlier ones define."""
    read: set[str] = set()
    stored: set[str] = set()
    for statement in ast.parse(code).body:
        names = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
        new = definitions(statement, "").keys()
        read |= {n.id for n in names if isinstance(n.ctx, ast.Load)} - stored
        if isinstance(statement, ast.For | ast.With):
            read -= new
        stored |= new
    return "; ".join(sorted({known[name] for name in read & known.keys()}))


def outer(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it that are no part of a function, a class or a comprehension."""
    yield node
    if not isinstance(node, SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from outer(child)


def definitions(node: ast.AST, module: str) -> dict[str, str]:
    """How to import what is defined in the code of a module."""
    found = {}
    for part in outer(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            found[part.name] = f"from {module} import {part.name} as {part.name}"
        elif isinstance(part, ast.Import | ast.ImportFrom):
            for alias in part.names:
                one = ast.unparse(ast.Import([alias]))
                if isinstance(part, ast.ImportFrom):
                    one = f"from {part.module} {one}"
                found[(alias.asname or alias.name).partition(".")[0]] = one
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found[part.id] = f"from {module} import {part.id} as {part.id}"
    return found


def extract(directory: Path) -> None:
    """Write the blocks of all pages to files."""
    for path in PAGES:
        known: dict[str, str] = {}
        for code in blocks(path.read_text(encoding="utf-8")):
            line = len(code) - len(code.lstrip("\n")) + 1
            module = f"{re.sub(r'[^a-z]', '_', path.stem.lower())}_{line}"
            text = imported(code, known) + code
            (directory / f"{module}.py").write_text(text, encoding="utf-8")
            known |= definitions(ast.parse(code), module)


def main() -> int:
    """Whether one of the checkers found something."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        extract(directory)
        (directory / "problems").symlink_to(ROOT / "tests" / "problems")
        config = directory / "pyrightconfig.json"
        config.write_text(json.dumps(PYRIGHT), encoding="utf-8")
        also = [str(path) for path in sorted((ROOT / "examples").glob("*.py"))]
        mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
        mypy += ["--config-file", str(ROOT / "pyproject.toml")]
        mypy += ["--cache-dir", str(ROOT / ".mypy_cache" / "examples"), ".", *also]
        pyright = [sys.executable, "-m", "pyright", "--project", str(config), ".", *also]
        pyright += [str(ROOT / "tests" / "typed"), "--pythonpath", sys.executable]
        env = {**os.environ, "MYPYPATH": str(ROOT)}
        return max(
            subprocess.run(command, cwd=directory, env=env).returncode
            for command in (mypy, pyright)
        )


if __name__ == "__main__":
    sys.exit(main())
