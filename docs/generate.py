"""Write the pages that are made from tables: conventions at kinks, primitives, vector math.

Run ``python docs/generate.py`` after a change to one of the tables; ``tests/test_docs.py`` fails
when a page is out of date. The errors of vector math are measured by ``docs/measure_math.py``,
which takes minutes; here its file is only rendered.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from functrans.compat.torch import not_offered as torch_names
from functrans.conventions import KINKS
from functrans.core.lowering import (
    Expansion,
    IndexMap,
    Pointwise,
    Reduction,
    Routine,
    Structured,
)
from functrans.core.primitive import Marker, Primitive
from functrans.emitter.math import BOUNDS
from functrans.primitives import table as first_order
from functrans.tables import HIGHER_ORDER

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "functrans"
TORCH = Path(__file__).resolve().parent / "torch_names.json"
LIBRARIES = TORCH.with_name("torch_libraries.json")
MEASURED = DOCS / "vector_math.json"
SUPPORT = DOCS / "support.json"
REASONS = DOCS / "support_reasons.json"
NO_REASON = (
    "not written; compose it from functions that are, or wrap SciPy's in `ft.pure_callback`, with "
    "`ft.custom_jvp` for its derivative"
)
_RECORD = re.compile(r"^(\w+)_p(?:: \w+)? = ", re.MULTILINE)


def _row(*cells: str) -> str:
    """A line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
        lines.append(_row(*cells))
    lines += [
        "",
        "Two things of matrices have no derivative, and what is returned has no meaning: the",
        "eigenvalues of a defective matrix (`eig`, `eigvals`), which move like roots of the",
        "perturbation, and columns that are an arbitrary basis of a subspace (`null_space`, `orth`",
        "at equal singular values, the columns of `svd(full_matrices=True)` beyond the singular",
        "values). Of the latter, functions that do not depend on the choice of the basis, such as",
        "the projector `n @ n.T`, have right derivatives.",
        "",
        "Integer inputs of `grad` raise unless `allow_int=True`. `jvp`, `vjp`, `linearize` and",
        "`jet` take integers and booleans, whose tangents and cotangents are arrays of dtype",
        "`ft.float0`, without contents; a given one may be 0. Programs carry them in their",
        "structure, in no memory.",
        "",
        "Complex: the functional side",
        "differentiates without conjugation, as JAX does, so that `grad(f, holomorphic=True)` is",
        "the complex derivative of a holomorphic function.",
        "",
    ]
    return "\n".join(lines)


def _derivative(primitive: Primitive) -> str:
    """How the derivative of a primitive is given."""
    if primitive.elementwise is not None and not isinstance(primitive.jvp, Marker):
        return "partials"
    return primitive.jvp.name if isinstance(primitive.jvp, Marker) else "jvp rule"


def _lowering(primitive: Primitive) -> str:
    """How a primitive is compiled, or why it is not."""
    lower: Any = primitive.lower
    if lower is None:
        if primitive.effects:
            return f"no: has the effect {', '.join(sorted(primitive.effects))}"
        reason = dict(primitive.reasons).get("lower")
        return f"no: {reason}" if reason else "no"
    if isinstance(lower, Pointwise):
        return "pointwise" if lower.cost == 1 else f"pointwise, cost {lower.cost}"
    if isinstance(lower, IndexMap):
        others = " or view" * lower.is_view + " or routine" * (lower.routine is not None)
        return f"index map{others}"
    if isinstance(lower, Reduction):
        return f"reduction: {lower.kind}"
    if isinstance(lower, Structured):
        return f"structured: {lower.kind}"
    assert isinstance(lower, (Routine, Expansion))
    parts = [type(lower).__name__.lower()]
    if isinstance(lower, Routine) and lower.in_place is not None:
        parts.append("may work in place")
    if lower.supports is not None:
        parts.append("not for all operands")
    return ", ".join(parts)


def _files(root: Path) -> dict[str, str]:
    """Primitive name to the file that defines its record, relative to a folder."""
    return {
        name: path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*.py"))
        for name in _RECORD.findall(path.read_text(encoding="utf-8"))
    }


