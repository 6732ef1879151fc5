"""Turn measurements into text, Markdown and JSON.

Layer: above ``rounds``; no measuring here.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.agreement import Agreement
from tests.benchmarks.record import ProcessWorkload, Workload
from tests.benchmarks.rounds import Measurement, Settings

SUBJECT = "functrans"
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything known about one workload after it ran."""

    workload: Workload | ProcessWorkload
    measurements: tuple[Measurement, ...]
    agreement: Agreement | None


def duration(seconds: float | None) -> str:
    """Three significant digits with a unit; ``-`` for ``None``."""
    if seconds is None:
        return "-"
    scale, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    return f"{seconds / scale:#.3g}".rstrip(".") + f" {unit}"


def _quotient(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def _times(ratio: float) -> str:
    """Three significant digits at most, two decimals at most."""
    return f"{ratio:.3g}" if ratio >= 10.0 or ratio < 0.01 else f"{ratio:.2f}"


def ratios(outcome: Outcome) -> dict[str, dict[str, dict[str, float]]]:
    """Time of each functrans contender over that of every other: medians and minima."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for ours in outcome.measurements:
        if not ours.label.startswith(SUBJECT):
            continue
        for peer in outcome.measurements:
            median = _quotient(ours.median(), peer.median())
            minimum = _quotient(ours.minimum(), peer.minimum())
            if peer is not ours and median is not None and minimum is not None:
                pair = {"median": median, "minimum": minimum}
                first = _quotient(ours.first_call(), peer.first_call())
                if first is not None:
                    pair["first_call"] = first
                table.setdefault(ours.label, {})[peer.label] = pair
    return table


def first_call(measurement: Measurement) -> str:
    """First call, or the limit that cut it off."""
    if measurement.status == "timeout" and not measurement.first_call_s:
        return measurement.reason.removeprefix("first_call ")
    return duration(measurement.first_call())


def _grid(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def text(outcome: Outcome) -> str:
    """Return the report of one workload for the terminal."""
    table = ratios(outcome)
    rows = [["contender", "median", "minimum", "first call", "imports", *table]]
    notes = []
    for each in outcome.measurements:
        row = [each.label, duration(each.median()), duration(each.minimum()), first_call(each)]
        row.append(duration(each.imports()))
        for peers in table.values():
            pair = peers.get(each.label)
            row.append(f"{_times(pair['median'])} ({_times(pair['minimum'])})" if pair else "-")
        rows.append(row)
        if each.status != "ok":
            notes.append(f"  {each.label}: {each.status}: {each.reason}")
    title = f"{outcome.workload.name}: {outcome.workload.description}"
    busy = [(each.label, each.cores()) for each in outcome.measurements]
    notes += [f"  {label}: {n:.1f} cores busy" for label, n in busy if n is not None and n > 1.2]
    return "\n".join([title, _grid(rows), *notes, *_agreement_lines(outcome), ""])


def _agreement_lines(outcome: Outcome) -> list[str]:
    agreement, workload = outcome.agreement, outcome.workload
    if agreement is None or isinstance(workload, ProcessWorkload):
        return []
    if agreement.mismatches:
        return ["  RESULTS DISAGREE", *(f"    {line}" for line in agreement.mismatches)]
    if agreement.contenders < 2:
        return [f"  {agreement.contenders} result(s): nothing to compare"]
    return [
        f"  results agree to {agreement.largest:.0e} (tolerance {workload.rtol:.0e}, "
        f"{workload.dtype})"
    ]


def environment(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Processor, interpreter, versions and load, as far as known."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    versions = {
        each.label.split("-")[0]: each.version
        for outcome in outcomes
        for each in outcome.measurements
        if each.version
    }
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
        "load": os.getloadavg(),
    }


def document(outcomes: Sequence[Outcome], settings: Settings) -> dict[str, Any]:
    """Return everything, ready for JSON; seconds and bytes throughout."""
    workloads = []
    for outcome in outcomes:
        contenders = [
            dataclasses.asdict(each)
            | {
                "median_s": each.median(),
                "minimum_s": each.minimum(),
                "median_first_call_s": each.first_call(),
                "median_first_call_with_imports_s": each.first_call_with_imports(),
            }
            for each in outcome.measurements
        ]
        record: dict[str, Any] = {
            "name": outcome.workload.name,
            "description": outcome.workload.description,
            "contenders": contenders,
            "ratios": ratios(outcome),
        }
        if isinstance(outcome.workload, Workload) and outcome.agreement is not None:
            record |= {"dtype": outcome.workload.dtype, "rtol": outcome.workload.rtol}
            record["agreement"] = dataclasses.asdict(outcome.agreement)
        workloads.append(record)
    chosen = dataclasses.asdict(settings)
    if settings.first_call_timeout_s == float("inf"):
        chosen["first_call_timeout_s"] = None
    return {
        "environment": environment(outcomes),
        "settings": chosen,
        "workloads": workloads,
    }


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def _columns(outcomes: Sequence[Outcome]) -> list[str]:
    labels = (each.label for outcome in outcomes for each in outcome.measurements)
    return list(dict.fromkeys(labels))


def markdown(outcomes: Sequence[Outcome], settings: Settings) -> str:
    """Return the tables for the documentation: time per call, ratios, first call."""
    facts = environment(outcomes)
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    processes = [o for o in outcomes if isinstance(o.workload, ProcessWorkload)]
    calls = [o for o in outcomes if isinstance(o.workload, Workload)]
    labels = _columns(calls)

    def cells(outcome: Outcome, show: Any) -> list[str]:
        known = {each.label: each for each in outcome.measurements}
        shown = [show(known[label]) if label in known else "" for label in labels]
        return [f"`{outcome.workload.name}`", *shown]

    parts = [
        f"{facts['processor']}, {settings.threads} thread(s) each, Python {facts['python']}; "
        f"{versions}.",
        "## Time per call (median)",
        _markdown_table(
            ["workload", *labels],
            [cells(o, lambda m: duration(m.median()) if m.block_s else m.status) for o in calls],
        ),
        "## First call in a fresh process (trace, compile, run; without imports)",
        _markdown_table(["workload", *labels], [cells(o, first_call) for o in calls]),
        *_markdown_ratios(calls, labels),
    ]
    for outcome in processes:
        rows = [
            [each.label, duration(each.minimum()), duration(each.median())]
            for each in outcome.measurements
        ]
        parts += [
            f"## {outcome.workload.description.capitalize()}",
            _markdown_table(["library", "minimum", "median"], rows),
        ]
    parts.append("## Workloads")
    parts.append("\n".join(f"- `{o.workload.name}`: {o.workload.description}" for o in outcomes))
    return "\n\n".join(parts) + "\n"


def _markdown_ratios(outcomes: Sequence[Outcome], labels: Sequence[str]) -> list[str]:
    peers = [label for label in labels if not label.startswith(SUBJECT)]
    rows = []
    for outcome in outcomes:
        for ours, pairs in ratios(outcome).items():
            shown = [_times(pairs[p]["median"]) if p in pairs else "" for p in peers]
            rows.append([f"`{outcome.workload.name}`", ours, *shown])
    if not rows:
        return []
    title = "## Time of functrans over that of each peer (medians; below 1 functrans is faster)"
    return [title, _markdown_table(["workload", "functrans", *peers], rows)]
