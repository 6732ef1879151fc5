"""Command line: ``python -m tests.benchmarks``; see ``README.md``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.benchmarks import report, rounds, startup
from tests.benchmarks.record import ProcessWorkload, Workload
from tests.benchmarks.report import Outcome
from tests.benchmarks.rounds import Settings
from tests.benchmarks.workloads import ALL

QUICK: dict[str, Any] = {
    "rounds": 3,
    "block_s": 0.02,
    "budget_s": 1.0,
    "processes": 1,
    "first_call_timeout_s": 20.0,
}
QUICK_PROCESSES = 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Run functrans beside autograd, torch, jax and hand-written numba code.",
    )
    default = Settings()
    add = parser.add_argument
    add("--list", action="store_true", help="print the workloads and their contenders")
    add("--only", action="append", metavar="PATTERN", help="workloads, by substring or glob")
    add("--libraries", metavar="NAMES", help="comma-separated libraries or labels (jax-jit)")
    add("--quick", action="store_true", help="one process, 3 short rounds, 20 s per first call")
    add("--rounds", type=int, help=f"timed blocks per contender (default {default.rounds})")
    add("--block", type=float, metavar="S", help=f"seconds per block ({default.block_s})")
    add("--budget", type=float, metavar="S", help=f"seconds per contender ({default.budget_s})")
    add("--processes", type=int, help=f"processes per contender ({default.processes})")
    add("--threads", type=int, default=1, help="threads per library (1)")
    add("--busy", type=int, default=0, metavar="N", help="processes that compute beside (0)")
    add("--first-call-timeout", type=float, metavar="S", help="cut first calls off earlier")
    add("--warm-cache", action="store_true", help="first calls find a filled disk cache")
    add("--seed", type=int, default=0, help="seed of the inputs (0)")
    add("--json", type=Path, metavar="FILE", help="write all numbers")
    add("--markdown", type=Path, metavar="FILE", help="write the tables for the documentation")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    given = {
        "rounds": options.rounds,
        "block_s": options.block,
        "budget_s": options.budget,
        "processes": options.processes,
        "first_call_timeout_s": options.first_call_timeout,
    }
    chosen = dict(QUICK) if options.quick else {}
    chosen |= {name: value for name, value in given.items() if value is not None}
    return Settings(
        **chosen,
        threads=options.threads,
        busy=options.busy,
        warm_cache=options.warm_cache,
        seed=options.seed,
    )


def _is_chosen(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(p in name or fnmatch(name, p) for p in patterns)


def _labels(workload: Workload | ProcessWorkload) -> list[str]:
    if isinstance(workload, ProcessWorkload):
        return list(workload.statements)
    return [contender.label for contender in workload.contenders]


def _admitted(workload: Workload | ProcessWorkload, options: argparse.Namespace) -> list[str]:
    """Labels of the contenders that ``--libraries`` lets in."""
    labels = _labels(workload)
    if not options.libraries:
        return labels
    names = options.libraries.split(",")
    return [label for label in labels if label in names or label.split("-")[0] in names]


def _progress(name: str, message: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{name}: {message}", end="", file=sys.stderr, flush=True)


def _run(workload: Workload | ProcessWorkload, options: argparse.Namespace) -> Outcome:
    settings = _settings(options)
    admitted = _admitted(workload, options)

    def progress(message: str) -> None:
        _progress(workload.name, message)

    if isinstance(workload, ProcessWorkload):
        repeats = QUICK_PROCESSES if options.quick else workload.repeats
        timed = startup.measure(workload, admitted, repeats, settings.threads, progress)
        return Outcome(workload, tuple(timed), None)
    chosen = [contender for contender in workload.contenders if contender.label in admitted]
    measurements, agreement = rounds.measure(workload, chosen, settings, progress)
    return Outcome(workload, tuple(measurements), agreement)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen workloads; return 1 if results disagree, 2 if nothing was chosen."""
    options = _parser().parse_args(arguments)
    workloads = [each for each in ALL if _is_chosen(each.name, options.only)]
    workloads = [each for each in workloads if _admitted(each, options)]
    if options.list:
        for each in workloads:
            print(f"{each.name}: {each.description}\n    {' '.join(_admitted(each, options))}")
        return 0
    if not workloads:
        print("no workload matches; see --list", file=sys.stderr)
        return 2
    outcomes: list[Outcome] = []
    for each in workloads:
        outcomes.append(_run(each, options))
        _progress(each.name, "\r\x1b[K")
        print(report.text(outcomes[-1]), flush=True)
        _write(outcomes, options)
    disagree = [o.workload.name for o in outcomes if o.agreement and o.agreement.mismatches]
    if disagree:
        print(f"RESULTS DISAGREE in {', '.join(disagree)}", file=sys.stderr)
    return 1 if disagree else 0


def _write(outcomes: Sequence[Outcome], options: argparse.Namespace) -> None:
    """Write the files after each workload, so that an interrupted run leaves what it has."""
    settings = _settings(options)
    if options.json:
        text = json.dumps(report.document(outcomes, settings), indent=1)
        options.json.write_text(text + "\n")
    if options.markdown:
        options.markdown.write_text(report.markdown(outcomes, settings))


if __name__ == "__main__":
    sys.exit(main())
