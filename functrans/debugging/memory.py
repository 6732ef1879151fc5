"""What a program costs as a page: its memory over time, its equations with their work.

Here: the page behind ``Cost.to_html``. Not here: the figures (``debugging.costs``), the page of the
program itself (``debugging.pages``).

Layer: ``debugging``.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from functrans.debugging.costs import Cost, EquationCost, quantity
from functrans.debugging.documents import document

_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 200, 64, 14
"""Of the picture, without its margins; pixels."""
_MOST_BARS, _MOST_ROWS = 450, 300

_STYLE = """
body { padding: 14px 20px 30px; } h1 { font-size: 17px; margin: 0; }
p { color: var(--quiet); margin: 2px 0 10px; }
svg { width: 100%; max-width: 1000px; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--quiet); }
.given { fill: var(--line); } .used { fill: var(--bar); } .peak { fill: var(--type); }
.axis { stroke: var(--line); }
.given:hover, .used:hover, .peak:hover { stroke: var(--text); }
summary { cursor: pointer; margin: 12px 0 6px; }
table { border-collapse: collapse; font: 12px/1.6 ui-monospace, Menlo, Consolas, monospace; }
th { font: 12px system-ui, sans-serif; color: var(--quiet); text-align: right; }
td, th { padding: 0 12px 0 0; text-align: right; white-space: nowrap; vertical-align: top; }
td:nth-child(2), th:nth-child(2) { text-align: left; white-space: normal;
  overflow-wrap: anywhere; min-width: 260px; }
tr.peak td { color: var(--type); font-weight: 600; }
.wide { overflow-x: auto; }
"""


def cost_page(cost: Cost) -> str:
    """The page.

    Args:
      cost: of a program.
    """
    name = cost.name or "program"
    at_least = "" if cost.is_bounded else "; while loops count one iteration"
    total = (
        f"{quantity(cost.flops)}flop, {quantity(cost.transcendentals).rstrip()} functions, "
        f"{quantity(cost.bytes)}B moved, peak {quantity(cost.peak_bytes)}B{at_least}"
    )
    body = [f"<h1>{escape(name)}</h1><p>{escape(total)}</p>", *_picture(cost)]
    if cost.equations:
        body += _table(cost)
    return document(f"{name}: cost", _STYLE, body)


def _picture(cost: Cost) -> Iterator[str]:
    """Memory in use while each equation runs: arguments below, values above."""
    scale = _HEIGHT / max(cost.peak_bytes, 1)
    label = (
        f"Memory in use over {len(cost.equations)} equations: {quantity(cost.argument_bytes)}B of "
        f"arguments, at most {quantity(cost.peak_bytes)}B"
    )
    yield (
        f'<svg role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {_LEFT + _WIDTH + 10} {_TOP + _HEIGHT + 34}">'
    )
    floor = _TOP + _HEIGHT
    for share in (0.0, 0.5, 1.0):
        y = floor - share * _HEIGHT
        yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.0f}" y2="{y:.0f}"/>'
        text = f"{quantity(share * cost.peak_bytes)}B"
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{text}</text>'
    bars = list(_bars(cost))
    width = _WIDTH / max(len(bars), 1)
    base = cost.argument_bytes * scale
    gap = 1.0 if width > 4 else 0.0
    for place, (first, last, eqn) in enumerate(bars):
        height = max(eqn.peak_bytes * scale - base, 0.0)
        x = _LEFT + place * width
        kind = "peak" if eqn.peak_bytes == cost.peak_bytes else "used"
        numbers = str(first + 1) if first == last else f"{first + 1} to {last + 1}, at most"
        where = f" ({eqn.source})" if eqn.source is not None else ""
        note = escape(f"{numbers}: {quantity(eqn.peak_bytes)}B\n{eqn.text}{where}")
        at = f'x="{x:.2f}" width="{max(width - gap, 0.5):.2f}"'
        yield (
            f'<g><title>{note}</title><rect class="given" {at} y="{floor - base:.2f}" '
            f'height="{base:.2f}"/><rect class="{kind}" {at} y="{floor - base - height:.2f}" '
            f'height="{height:.2f}"/></g>'
        )
    yield f'<text x="{_LEFT}" y="{floor + 18}">first equation</text>'
    yield f'<text x="{_LEFT + _WIDTH}" y="{floor + 18}" text-anchor="end">last</text>'
    yield (
        f'<text x="{_LEFT + _WIDTH / 2:.0f}" y="{floor + 18}" text-anchor="middle">grey: arguments '
        "and constants; above: values until their last use</text></svg>"
    )


def _bars(cost: Cost) -> Iterator[tuple[int, int, EquationCost]]:
    """First and last number of neighbouring equations, and the one with most memory among them."""
    count = len(cost.equations)
    step = -(-count // _MOST_BARS) or 1
    for first in range(0, count, step):
        group = cost.equations[first : first + step]
        yield first, first + len(group) - 1, max(group, key=lambda eqn: eqn.peak_bytes)


def _table(cost: Cost) -> Iterator[str]:
    rows = list(enumerate(cost.equations))
    title = f"All {len(rows)} equations" if len(rows) > 1 else "The equation"
    if len(rows) > _MOST_ROWS:
        largest = sorted(rows, key=lambda row: -row[1].peak_bytes)[:_MOST_ROWS]
        title = f"The {_MOST_ROWS} of {len(rows)} equations with most memory in use"
        rows = sorted(largest, key=lambda row: row[0])
    yield f'<details open><summary>{title}</summary><div class="wide" tabindex="0"><table>'
    yield (
        "<thead><tr><th>number</th><th>equation</th><th>memory in use</th><th>flop</th>"
        "<th>functions</th><th>bytes moved</th><th>line</th></tr></thead><tbody>"
    )
    for number, eqn in rows:
        kind = ' class="peak"' if eqn.peak_bytes == cost.peak_bytes else ""
        line = escape(str(eqn.source)) if eqn.source is not None else ""
        cells = "".join(
            f"<td>{text}</td>"
            for text in (
                f"{quantity(eqn.peak_bytes)}B",
                quantity(eqn.flops),
                quantity(eqn.transcendentals),
                f"{quantity(eqn.bytes)}B",
                line,
            )
        )
        yield f"<tr{kind}><td>{number + 1}</td><td>{escape(eqn.text)}</td>{cells}</tr>"
    yield "</tbody></table></div></details>"
