"""A program beside its code: the user's lines, equations, steps of the plan, instructions.

Here: the page that ``jit(f).report`` writes. Not here: which code comes from which step
(``compiler.origins``), the frame of a page (``debugging.documents``).

What belongs together has the same numbers in its attributes: ``data-e`` of equations, ``data-n`` of
steps. A script lights up what shares a number with what the pointer or the keyboard is on; without
it all is there but the light.

Layer: ``debugging``.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from functrans.compiler.export import write_files
from functrans.compiler.origins import Anatomy, CodeRow, anatomy
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import SourceLine, cell_of
from functrans.debugging.documents import HUES, document, framed
from functrans.records import dataclass

_LONG_BLOCK, _LONG_CODE = 40, 150
"""Lines of the code of a step, and of all code, from which on it is folded."""
_LONG_FUNCTION, _AROUND = 120, 4
"""Lines of a function that is shown whole; lines around each that matters of a longer one."""

_HUES = "\n".join(f".k{i} {{ --hue: {hue}; }}" for i, hue in enumerate(HUES))
_STYLE = f"""
{_HUES}
header {{ padding: 12px 18px 8px; border-bottom: 1px solid var(--line); }}
h1 {{ font-size: 17px; margin: 0; }} header p {{ margin: 2px 0 0; color: var(--quiet); }}
#told {{ min-height: 1.5em; color: var(--text); }}
main {{ display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); height: calc(100vh - 92px);
  min-height: 320px; }}
section {{ border-right: 1px solid var(--line); overflow: auto; padding: 0 0 30px; }}
section:last-child {{ border-right: 0; }}
h2 {{ font-size: 13px; margin: 0; padding: 7px 12px; position: sticky; top: 0; z-index: 1;
  background: var(--panel); border-bottom: 1px solid var(--line); }}
h2 small, h3 {{ font-weight: 400; color: var(--quiet); }}
h3 {{ font-size: 12px; margin: 8px 12px 2px; }}
.r, pre {{ font: 12px/1.55 ui-monospace, Menlo, Consolas, monospace; margin: 0; }}
.r {{ display: flex; align-items: flex-start; border-left: 3px solid var(--hue, transparent); }}
.r > button, .r > pre {{ font: inherit; color: inherit; background: none; border: 0;
  text-align: left; white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 8px; flex: 1;
  min-width: 0; border-radius: 0; }}
.r > button {{ cursor: pointer; }}
.c > button, .c > pre {{ white-space: pre; overflow-wrap: normal; }}
.c {{ width: max-content; min-width: 100%; }}
.no {{ color: var(--quiet); min-width: 42px; text-align: right; padding-right: 6px;
  user-select: none; }}
.ref {{ color: var(--name); padding: 0 6px; white-space: nowrap; font-size: 11px;
  line-height: 1.7; text-decoration: none; }}
.ref:hover {{ text-decoration: underline; }}
hr {{ border: 0; border-top: 1px dashed var(--line); margin: 6px 12px; }}
.idle {{ color: var(--quiet); }}
.near {{ background: var(--near); }} .on {{ background: var(--hit); }}
.r.on {{ box-shadow: inset 3px 0 0 var(--type); }}
[aria-pressed="true"] {{ font-weight: 700 !important; }}
summary {{ cursor: pointer; padding: 3px 10px; font-size: 12px; color: var(--quiet);
  border-left: 3px solid var(--hue, transparent); border-top: 1px solid var(--line); }}
.tabs {{ display: flex; gap: 6px; padding: 6px 12px; }}
.tabs button {{ font: inherit; font-size: 12px; color: inherit; background: var(--panel);
  border: 1px solid var(--line); border-radius: 5px; padding: 1px 9px; cursor: pointer; }}
.tabs [aria-selected="true"] {{ background: var(--hit); }}
[hidden] {{ display: none; }}
@media (max-width: 900px) {{ main {{ grid-template: repeat(2, minmax(0, 1fr)) /
  repeat(2, minmax(0, 1fr)); }} section {{ border-bottom: 1px solid var(--line); }} }}
