"""What a profiler has collected as a page: events over time, and a table by name.

Here: the page behind ``EventList.to_html``. Not here: the events (``autograd.profiler_events``),
the frame of a page (``debugging.documents``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from functrans.debugging.documents import HUES, document

_WIDTH, _ROW, _GAP = 1000, 18, 10
"""Of the picture, and heights of an event and between threads; pixels."""
_MOST_EVENTS, _MOST_ROWS = 3000, 60
_LETTER = 6.3

_STYLE = """
body { padding: 14px 20px 30px; } h1 { font-size: 17px; margin: 0; }
p { color: var(--quiet); margin: 2px 0 10px; }
svg { width: 100%; height: auto; display: block; background: var(--panel); }
svg text { font: 10.5px ui-monospace, Menlo, Consolas, monospace; fill: var(--text);
  pointer-events: none; }
rect { fill-opacity: .45; stroke: var(--panel); stroke-width: .5; }
g:hover > rect { fill-opacity: .8; stroke: var(--text); }
table { border-collapse: collapse; font: 12px/1.6 ui-monospace, Menlo, Consolas, monospace;
  margin-top: 14px; } th { font: 12px system-ui, sans-serif; color: var(--quiet); }
td, th { padding: 0 16px 0 0; text-align: right; }
td:first-child, th:first-child { text-align: left; }
""" + "\n".join(f".k{i} {{ fill: {hue}; }}" for i, hue in enumerate(HUES))


def events_page(
    events: Sequence[Any], averages: Sequence[Any], time: Callable[[float], str]
) -> str:
    """The page.

    Args:
      events: in the order in which they began; events taken together have no place in time, and
        are in the table only.
      averages: events taken together by name.
      time: text of a time in microseconds.
    """
    timed = [event for event in events if hasattr(event, "start")]
    total = sum(event.self_cpu_time_total for event in averages)
    body = [f"<h1>Profile</h1><p>{len(events)} events, own times {time(total)} in all</p>"]
    if timed:
        body += _picture(timed, time)
    body += _table(averages, total, time)
    return document("Profile", _STYLE, body)


def _depth(event: Any) -> int:
    depth = 0
    while event.parent is not None:
        event, depth = event.parent, depth + 1
    return depth


def _picture(events: Sequence[Any], time: Callable[[float], str]) -> Iterator[str]:
    """Events over time, nested ones below those that they are in, a band for each thread."""
    begin = min(event.start for event in events)
    span = max(event.end for event in events) - begin or 1.0
    longest = sorted(events, key=lambda event: -event.cpu_time_total)[:_MOST_EVENTS]
    threads: dict[int, dict[int, list[Any]]] = {}
    for event in longest:
        threads.setdefault(event.thread, {}).setdefault(_depth(event), []).append(event)
    heights = {thread: _ROW * (max(rows) + 1) for thread, rows in threads.items()}
    height = sum(heights.values()) + _GAP * len(heights)
    left_out = len(events) - len(longest)
    label = f"{len(longest)} events in {time(span)} on {len(threads)} threads"
    yield f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {_WIDTH} {height + 16}">'
    hues: dict[str, int] = {}
    y = 0
    for thread in sorted(threads):
        for depth, row in sorted(threads[thread].items()):
            for event in sorted(row, key=lambda event: event.start):
                hue = hues.setdefault(event.name, len(hues)) % len(HUES)
                yield from _drawn(event, hue, y + depth * _ROW, begin, span, time)
        y += heights[thread] + _GAP
    yield f'<text x="2" y="{height + 10}">0</text>'
    yield f'<text x="{_WIDTH - 2}" y="{height + 10}" text-anchor="end">{time(span)}</text></svg>'
    if left_out:
        yield f"<p>The {left_out} shortest events are not drawn.</p>"


def _drawn(
    event: Any, hue: int, y: float, begin: float, span: float, time: Callable[[float], str]
) -> Iterator[str]:
    x = _WIDTH * (event.start - begin) / span
    width = max(_WIDTH * event.cpu_time_total / span, 0.4)
    own = time(event.self_cpu_time_total)
    lines = [f"{event.name}: {time(event.cpu_time_total)}, own {own}"]
    lines += [f"shapes {event.input_shapes}"] if event.input_shapes else []
    lines += event.stack[:3]
    yield (
        f'<g><title>{escape(chr(10).join(lines))}</title><rect class="k{hue}" x="{x:.2f}" '
        f'y="{y:.0f}" width="{width:.2f}" height="{_ROW - 2}"/>'
    )
    letters = int((width - 6) / _LETTER)
    if letters >= 3:
        text = event.name if len(event.name) <= letters else event.name[: letters - 1] + "…"
        yield f'<text x="{x + 3:.2f}" y="{y + 12:.0f}">{escape(text)}</text>'
    yield "</g>"


def _table(averages: Sequence[Any], total: float, time: Callable[[float], str]) -> Iterator[str]:
    rows = sorted(averages, key=lambda event: -event.self_cpu_time_total)
    yield (
        "<table><thead><tr><th>name</th><th>own share</th><th>own time</th><th>time</th>"
        "<th>calls</th></tr></thead><tbody>"
    )
    for event in rows[:_MOST_ROWS]:
        share = 100 * event.self_cpu_time_total / total if total else 0.0
        yield (
            f"<tr><td>{escape(event.key)}</td><td>{share:.1f} %</td>"
            f"<td>{time(event.self_cpu_time_total)}</td><td>{time(event.cpu_time_total)}</td>"
            f"<td>{event.count}</td></tr>"
        )
    yield "</tbody></table>"
    if len(rows) > _MOST_ROWS:
        yield f"<p>and {len(rows) - _MOST_ROWS} more names</p>"
