"""How much of the library's signatures says nothing.

Counted is each annotation of a parameter or of a result, of all functions of the library, those in
functions included. Open is one that is ``Any`` and nothing else; one in which ``Any`` stands as a
part (``Callable[..., Any]``, ``dict[str, Any]``) says something and is counted apart.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import functrans

PACKAGE = Path(functrans.__file__).parent
NAMES = ("Any", "_Any")


def annotations(source: str) -> Iterator[ast.expr]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = node.args
            several = [own.vararg, own.kwarg]
            for parameter in [*own.posonlyargs, *own.args, *own.kwonlyargs, *several]:
                if parameter is not None and parameter.annotation is not None:
                    yield parameter.annotation
            if node.returns is not None:
                yield node.returns


def shares() -> dict[str, tuple[int, int, int]]:
    """By directory: annotations that are ``Any``, those that hold it, all."""
    found: dict[str, Counter[int]] = {}
    for path in PACKAGE.rglob("*.py"):
        count = found.setdefault(path.relative_to(PACKAGE).parts[0], Counter())
        for annotation in annotations(path.read_text("utf-8")):
            names = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}
            count[0] += isinstance(annotation, ast.Name) and annotation.id in NAMES
            count[1] += not names.isdisjoint(NAMES)
            count[2] += 1
    return {name: (count[0], count[1], count[2]) for name, count in found.items()}


def test_few_annotations_are_any() -> None:
    n_open, _, n_all = map(sum, zip(*shares().values(), strict=True))
    assert n_all > 30_000
    assert n_open < 0.15 * n_all


if __name__ == "__main__":
    rows = sorted(shares().items(), key=lambda row: -row[1][0])
    rows.append(("together", tuple(map(sum, zip(*(row for _, row in rows), strict=True)))))  # type: ignore[arg-type]  # three
    for name, (n_open, n_holding, n_all) in rows:
        if n_all:
            numbers = f"{name:20}{n_open:7}{n_holding:7}{n_all:7}"
            print(f"{numbers}{n_open / n_all:7.1%}{n_holding / n_all:7.1%}")