@media (max-width: 500px) {{ main {{ display: block; height: auto; }}
  section {{ max-height: 70vh; border-right: 0; }} }}
"""

_SCRIPT = """
const numbers = (el, key) => new Set((el.dataset[key] || "").split(" ").filter(x => x));
const items = [...document.querySelectorAll("[data-k]")].map(el =>
  ({ el, kind: el.dataset.k, e: numbers(el, "e"), n: numbers(el, "n"),
     button: el.querySelector("button"), column: el.closest("section") }));
const of = new Map(items.map(item => [item.el, item]));
const told = document.getElementById("told"), hint = told.textContent;
const meet = (a, b) => { for (const x of a) if (b.has(x)) return true; return false; };
const placed = x => x.kind === "step" || x.kind === "code";
function strong(x, y) {
  if (x === y) return true;
  if (placed(x) && placed(y)) {
    if (!meet(x.n, y.n)) return false;
    if (x.kind === "code" && y.kind === "code") return x.e.size ? meet(x.e, y.e) : !y.e.size;
    return x.kind !== y.kind;
  }
  return meet(x.e, y.e);
}
let pinned = null;
function light(x) {
  const counts = { line: 0, equation: 0, step: 0, code: 0 };
  const first = new Map();
  for (const y of items) {
    const on = x !== null && strong(x, y);
    y.el.classList.toggle("on", on);
    y.el.classList.toggle("near", x !== null && !on && meet(x.n, y.n) && y.kind !== "step");
    if (!on) continue;
    counts[y.kind] += +(y.el.dataset.c || 1);
    if (!first.has(y.column) && y.el.offsetParent) first.set(y.column, y);
  }
  for (const s of document.querySelectorAll("summary"))
    s.classList.toggle("on", !s.parentElement.open && !!s.parentElement.querySelector(".on"));
  told.textContent = x === null ? hint : [[counts.line, "line"], [counts.equation, "equation"],
    [counts.step, "step"], [counts.code, "line of code", "lines of code"]].filter(c => c[0])
    .map(([c, one, many]) => c + " " + (c === 1 ? one : many || one + "s")).join(", ");
  return first;
}
function show(x) {
  for (const [column, y] of light(x))
    if (column !== x.column) column.scrollTo({ top: column.scrollTop +
      y.el.getBoundingClientRect().top - column.getBoundingClientRect().top - 60 });
}
function pin(x) {
  if (pinned) pinned.button.setAttribute("aria-pressed", "false");
  pinned = pinned === x ? null : x;
  if (!pinned) { light(null); return; }
  pinned.button.setAttribute("aria-pressed", "true");
  light(pinned);
  for (const d of document.querySelectorAll("details")) if (d.querySelector(".on")) d.open = true;
  show(pinned);
}
const stops = new Map();
for (const item of items) {
  const { el, button, column } = item;
  if (!stops.has(column)) stops.set(column, item); else button.tabIndex = -1;
  for (const link of el.querySelectorAll("a")) link.tabIndex = -1;
  el.addEventListener("mouseenter", () => { if (!pinned) light(item); });
  el.addEventListener("mouseleave", () => { if (!pinned) light(null); });
  button.addEventListener("focus", () => {
    stops.get(column).button.tabIndex = -1; button.tabIndex = 0; stops.set(column, item);
    if (!pinned && button.matches(":focus-visible")) show(item); });
  button.addEventListener("blur", () => { if (!pinned) light(null); });
  button.addEventListener("click", () => pin(item));
}
addEventListener("keydown", event => {
  if (event.key === "Escape" && pinned) { pin(pinned); return; }
  const at = of.get(document.activeElement && document.activeElement.closest("[data-k]"));
  if (!at) return;
  const seen = items.filter(y => y.el.offsetParent);
  let to = null;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const own = seen.filter(y => y.column === at.column);
    to = own[own.indexOf(at) + (event.key === "ArrowDown" ? 1 : -1)];
  } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    const columns = [...document.querySelectorAll("section")];
    const next = columns[columns.indexOf(at.column) + (event.key === "ArrowRight" ? 1 : -1)];
    to = seen.find(y => y.column === next && strong(at, y)) || (next && stops.get(next));
  } else return;
  event.preventDefault();
  if (to) to.button.focus();
});
const tabs = [...document.querySelectorAll("[role=tab]")];
function choose(tab) {
  for (const t of tabs) {
    t.setAttribute("aria-selected", t === tab);
    t.tabIndex = t === tab ? 0 : -1;
    document.getElementById(t.getAttribute("aria-controls")).hidden = t !== tab;
  }
}
for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", event => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = tabs[(tabs.indexOf(tab) + 1) % tabs.length];
    choose(other); other.focus(); event.stopPropagation();
  });
}
if (tabs.length) { tabs[0].parentElement.hidden = false; choose(tabs[0]); }
"""
_HINT = (
    "Point at a line, or go there with the arrow keys, to see what belongs to it; click or press "
    "Enter to hold it."
)


def write_report(jaxpr: Jaxpr, name: str, path: Path) -> Path:
    """Write the page of a program to a file that was checked by ``checked_path``.

    Args:
      jaxpr: the program as it is compiled.
      name: of the function.
      path: of the file.
    """
    write_files(path.parent, {path.name: explorer_page(jaxpr, name).encode()})
    return path


def framed_explorer(jaxpr: Jaxpr, name: str) -> str:
    """The page in a notebook."""
    return framed(explorer_page(jaxpr, name), 20)


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a report.

    Raises:
      TypeError: it is no path.
      FileNotFoundError: its folder does not exist.
      IsADirectoryError: it is a folder itself.
      OSError: it is a device or a pipe.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"report: path must be the name of a file, got {type(path).__name__}; write "
            "report(*args, path='report.html')"
        )
    file = Path(path).resolve()  # a link stays one
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise OSError(f"report: path {str(path)!r} is a device or a pipe; name a file")
    if file.is_dir():
        raise IsADirectoryError(
            f"report: path is the folder {str(path)!r}; name a file in it, as 'report.html'"
        )
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"report: there is no folder {str(file.parent)!r} for {file.name!r}; make it first"
        )
    return file


def explorer_page(jaxpr: Jaxpr, name: str) -> str:
    """The page.

    Args:
      jaxpr: the program as it is compiled.
      name: of the function.
    """
    found = anatomy(jaxpr)
    given = ", ".join(map(str, jaxpr.in_avals))
    results = ", ".join(map(str, jaxpr.out_avals))
    tops = _top_steps(found)
    body = [
        f"<header><h1>{escape(name)}</h1><p>{escape(given)} &rarr; {escape(results)}</p>",
        f'<p id="told" role="status">{_HINT}</p></header><main>',
        *_section("lines", "Source", "lines that made equations", _source(found)),
        *_section("eqns", "Equations", "after all passes", _equations(found, tops)),
        *_section("steps", "Steps", "loop nests and calls", _steps(found, tops)),
        *_section("code", "Code", "by step", _codes(found, tops)),
        "</main>",
    ]
    return document(f"{name}: program and code", _STYLE, body, _SCRIPT)


def _section(key: str, title: str, note: str, body: Sequence[str]) -> list[str]:
    head = f'<h2 id="h-{key}">{title} <small>{note}</small></h2>'
    return [f'<section id="{key}" aria-labelledby="h-{key}">{head}', *body, "</section>"]


def _top_steps(found: Anatomy) -> list[int]:
    """Per step the number of the outermost one that it is in, from 0 on."""
    tops: list[int] = []
    for step in found.steps:
        tops.append(tops[step.around[0]] if step.around else max(tops, default=-1) + 1)
    return tops


def _innermost(found: Anatomy, steps: frozenset[int]) -> tuple[int, ...]:
    """Steps that no other one of them is in."""
    outer = {around for step in steps for around in found.steps[step].around}
    return tuple(sorted(steps - outer))


def _row(
    kind: str,
    key: str,
    text: str,
    eqns: Sequence[int],
    steps: Sequence[int],
    hue: int | None = None,
    before: str = "",
    after: str = "",
    more: str = "",
) -> str:
    """Something that lights up; what belongs to nothing is text."""
    colour = "" if hue is None else f" k{hue % len(HUES)}"
    style = f"r{' c' if kind == 'code' else ''}{colour}"
    place = f' id="{key}"' if key else ""
    if not eqns and not steps:
        return f'<div class="{style} idle"{place}>{before}<pre>{text}</pre>{after}</div>'
    numbers = "".join(
        f' data-{name}="{" ".join(map(str, values))}"'
        for name, values in (("e", eqns), ("n", steps))
        if values
    )
    return (
        f'<div class="{style}"{place} data-k="{kind}"{numbers}{more}>{before}'
        f'<button type="button" aria-pressed="false">{text}</button>{after}</div>'
    )


# source -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines of a file that are shown together."""

    file: str
    first: int
    last: int
    label: str


