"""Programs as pages of HTML: ``to_html``.

Here: a page on which name scopes, loops, branches and calls fold; each equation has its types, its
cost and the user's line; a field searches. Not here: the frame of a page (``debugging.documents``),
the figures (``debugging.costs``), text and Graphviz (``ir.printing``), the picture of a recorded
graph (``autograd.pictures``), a program beside its code (``debugging.explorer``).

Layer: ``debugging``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.debugging.costs import Cost, EquationCost, inner_programs, program_cost, quantity
from functrans.debugging.documents import document, framed
from functrans.ir.printing import annotation_text, atom_text, param_text, variable_names

_STYLE = """
header { position: sticky; top: 0; z-index: 1; background: var(--page); padding: 14px 22px 0;
  border-bottom: 1px solid var(--line); }
h1 { font-size: 17px; margin: 0 16px 0 0; display: inline-block; }
.total { color: var(--quiet); } .total b { color: var(--text); font-weight: 600; }
.tools { margin: 10px 0; display: flex; gap: 8px; align-items: center; flex-wrap: wrap; }
input, button { font: inherit; color: inherit; background: var(--panel);
  border: 1px solid var(--line); border-radius: 5px; padding: 3px 10px; }
input { width: min(340px, 60vw); } #found { color: var(--quiet); }
main { padding: 8px 22px 40px; }
code, .row, .io { font: 12.5px/1.65 ui-monospace, Menlo, Consolas, monospace; }
.row, .head { display: grid; grid-template-columns: minmax(0, 1fr) 92px 76px 76px 190px;
  column-gap: 12px; padding: 1px 6px; border-radius: 4px; align-items: baseline; }
.head { color: var(--quiet); font-size: 12px; padding: 0 6px 4px; }
.head span, .n { text-align: right; }
.head span:first-child, .head span:last-child { text-align: left; }
.row:hover { background: var(--panel); } .row.hit { background: var(--hit); }
.n, .s { color: var(--quiet); white-space: nowrap; }
.s { overflow: hidden; text-overflow: ellipsis; }
.share { position: relative; text-align: right; color: var(--quiet); }
.share i { position: absolute; right: 0; top: 2px; bottom: 2px; background: var(--bar);
  border-radius: 2px; opacity: .55; } .share span { position: relative; }
.e { overflow-wrap: anywhere; padding-left: 16px; text-indent: -16px; }
.p { color: var(--name); font-weight: 600; } .t { color: var(--type); } .k { color: var(--quiet); }
.a { color: var(--note); }
.io { padding: 1px 6px; overflow-wrap: anywhere; }
details > summary { list-style: none; cursor: pointer; position: relative; }
details > summary::-webkit-details-marker { display: none; }
details > summary::before { content: "\\25B8"; position: absolute; left: -11px; top: 0;
  color: var(--quiet); font-size: 12px; }
details[open] > summary::before { content: "\\25BE"; }
.inner { margin: 2px 0 4px 9px; padding-left: 15px; border-left: 2px solid var(--line); }
.scope > summary .e { color: var(--scope); font-weight: 600; }
.scope > summary .k { font-weight: 400; }
.title { color: var(--quiet); font-size: 12px; margin-top: 4px; }
.hidden { display: none; }
@media (max-width: 800px) { .row, .head { grid-template-columns: minmax(0, 1fr) 70px; }
  .n, .s, .head span:nth-child(n+3) { display: none; } }
"""

_SCRIPT = """
const field = document.getElementById("search"), found = document.getElementById("found");
const rows = [...document.querySelectorAll("main .row")];
const all = [...document.querySelectorAll("details")];
const before = new Map();
function fold(open) { all.forEach(d => d.open = open); }
function search() {
  const words = field.value.toLowerCase().split(/\\s+/).filter(w => w);
  if (words.length && !before.size) all.forEach(d => before.set(d, d.open));
  rows.forEach(r => r.classList.remove("hit", "hidden"));
  if (!words.length) {
    before.forEach((open, d) => d.open = open); before.clear(); found.textContent = ""; return;
  }
  let count = 0;
  all.forEach(d => d.open = false);
  rows.forEach(r => {
    const text = r.textContent.toLowerCase();
    if (words.every(w => text.includes(w))) {
      count += 1; r.classList.add("hit");
      for (let d = r.parentElement.closest("details"); d; d = d.parentElement.closest("details"))
        d.open = true;
    } else r.classList.toggle("hidden", !r.matches("summary *"));
  });
  found.textContent = count + (count === 1 ? " equation" : " equations");
}
field.addEventListener("input", search);
document.getElementById("open").addEventListener("click", () => fold(true));
document.getElementById("close").addEventListener("click", () => fold(false));
addEventListener("keydown", e => { if (e.key === "/" && document.activeElement !== field) {
  e.preventDefault(); field.focus(); } });
