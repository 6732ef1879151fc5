"""``python -m tests.fuzz``: random cases for some minutes, or one case again.

Ends with status 1 if something was found. Failures are written to the folder ``--out``, each as a
small script and as a case for ``--replay``. A case that is mended goes to ``found/``, whose cases
the default tests judge again.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

from .common import NAMES, Failure, Kind, Report, Sandbox, check_seed, kind_named

PROGRESS_S = 60.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="time budget")
    parser.add_argument("--kind", default=",".join(NAMES), help="kinds, separated by commas")
    parser.add_argument("--seed", type=int, default=None, help="first seed; default: the clock")
    parser.add_argument("--count", type=int, default=None, help="cases of each kind, at most")
    parser.add_argument("--workers", type=int, default=2, help="processes that run cases")
    parser.add_argument("--out", type=Path, default=None, help="folder for failures")
    parser.add_argument("--replay", type=Path, default=None, help="judge this case only")
    parsed = parser.parse_args()
    unknown = sorted(set(parsed.kind.split(",")) - set(NAMES))
    if unknown:
        parser.error(f"no kind {unknown[0]!r}; there are {', '.join(NAMES)}")
    return parsed


def _replay(path: Path) -> int:
    saved = json.loads(path.read_text(encoding="utf-8"))
    with Sandbox() as sandbox:
        outcome = sandbox.judge(kind_named(saved["kind"]), case=saved["case"])
    print(outcome.signature or "passed", outcome.text, sep="\n")
    return int(bool(outcome.signature))


class _Campaign:
    """Workers that take seeds in turn, of the kind that has had the least time."""

    def __init__(self, kinds: list[Kind], first: int, count: int | None, out: Path) -> None:
        self.kinds = kinds
        self.next = dict.fromkeys((kind.name for kind in kinds), first)
        self.last = None if count is None else first + count
        self.out = out
        self.report = Report()
        self._lock = threading.Lock()

    def _take(self) -> tuple[Kind, int] | None:
        with self._lock:
            left = [k for k in self.kinds if self.last is None or self.next[k.name] < self.last]
            if not left:
                return None
            kind = min(left, key=lambda kind: self.report.seconds[kind.name])
            self.next[kind.name] += 1
            return kind, self.next[kind.name] - 1

    def _keep(self, failure: Failure) -> None:
        path = failure.write(self.out)
        print(f"FOUND {failure.kind} {failure.seed}: {failure.signature} -> {path}", flush=True)

    def work(self, end: float) -> None:
        """One worker, with a child process for each kind."""
        with ExitStack() as stack:
            sandboxes = {kind.name: stack.enter_context(Sandbox()) for kind in self.kinds}
            while time.monotonic() < end and (taken := self._take()) is not None:
                check_seed(sandboxes[taken[0].name], *taken, self.report, self._keep)


def main() -> int:
    """Run, print the summary, and return the status."""
    arguments = _arguments()
    if arguments.replay is not None:
        return _replay(arguments.replay)
    out = arguments.out or Path(tempfile.mkdtemp(prefix="functrans-fuzz-found-"))
    out.mkdir(parents=True, exist_ok=True)
    first = int(time.time()) * 1000 if arguments.seed is None else arguments.seed
    kinds = [kind_named(name) for name in arguments.kind.split(",")]
    campaign = _Campaign(kinds, first, arguments.count, out)
    print(f"seeds from {first}, failures in {out}", flush=True)
    end = time.monotonic() + 60 * arguments.minutes
    with ThreadPoolExecutor(arguments.workers) as pool:
        workers = [pool.submit(campaign.work, end) for _ in range(arguments.workers)]
        while wait(workers, PROGRESS_S).not_done:
            counts = campaign.report.counts
            cases = {name: counts[name]["cases"] for name in sorted(counts)}
            print(f"{cases}, {campaign.report.failures.total()} failures", flush=True)
    for worker in workers:
        worker.result()
    summary = campaign.report.summary()
    (out / "summary.txt").write_text(summary + "\n", encoding="utf-8")
    print(summary)
    return int(bool(campaign.report.failures))


if __name__ == "__main__":
    sys.exit(main())