def _source(found: Anatomy) -> list[str]:
    """The functions that equations come from, with numbers of lines."""
    eqns: dict[tuple[str, int], list[int]] = {}
    names: dict[tuple[str, int], str] = {}
    for number, row in enumerate(found.equations):
        if row.line is not None:
            place = (row.line.file, row.line.line)
            eqns.setdefault(place, []).append(number)
            names[place] = row.line.function
    if not eqns:
        return ["<h3>No equation has a line.</h3>"]
    rows = []
    files = list(dict.fromkeys(file for file, _ in eqns))
    for file in files:
        used = sorted(line for own, line in eqns if own == file)
        texts = linecache.getlines(file)
        label = ""
        for block in _blocks(file, used, texts):
            if block.label != label:
                rows.append(f"<h3>{escape(block.label)}</h3>")
            else:
                rows.append("<hr>")
            label = block.label
            for line in range(block.first, block.last + 1):
                known = 0 < line <= len(texts)
                text = texts[line - 1].rstrip("\n") if known else f"({names[file, line]})"
                count = f'<span class="no">{line}</span>'
                own = eqns.get((file, line), ())
                key = f"l{files.index(file)}-{line}" if own else ""
                rows.append(_row("line", key, escape(text) or " ", own, (), before=count))
    return rows