def _table_of(primitives: Sequence[Primitive], root: Path) -> list[str]:
    """One row per primitive, by name."""
    files = _files(root)
    lines = [
        "| primitive | file | derivative | transpose | compiled as | notes |",
        "|---|---|---|---|---|---|",
    ]
    for primitive in sorted(primitives, key=lambda p: p.name):
        notes = [f"{field}: {why}" for field, why in primitive.reasons if field != "lower"]
        cells = (
            f"`{primitive.name}`",
            f"`{files[primitive.name]}`",
            _derivative(primitive),
            "yes" if primitive.transpose is not None else "",
            _lowering(primitive),
            "; ".join(notes),
        )
        lines.append(_row(*cells))
    return lines


def primitives_page() -> str:
    """The page that lists every primitive with the file of its record."""
    lines = [
        "# Primitives",
        "",
        "Every first-order primitive, the file in `functrans/primitives/` that holds its record",
        "(as `<name>_p`), and how its derivative is given: see [architecture](architecture.md).",
        "The column *compiled as* is the kind of its `lower` field, which",
        "[the page on the compiler](compiler.md) explains; cost is counted in additions. What is",
        "not compiled is evaluated by NumPy between two native parts of the program.",
        "",
        *_table_of(first_order.PRIMITIVES, PACKAGE / "primitives"),
        "",
        "Primitives whose rules run a pass: control flow, calls, callbacks, collectives, solvers;",
        "files are relative to `functrans/`.",
        "",
        *_table_of(HIGHER_ORDER, PACKAGE),
        "",
    ]
    return "\n".join(lines)


def _error(row: dict[str, Any], bound: float) -> str:
    """An error rounded up, so that the page claims no less than was measured."""
    thousandths = round(1000 * row["ulp"])
    text = f"{-(-thousandths // 10) / 100:.2f}"
    return text if row["ulp"] <= bound else f"**{text}, over the bound**"


def vector_math_page() -> str:
    """The page of stated and measured errors of vector math."""
    data = json.loads(MEASURED.read_text(encoding="utf-8"))
    measured = data["functions"]
    if list(measured) != list(BOUNDS):
        raise ValueError(f"{MEASURED.name} is out of date: run python docs/measure_math.py")
    lines = [
        "# Vector math",
        "",
        "What compiled programs compute elementary and special functions with",
        "(`functrans/emitter/math/`): code for any number of lanes, in float64 and float32,",
        "without calls to a library. There are no branches but one before rare slow paths, such as",
        "the reduction of huge angles. Every function serves all inputs: subnormal numbers, huge",
        "arguments, infinities, NaN and signed zeros. No result depends on the processor, on the",
        "number of lanes or on a number's neighbours; the tests compare them bit by bit.",
        "",
        "*Bound* is the error that no result may exceed, in ulp (units in the last place) of the",
        "exact result, also near zeros of the function. It is data",
        "(`functrans.emitter.math.BOUNDS`), and the tests hold every function to it. The other",
        "columns are the largest errors that a comparison with mpmath found, rounded up, and the",
        f"arguments they were found at, over at least {data['points']:,} points per function and",
        "dtype: dense grids and random numbers in the ranges where a function is difficult, random",
        "bit patterns of all magnitudes, and the edges of the format. Correct rounding would give",
        "half an ulp.",
        "",
        "| function | bound | float64 | at | float32 | at |",
        "|---|---:|---:|---|---:|---|",
    ]
    for name, bound in BOUNDS.items():
        cells = [f"`{name}`", f"{bound:g}"]
        for dtype in ("float64", "float32"):
            row = measured[name][dtype]
            cells += [_error(row, bound), f"`{', '.join(row['at'])}`"]
        lines.append(_row(*cells))
    lines += [
        "",
        "float16 and bfloat16 are computed in float32 and rounded once more. Complex functions are",
        "composed of these (`functrans/emitter/complex_functions.py`) and are not in the table.",
        "`python docs/measure_math.py` measures again.",
        "",
    ]
    return "\n".join(lines)