"""

_OPEN_EQUATIONS = 40
"""Programs in equations are shown open up to this number of equations."""
_LONG_PARAM = 120


def in_notebook(jaxpr: Jaxpr) -> str:
    """The program as a notebook shows it."""
    return framed(to_html(jaxpr), len(jaxpr.eqns) + 2)


def to_html(jaxpr: Jaxpr) -> str:
    """The program as a page that needs nothing else.

    Args:
      jaxpr: the program.

    Returns:
      HTML: scopes, loops, branches and calls that fold, types, costs and their shares, the user's
      lines, annotations, a search field (key ``/``), colours for light and dark.
    """
    cost = program_cost(jaxpr)
    name = escape(jaxpr.name or "program")
    at_least = "" if cost.is_bounded else " (while loops: one iteration)"
    total = (
        f"<b>{quantity(cost.flops)}flop</b>, "
        f"<b>{quantity(cost.transcendentals).rstrip()}</b> functions, "
        f"<b>{quantity(cost.bytes)}B</b> moved, peak <b>{quantity(cost.peak_bytes)}B</b>{at_least}"
    )
    page = _Page(cost)
    body = page.program(jaxpr, cost, 1)
    head = [
        f'<header><h1>{name}</h1><span class="total">{total}</span>',
        '<div class="tools"><input id="search" type="search" placeholder="Search: primitive, '
        'shape, line, scope" aria-label="Search equations"><button id="open">Unfold all'
        '</button><button id="close">Fold all</button><span id="found" role="status"></span>'
        "</div>",
        '<div class="head"><span>equation</span><span>work</span><span>flop</span>'
        "<span>bytes</span><span>line</span></div></header>",
    ]
    title = jaxpr.name or "program"
    return document(title, _STYLE, [*head, "<main>", *body, "</main>"], _SCRIPT)


class _Page:
    """What is known while a page is written."""

    def __init__(self, cost: Cost) -> None:
        self.work = cost.flops + cost.transcendentals
        self.shown: dict[Jaxpr, int] = {}

    def program(self, jaxpr: Jaxpr, cost: Cost, runs: float, scope: str = "") -> list[str]:
        """Arguments, equations by scope, results."""
        names = variable_names(jaxpr)
        notes = jaxpr.annotations
        lines = []
        for label, variables in (("constants", jaxpr.constvars), ("arguments", jaxpr.invars)):
            if variables:
                text = ", ".join(_binding(var, names, notes) for var in variables)
                lines.append(f'<div class="io"><span class="k">{label}</span> {text}</div>')
        pairs = list(zip(jaxpr.eqns, cost.equations, strict=True))
        lines += self._scoped(pairs, scope, names, notes, runs)
        outs = ", ".join(escape(atom_text(atom, names)) for atom in jaxpr.outvars) or "nothing"
        lines.append(f'<div class="io"><span class="k">returns</span> {outs}</div>')
        return lines

    def _scoped(
        self,
        pairs: Sequence[tuple[Equation, EquationCost]],
        scope: str,
        names: Mapping[Var, str],
        notes: Mapping[Any, tuple[Any, ...]],
        runs: float,
    ) -> list[str]:
        """Equations, those of one inner scope that follow each other together."""
        lines: list[str] = []
        start = 0
        while start < len(pairs):
            inner = _next_scope(pairs[start][0].scope, scope)
            if inner is None:
                lines += self._equation(*pairs[start], names, notes, runs)
                start += 1
                continue
            end = start
            while end < len(pairs) and _next_scope(pairs[end][0].scope, scope) == inner:
                end += 1
            costs = [cost for _, cost in pairs[start:end]]
            label = f"{escape(inner[len(scope) :].lstrip('/'))}"
            figures = _figures(
                runs * sum(c.flops + c.transcendentals for c in costs),
                runs * sum(c.flops for c in costs),
                runs * sum(c.bytes for c in costs),
                self.work,
            )
            count = f"{end - start} equation{'s' * (end - start != 1)}"
            lines.append(
                f'<details class="scope" open><summary><div class="row"><span class="e">{label} '
                f'<span class="k">{count}</span></span>{figures}<span class="s"></span></div>'
                '</summary><div class="inner">'
            )
            lines += self._scoped(pairs[start:end], inner, names, notes, runs)
            lines.append("</div></details>")
            start = end
        return lines

    def _equation(
        self,
        eqn: Equation,
        cost: EquationCost,
        names: Mapping[Var, str],
        notes: Mapping[Any, tuple[Any, ...]],
        runs: float,
    ) -> list[str]:
        """The row of an equation, and the programs in it below."""
        row = self._row(eqn, cost, names, notes, runs)
        programs = list(inner_programs(eqn))
        if not programs:
            return [row]
        size = sum(len(program.eqns) for _, program in programs)
        state = " open" if size <= _OPEN_EQUATIONS else ""
        lines = [f'<details{state}><summary>{row}</summary><div class="inner">']
        for (key, program), inner in zip(programs, cost.inner, strict=True):
            times = f", {cost.runs} times" if cost.runs != 1 else ""
            known = self.shown.get(program)
            if known is not None:
                lines.append(
                    f'<div class="title">{escape(key)}{times}: the program '
                    f'<a href="#p{known}">@{known}</a> above</div>'
                )
                continue
            number = self.shown[program] = len(self.shown) + 1
            name = f" {escape(program.name)}" if program.name else ""
            lines.append(
                f'<div class="title" id="p{number}">@{number} {escape(key)}{name}{times}</div>'
            )
            lines += self.program(program, inner, runs * cost.runs, eqn.scope)
        lines.append("</div></details>")
        return lines

    def _row(
        self,
        eqn: Equation,
        cost: EquationCost,
        names: Mapping[Var, str],
        notes: Mapping[Any, tuple[Any, ...]],
        runs: float,
    ) -> str:
        outs = " ".join(_binding(var, names, notes) for var in eqn.outputs) or "()"
        params = ", ".join(
            f"{escape(key)}={escape(_param(value))}"
            for key, value in eqn.params.items()
            if not _holds_program(value)
        )
        params = f'<span class="k">[{params}]</span>' if params else ""
        operands = " ".join(escape(atom_text(atom, names)) for atom in eqn.inputs)
        own = notes.get(eqn)
        note = f' <span class="a">{escape(annotation_text(own))}</span>' if own else ""
        figures = _figures(
            runs * (cost.flops + cost.transcendentals), runs * cost.flops, runs * cost.bytes,
            self.work,
        )  # fmt: skip
        line = escape(str(cost.source)) if cost.source is not None else ""
        title = escape(f"{cost.source.file}:{cost.source.line}") if cost.source is not None else ""
        return (
            f'<div class="row"><span class="e">{outs} = <span class="p">'
            f"{escape(eqn.primitive.name)}</span>{params} {operands}{note}</span>{figures}"
            f'<span class="s" title="{title}">{line}</span></div>'
        )


def _next_scope(own: str, outer: str) -> str | None:
    """The scope one level below ``outer`` that an equation is in; ``None`` if it is in none."""
    if outer and own != outer and not own.startswith(outer + "/"):
        return None
    rest = own[len(outer) :].lstrip("/")
    if not rest:
        return None
    step = rest.partition("/")[0]
    return f"{outer}/{step}" if outer else step


def _figures(work: float, flops: float, moved: float, total: float) -> str:
    """The cells of the costs."""
    share = 100 * work / total if total else 0.0
    bar = f'<i style="width:{min(share, 100):.1f}%"></i>' if share >= 0.05 else ""
    text = f"{share:.1f} %" if share >= 0.05 else ""
    return (
        f'<span class="share">{bar}<span>{text}</span></span>'
        f'<span class="n">{quantity(flops) if flops else ""}</span>'
        f'<span class="n">{quantity(moved)}B</span>'
    )


def _binding(
    var: Var, names: Mapping[Var, str], notes: Mapping[Any, tuple[Any, ...]]
) -> str:  # fmt: skip
    text = f'{escape(names[var])}<span class="t">:{escape(str(var.aval))}</span>'
    if var in notes:
        text += f'<span class="a">{escape(annotation_text(notes[var]))}</span>'
    return text


def _holds_program(value: object) -> bool:
    return isinstance(value, Jaxpr) or (
        type(value) is tuple and any(isinstance(item, Jaxpr) for item in value)
    )


def _param(value: object) -> str:
    text = param_text(value)
    return text if len(text) <= _LONG_PARAM else text[:_LONG_PARAM] + "..."