def _blocks(file: str, used: Sequence[int], texts: Sequence[str]) -> Iterator[_Block]:
    """The functions that lines are in; of long ones, and of what is none, the lines around."""
    label = cell_of(file) or os.path.basename(file)  # noqa: PTH119  # no path: <stdin>
    if not texts:
        for line in used:
            yield _Block(file, line, line, f"{label}, which is not there to be read")
        return
    functions = _functions("".join(texts))
    spans: list[tuple[int, int]] = []
    for line in used:
        around = [span for span in functions if span[0] <= line <= span[1]]
        first, last = around[0] if around else (line, line)
        if line <= len(texts) and (not around or last - first >= _LONG_FUNCTION):
            first, last = max(line - _AROUND, 1), min(line + _AROUND, len(texts))
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = spans[-1][0], max(last, spans[-1][1])
        else:
            spans.append((first, last))
    for first, last in spans:
        yield _Block(file, first, last, label)


def _functions(text: str) -> list[tuple[int, int]]:
    """First and last lines of the functions of a file, those that are in no other one."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    spans: list[tuple[int, int]] = []
    pending: list[Any] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            spans.append((first, node.end_lineno or first))
        else:
            pending.extend(ast.iter_child_nodes(node))
    return sorted(spans)


# equations and steps ----------------------------------------------------------------------------


def _equations(found: Anatomy, tops: Sequence[int]) -> list[str]:
    homes: dict[int, list[int]] = {}
    for number, step in enumerate(found.steps):
        for eqn in step.eqns:
            homes.setdefault(eqn, []).append(number)
    files = list(dict.fromkeys(row.line.file for row in found.equations if row.line is not None))
    rows = []
    for number, row in enumerate(found.equations):
        steps = homes.get(number, [])
        if row.title:
            rows.append(f"<h3>{'&ensp;' * 2 * row.depth}{escape(row.title)}</h3>")
        place = _line_link(row.line, files)
        links = [f'<a class="ref" href="#s{n}">step {found.steps[n].label}</a>' for n in steps[:2]]
        text = "  " * row.depth + escape(row.text)
        hue = tops[steps[0]] if steps else None
        after = "".join([*links, place])
        rows.append(_row("equation", f"e{number}", text, (number,), steps, hue, after=after))
    return rows


def _line_link(line: SourceLine | None, files: Sequence[str]) -> str:
    if line is None:
        return ""
    return f'<a class="ref" href="#l{files.index(line.file)}-{line.line}">line {line.line}</a>'


def _steps(found: Anatomy, tops: Sequence[int]) -> list[str]:
    rows = []
    for number, step in enumerate(found.steps):
        text = "  " * len(step.around) + f"<b>{escape(step.label)}</b> {escape(step.text)}"
        rows.append(_row("step", f"s{number}", text, step.eqns, (number,), tops[number]))
    return rows or ["<h3>The results are the arguments.</h3>"]


# code -------------------------------------------------------------------------------------------


def _codes(found: Anatomy, tops: Sequence[int]) -> list[str]:
    """Machine code and LLVM's text, each on a tab."""
    if not found.llvm:
        return ["<h3>No step has code of its own.</h3>"]
    if found.obstacle:
        return [f"<h3>{escape(found.obstacle)}</h3>", *_code(found, found.llvm, tops)]
    buttons = "".join(
        f'<button type="button" role="tab" id="t-{key}" aria-controls="{key}" '
        f'aria-selected="false">{title}</button>'
        for key, title in (("machine", "machine code"), ("llvm", "LLVM"))
    )
    lines = [f'<div class="tabs" role="tablist" aria-label="Code" hidden>{buttons}</div>']
    for key, rows in (("machine", found.machine), ("llvm", found.llvm)):
        lines.append(f'<div id="{key}" role="tabpanel" aria-labelledby="t-{key}">')
        lines += [*_code(found, rows, tops), "</div>"]
    return lines