def torch_page() -> str:
    """The page of torch's names: which are offered, which are not and why."""
    data = json.loads(TORCH.read_text(encoding="utf-8"))
    modules: dict[str, list[str]] = data["modules"]
    missing = torch_names.NAMES
    lines = [
        "# Names of torch",
        "",
        f"What `functrans.compat.torch` has of the public names of PyTorch {data['version']}, and",
        "what is not offered. A name that is not offered raises an `AttributeError` which says",
        "what to use in its place.",
        "",
        "| module | names | offered |",
        "|---|---:|---:|",
    ]
    for module, names in modules.items():
        offered = len(names) - len(missing.get(module, {}))
        lines.append(_row(f"`{module}`", str(len(names)), str(offered)))
    lines += [
        "",
        "Differences of the whole: everything lies on the CPU, `out=` is not taken by",
        "windows and does not resize what has views, dtypes are objects",
        "that equal NumPy's, and loaders of data work in the thread that asks for the data. What a",
        "script must change, and what else is different, is told in",
        "[Tensors, backward, hooks](imperative.md).",
        "An `import` of a name that is not offered raises an `ImportError` with the same text.",
        "",
        "Libraries that import `torch` themselves run after `functrans.compat.torch.install()`,",
        "which makes these modules what `import` finds in this process; torch itself must not be",
        "imported before. `python -m functrans.compat.torch script.py` does so for a script, and",
        "`python -m functrans.compat.torch -m pytest tests` for a module.",
        "",
        "## Libraries",
        "",
        "Own tests of libraries, by torch 2.13 on the CPU and by functrans. Those of CUDA,",
        "TorchScript, `torch.compile` and sparse tensors are not counted. The time is that of the",
        "tests that pass with both, in parts of torch's with one thread, without the time to",
        "start. Where it is over 2, single recorded operations on small tensors take it. The",
        "command is `python -m tests.beside_torch.libraries` (see CONTRIBUTING).",
        "",
        "| library | version | pass with torch | of them here | share | time | the rest |",
        "|---|---|---:|---:|---:|---:|---|",
        *(
            _row(name, version, str(all_), str(ours), f"{ours / all_:.1%}", time, rest)
            for name, version, all_, ours, time, rest in json.loads(LIBRARIES.read_text("utf-8"))
        ),
        "",
        "## Not offered",
        "",
        "By groups, with what to do instead:",
    ]
    for group, (title, instead) in torch_names.GROUPS.items():
        lines += [
            "",
            f"### {title[0].upper()}{title[1:]}",
            "",
            f"{instead[0].upper()}{instead[1:]}.",
        ]
        for module in modules:
            names = sorted(n for n, g in missing.get(module, {}).items() if g == group)
            if names:
                lines += ["", f"`{module}`: {', '.join(f'`{name}`' for name in names)}"]
    nearer = sorted(torch_names.INSTEAD.items())
    lines += ["", "Where there is something nearer than that:", ""]
    lines += [f"- `{name}`: {instead}" for name, instead in nearer]
    lines += ["", "## Offered"]
    for module, names in modules.items():
        own = [f"`{name}`" for name in names if name not in missing.get(module, {})]
        lines += ["", f"### {module}", "", ", ".join(own)]
    return "\n".join([*lines, ""])


def derivatives(facts: dict[str, Any]) -> tuple[str, str, str]:
    """The cells of forward mode, reverse mode and second order."""
    if any(facts.get(field) for field in ("forward", "reverse", "second")):
        return tuple(  # type: ignore[return-value]  # of three
            "yes" if facts[field] else "no" for field in ("forward", "reverse", "second")
        )
    if facts.get("discrete"):
        return ("zero",) * 3  # type: ignore[return-value]  # of three
    return ("",) * 3  # type: ignore[return-value]  # of three


