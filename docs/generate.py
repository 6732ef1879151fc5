"""Write the pages that are made from tables: conventions at kinks, and the list of primitives.

Run ``python docs/generate.py`` after a change to either table; ``tests/test_docs.py`` fails when a
page is out of date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from functrans.conventions import KINKS
from functrans.ir.primitive import Marker, Primitive
from functrans.primitives.table import PRIMITIVES

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "functrans"


def conventions_page() -> str:
    """The page of derivatives at kinks."""
    lines = [
        "# Derivatives at kinks",
        "",
        "Where a function has a kink, or an infinite derivative, functrans gives one declared",
        "value. The table is data (`functrans.conventions.KINKS`,",
        "`functrans.conventions.kink(name)`), and a test evaluates every example. `fnp` is",
        "`functrans.numpy`.",
        "",
        "| function | where | derivative | example | gives | why |",
        "|---|---|---|---|---|---|",
    ]
    for row in KINKS:
        cells = (
            row.function,
            row.point,
            row.rule,
            f"`{row.example}`",
            f"`{row.value}`",
            row.reason,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "Integer inputs of `grad` raise unless `allow_int=True`. Complex: the functional side",
        "differentiates without conjugation, as JAX does, so that `grad(f, holomorphic=True)` is",
        "the complex derivative of a holomorphic function.",
        "",
    ]
    return "\n".join(lines)


def _kind(primitive: Primitive) -> str:
    """How the derivative of a primitive is given."""
    if primitive.elementwise is not None and not isinstance(primitive.jvp, Marker):
        return "partials"
    return primitive.jvp.name if isinstance(primitive.jvp, Marker) else "jvp rule"


def _files() -> dict[str, str]:
    """Primitive name to the file of its record."""
    found: dict[str, str] = {}
    for path in sorted((PACKAGE / "primitives").glob("*.py")):
        module = sys.modules.get(f"functrans.primitives.{path.stem}")
        source = inspect.getsource(module) if module is not None else ""
        for primitive in PRIMITIVES:
            if f"\n{primitive.name}_p" in source:
                found.setdefault(primitive.name, path.name)
    return found


def primitives_page() -> str:
    """The page that lists every primitive with the file of its record."""
    files = _files()
    lines = [
        "# Primitives",
        "",
        "Every first-order primitive, the file in `functrans/primitives/` that holds its record",
        "(as `<name>_p`), and how its derivative is given: see [architecture](architecture.md).",
        "",
        "| primitive | file | derivative | transpose | notes |",
        "|---|---|---|---|---|",
    ]
    for primitive in sorted(PRIMITIVES, key=lambda p: p.name):
        notes = "; ".join(f"{field}: {reason}" for field, reason in primitive.reasons)
        transpose = "yes" if primitive.transpose is not None else ""
        lines.append(
            f"| `{primitive.name}` | `{files.get(primitive.name, '')}` | {_kind(primitive)} | "
            f"{transpose} | {notes} |"
        )
    lines.append("")
    return "\n".join(lines)


PAGES = {"conventions.md": conventions_page, "primitives.md": primitives_page}


def main() -> int:
    """Write all pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