def _code(found: Anatomy, rows: Sequence[CodeRow], tops: Sequence[int]) -> list[str]:
    """Code in the order of memory, in parts by step."""
    inside: list[tuple[int, ...]] = []
    """Per line the innermost steps; what belongs to none goes with the line before."""
    for row in rows:
        before = inside[-1] if inside and row.text[:1] in " ." else ()
        inside.append(_innermost(found, row.origin.steps) or before)
    lines = []
    for steps, group in groupby(zip(inside, rows, strict=True), key=lambda pair: pair[0]):
        own = [row for _, row in group]
        is_short = len(rows) <= _LONG_CODE or len(own) <= _LONG_BLOCK
        hue = f' class="k{tops[steps[0]] % len(HUES)}"' if len(steps) == 1 else ""
        labels = ", ".join([found.steps[step].label for step in steps])
        title = f"step{'s' * (len(steps) != 1)} {labels}" if steps else "around the steps"
        count = f"{len(own)} line{'s' * (len(own) != 1)}"
        state = " open" if is_short else ""
        lines.append(f"<details{state}><summary{hue}>{escape(title)}, {count}</summary>")
        for origin, piece in groupby(own, key=lambda row: row.origin):
            texts = [row.text for row in piece]
            hues = {tops[step] for step in origin.steps}
            lines.append(
                _row(
                    "code", "", escape("\n".join(texts)), sorted(origin.eqns),
                    sorted(origin.steps), hues.pop() if len(hues) == 1 else None,
                    more=f' data-c="{len(texts)}"',
                )
            )  # fmt: skip
        lines.append("</details>")
    return lines