def compiled(facts: dict[str, Any]) -> str:
    """Whether a function is native code, or which primitives call NumPy."""
    if "numpy" not in facts:
        return ""
    calls = facts["numpy"]
    if calls is None:
        return "no: its result depends on values"
    if not calls:
        return "native"
    return "calls " + ", ".join(f"`{name}`" for name in calls)


def _why_not(
    path: str, names: Sequence[str], reasons: dict[str, dict[str, list[str]]]
) -> list[str]:
    """One line per reason, with the names it holds for."""
    groups: dict[str, list[str]] = {}
    for name in names:
        fitting = [
            reason
            for reason, patterns in reasons.get(path, {}).items()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        ]
        groups.setdefault(fitting[0] if fitting else NO_REASON, []).append(name)
    return [
        f"- {reason}: {', '.join(f'`{name}`' for name in group)}"
        for reason, group in sorted(groups.items())
    ]


def tested_derivatives(modules: dict[str, dict[str, dict[str, Any]]]) -> dict[str, int]:
    """Module to the number of its functions with tested derivatives; aliases do not count."""
    return {
        path: sum(bool(facts.get("reverse")) and "alias" not in facts for facts in names.values())
        for path, names in modules.items()
    }


def support_page() -> str:
    """The page of NumPy's and SciPy's functions: which are there, differentiable, compiled."""
    data = json.loads(SUPPORT.read_text(encoding="utf-8"))
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    modules: dict[str, dict[str, dict[str, Any]]] = data["modules"]
    tested = sum(tested_derivatives(modules).values())
    lines = [
        "# Functions of NumPy and SciPy",
        "",
        f"Every public function of NumPy {data['numpy']} and SciPy {data['scipy']} in the modules",
        "below, as `python docs/measure_support.py` found it by running all cases of the tables of",
        f"tests. {tested} functions, aliases not counted, have derivatives in both modes that the",
        "tests compare with differences or exact values.",
        "",
        "- Functions of `numpy` may be called as `np.name` on traced arrays, or as",
        "  `functrans.numpy.name`; those of `numpy.polynomial` and of SciPy by",
        "  `functrans.numpy.polynomial` and `functrans.scipy`. Ufuncs of `scipy.special` may be",
        "  called as SciPy's. Creation functions of NumPy take `like=x`.",
        "- *forward*, *reverse*, *second*: whether there is a derivative in forward mode, in",
        "  reverse mode, and of second order (forward over reverse); *zero*: the result is of",
        "  integers or Booleans, or constant in pieces. Empty: no row of the tables calls the",
        "  function with traced arrays.",
        "- *compiled*: `native`, or the primitives that call NumPy or SciPy between native parts",
        "  of a program ([why](primitives.md)).",
        "",
        "| module | names | supported | tested derivatives |",
        "|---|---:|---:|---:|",
    ]
    for path, names in modules.items():
        there = sum(facts["status"] != "missing" for facts in names.values())
        own = str(tested_derivatives(modules)[path])
        lines.append(_row(f"`{path}`", str(len(names)), str(there), own))
    for path, names in modules.items():
        by = {
            status: [name for name, facts in names.items() if facts["status"] == status]
            for status in ("traced", "plain", "missing")
        }
        lines += ["", f"## {path}", ""]
        if by["traced"]:
            lines += [
                "| function | forward | reverse | second | compiled |",
                "|---|---|---|---|---|",
            ]
            for name in by["traced"]:
                facts = names[name]
                lines.append(_row(f"`{name}`", *derivatives(facts), compiled(facts)))
        if by["plain"]:
            listed = ", ".join(f"`{name}`" for name in by["plain"])
            lines += [
                "",
                "There, as the library's own, since they make numbers from numbers that are not",
                f"traced, or take traced numbers as they are: {listed}",
            ]
        if by["missing"]:
            lines += ["", "Not supported:", "", *_why_not(path, by["missing"], reasons)]
    return "\n".join([*lines, ""])


PAGES = {
    "conventions.md": conventions_page,
    "primitives.md": primitives_page,
    "support.md": support_page,
    "torch.md": torch_page,
    "vector-math.md": vector_math_page,
}


def main() -> int:
    """Write all pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
