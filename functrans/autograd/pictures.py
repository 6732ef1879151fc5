"""The recorded program as a picture: an SVG of boxes and arrows in a page of HTML.

Here: ``drawn_as_html`` and the layout. Not here: the program (``autograd.listing``), Graphviz
(``Jaxpr.to_dot``).

The layout is that of layered graphs: a box stands in a row below all that it reads, an argument
just above its first reader. Where an arrow passes a row, it has a lane there, which takes part in
the order and in the spacing of the row, so that no arrow runs behind a box. The order of a row
follows the mean position of the neighbours, a few sweeps down and up.

Layer: ``autograd``. Reference: Sugiyama, Tagawa & Toda (1981), IEEE Trans. SMC 11(2).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from functrans.autograd.listing import recorded_program
from functrans.control.native import jit_p
from functrans.core.annotations import TRACED_HOOK, When
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.debugging.documents import document
from functrans.ir.printing import annotation_text, atom_text, equation_line, variable_names
from functrans.passes.nodes import Node
from functrans.records import dataclass, field

_LETTER, _LINE, _MARGIN = 7.3, 18, 16  # width, height, around the picture; pixels
_APART, _BETWEEN = 24, 38  # between boxes of a row, between rows
_SWEEPS = 6
_MAX_LANES = 20_000
"""Beyond that arrows run straight."""

_STYLE = """
body { padding: 14px 20px 30px; } p { color: var(--quiet); margin: 2px 0 10px; }
text, pre { font: 12px ui-monospace, Menlo, Consolas, monospace; }
.wide { overflow-x: auto; } text { fill: var(--text); }
rect { fill: var(--panel); stroke: var(--quiet); }
rect.argument { stroke: var(--name); stroke-width: 2; stroke-dasharray: 6 3; }
rect.result { stroke: var(--scope); stroke-width: 2.5; }
rect.hooked { stroke: var(--note); stroke-width: 3; stroke-dasharray: none; }
path { fill: none; stroke: var(--quiet); stroke-width: 1.2; }
marker path { fill: var(--quiet); stroke: none; }
.note { fill: var(--quiet); }
"""
_LEGEND = (
    "Blue and dashed: arguments. Green: results. Red: hooks or retain_grad. Values flow downwards."
)


@dataclass(slots=True, eq=False)
class Place:
    """A box, or a lane that an arrow takes through a row.

    Attributes:
      lines: text; none of a lane.
      kind: classes of the box.
      row: number of its row.
      above: what it reads from, in the row before.
      below: what reads it, in the next row.
      x: centre.
      y: upper edge.
      reach: height of its row.
    """

    lines: Sequence[str]
    kind: str
    row: int
    above: list[Place] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    reach: float = 0.0

    @property
    def width(self) -> float:
        """Of the box; a lane is narrow."""
        return _LETTER * max(map(len, self.lines)) + 20 if self.lines else 4.0

    @property
    def height(self) -> float:
        """Of the box; a lane is as high as its row."""
        return _LINE * len(self.lines) + 8 if self.lines else self.reach


def drawn_as_html(roots: Sequence[Node]) -> str:
    """The graph below nodes as a page of HTML: a picture and the program.

    Values flow downwards. Nothing is loaded from elsewhere.
    """
    jaxpr = recorded_program(roots)
    boxes = _boxes(jaxpr)
    width, height = _arrange(boxes)
    shapes = [text for box in boxes for text in (*_arrows(box), *_drawn(box))]
    for box in boxes:  # no cycles are left
        box.above.clear()
        box.below.clear()
    label = f"The graph of {jaxpr.name}: {len(jaxpr.eqns)} operations; its program is below"
    body = [
        f"<p>{_LEGEND}</p>",
        f'<div class="wide" tabindex="0"><svg role="img" aria-label="{html.escape(label)}" '
        f'width="{width:.0f}" height="{height:.0f}">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        *shapes,
        "</svg></div>",
        f'<pre class="wide" tabindex="0">{html.escape(str(jaxpr))}</pre>',
    ]
    return document(jaxpr.name, _STYLE, body)


# boxes -------------------------------------------------------------------------------------------


def _boxes(jaxpr: Jaxpr) -> list[Place]:
    """Arguments, equations and results, each in a row below all that it reads."""
    names = variable_names(jaxpr)
    home: dict[Any, Place] = {}
    reads: list[tuple[Place, list[Place]]] = []

    def box(text: str, kind: str, inputs: Sequence[Any], places: Sequence[Any]) -> Place:
        sources = [home[atom] for atom in dict.fromkeys(inputs) if atom in home]
        noted = [p for p in places if p in jaxpr.annotations]
        lines = [text, *[annotation_text(jaxpr.annotations[p]) for p in noted]]
        notes = [note for p in noted for note in jaxpr.annotations[p]]
        if any(note.kind.when is not When.NEVER or note.kind is TRACED_HOOK for note in notes):
            kind += " hooked"
        made = Place(lines, kind, 1 + max((source.row for source in sources), default=-1))
        reads.append((made, sources))
        return made

    arguments = (*jaxpr.constvars, *jaxpr.invars)
    for var in arguments:
        home[var] = box(f"{names[var]}:{var.aval}", "argument", (), (var,))
    for eqn in jaxpr.eqns:
        made = box(_text(eqn, names), "equation", eqn.inputs, (*eqn.outputs, eqn))
        home.update(dict.fromkeys(eqn.outputs, made))
    box(", ".join([atom_text(a, names) for a in jaxpr.outvars]), "result", jaxpr.outvars, ())
    first: dict[Place, int] = {}
    for made, sources in reads:
        for source in sources:
            first[source] = min(first.get(source, made.row), made.row)
    for var in arguments:
        home[var].row = max(first.get(home[var], 1) - 1, 0)
    count = sum(made.row - source.row - 1 for made, sources in reads for source in sources)
    boxes = [made for made, _ in reads]
    lanes: dict[tuple[Place, int], Place] = {}
    for made, sources in reads:
        for source in sources:
            _connect(source, made, lanes if count <= _MAX_LANES else None)
    return [*boxes, *lanes.values()]


def _text(eqn: Equation, names: Any) -> str:
    """An equation on one line; the name of an operation stands for its program."""
    if eqn.primitive is not jit_p:
        return equation_line(eqn, names)
    outputs = " ".join(f"{atom_text(v, names)}:{v.aval}" for v in eqn.outputs)
    inputs = [atom_text(a, names) for a in eqn.inputs]
    return " ".join([outputs, "=", str(eqn.params["name"]), *inputs])


def _connect(source: Place, target: Place, lanes: dict[tuple[Place, int], Place] | None) -> None:
    """Lead an arrow from row to row; arrows from one box share their lanes."""
    at = source
    for row in range(source.row + 1, target.row if lanes is not None else 0):
        assert lanes is not None
        lane = lanes.get((source, row))
        if lane is None:
            lane = lanes[source, row] = Place((), "lane", row, [at])
            at.below.append(lane)
        at = lane
    at.below.append(target)
    target.above.append(at)


# layout ------------------------------------------------------------------------------------------


def _arrange(places: Sequence[Place]) -> tuple[float, float]:
    """Give all places their coordinates.

    Returns:
      Width and height of the picture.
    """
    rows: list[list[Place]] = [[] for _ in range(1 + max(place.row for place in places))]
    for place in places:
        rows[place.row].append(place)
    y = float(_MARGIN)
    for row in rows:
        reach = max(place.height for place in row)
        for i, place in enumerate(row):
            place.x, place.y, place.reach = float(i), y, reach
        y += reach + _BETWEEN
    for _ in range(_SWEEPS):
        for row in rows[1:]:
            _reorder(row, "above")
        for row in reversed(rows[:-1]):
            _reorder(row, "below")
    for row in rows:
        x = 0.0
        for place in row:
            place.x = x + place.width / 2
            x += place.width + _APART
    for _ in range(_SWEEPS):
        for row in rows[1:]:
            _space(row, "above")
        for row in reversed(rows[:-1]):
            _space(row, "below")
    left = min(place.x - place.width / 2 for place in places) - _MARGIN
    for place in places:
        place.x -= left
    right = max(place.x + place.width / 2 for place in places)
    return right + _MARGIN, y - _BETWEEN + _MARGIN


def _reorder(row: list[Place], side: str) -> None:
    """Order a row by the mean position of the neighbours on one side."""
    wanted = {place: _mean(getattr(place, side), place.x) for place in row}
    row.sort(key=wanted.__getitem__)
    for i, place in enumerate(row):
        place.x = float(i)


def _space(row: list[Place], side: str) -> None:
    """Move the places of a row below or above their neighbours, in their order and apart.

    The mean of the leftmost and the rightmost arrangement that keep the distances keeps them, too.
    """
    wanted = [_mean(getattr(place, side), place.x) for place in row]
    apart = [(a.width + b.width) / 2 + _APART for a, b in pairwise(row)]
    lower, upper = wanted[:], wanted[:]
    for i, distance in enumerate(apart):
        lower[i + 1] = max(lower[i + 1], lower[i] + distance)
    for i in range(len(apart) - 1, -1, -1):
        upper[i] = min(upper[i], upper[i + 1] - apart[i])
    for place, low, high in zip(row, lower, upper, strict=True):
        place.x = (low + high) / 2


def _mean(places: Sequence[Place], default: float) -> float:
    return sum(place.x for place in places) / len(places) if places else default


# shapes ------------------------------------------------------------------------------------------


def _drawn(place: Place) -> list[str]:
    if not place.lines:
        return []
    x, y = place.x - place.width / 2, place.y
    texts = [
        f'<rect class="{place.kind}" x="{x:.0f}" y="{y:.0f}" width="{place.width:.0f}" '
        f'height="{place.height:.0f}" rx="4"/>'
    ]
    for i, line in enumerate(place.lines):
        note = ' class="note"' if i else ""
        at = f'x="{x + 10:.0f}" y="{y + _LINE * (i + 0.95):.0f}"'
        texts.append(f"<text {at}{note}>{html.escape(line)}</text>")
    return texts


def _arrows(place: Place) -> list[str]:
    """The arrows into a box, side by side in the order in which they come; a piece of a lane."""
    sources = sorted(place.above, key=lambda source: source.x)
    texts = []
    for i, source in enumerate(sources):
        share = (i + 1) / (len(sources) + 1) - 0.5 if place.lines else 0.0
        start, end = source.x, place.x + place.width * share
        top, bottom = source.y + source.height, place.y
        bend = min((bottom - top) / 2, _BETWEEN)
        way = (
            f"M{start:.0f} {top:.0f}C{start:.0f} {top + bend:.0f} {end:.0f} {bottom - bend:.0f} "
            f"{end:.0f} {bottom:.0f}"
        )
        if place.lines:
            texts.append(f'<path d="{way}" marker-end="url(#head)"/>')
        else:
            texts.append(f'<path d="{way}V{bottom + place.height:.0f}"/>')
    return texts
