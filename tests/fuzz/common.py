"""What all fuzzers share: cases, a sandbox, minimising, reports.

A *kind* of cases is a module of this package with an instance of a subclass of ``Kind`` named
``KIND``; its name stands in ``NAMES``. It says how a case is drawn from a generator, how it is
judged, and how it is made smaller::

    class Sums(Kind):
        name = "sums"

        def draw(self, rng):
            return {"steps": [int(n) for n in rng.integers(-5, 5, size=8)]}

        def run(self, case, counts):
            found = library_sum(case["steps"])
            counts["sums compared"] += 1
            if found != sum(case["steps"]):
                raise Finding("sum", f"{found} instead of {sum(case['steps'])}")

        def script(self, case):
            return f"print(library_sum({case['steps']}))"

    KIND = Sums()

A case is plain JSON that holds everything that ``run`` needs, and is drawn from (kind, seed) alone.
``run`` returns when nothing is wrong. It raises ``Finding`` when something is: the first argument
is the *signature*, one line without numbers that says which check failed and on what, equal for all
cases with one cause; the second is the text for people. Any other exception is a finding too, with
its type and place as signature. ``counts`` is a ``Counter`` of what was done, for the summary; a
case that the library may refuse, and does, is counted and returns.

``smaller`` yields smaller cases, the boldest first; a smaller case is taken when it fails with the
same signature. By default it leaves out parts of ``case["steps"]``. It runs outside of the sandbox,
``draw`` and ``run`` inside: in a child process in which a crash, a hang (``timeout_s`` seconds in
one case) or more than ``MEMORY_BYTES`` is a finding as well. Many cases share one child, so ``run``
must leave no state behind; a failure that needs the cases before it is reported with their seeds.
``prepare`` is called once in each child.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

NAMES = (
    *("programs", "batches", "expressions", "derivatives", "slopes", "writes"),
    *("jaxprs", "files", "imperative", "kills"),
)
"""All kinds, each a module of this package."""

FOUND = Path(__file__).parent / "found"
"""Cases that failed once, as JSON; default tests replay them."""

_TESTS = Path(__file__).parents[1]

MEMORY_BYTES = 12 << 30
MINIMISE_RUNS = 300
MINIMISE_S = 60.0
WRITTEN_PER_SIGNATURE = 3

Case = dict[str, Any]


class Finding(Exception):  # noqa: N818  # it is a result, not an error of the fuzzer
    """Something is wrong: ``Finding(signature, text)``."""


class Kind(ABC):
    """One kind of cases; see the module's docstring."""

    name: str
    timeout_s: float = 120.0
    cases_per_child: int = 500

    def prepare(self) -> None:  # noqa: B027  # nothing to do is the usual case
        """Called once in a child process, before its first case."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Case:
        """A random case."""

    @abstractmethod
    def run(self, case: Case, counts: Counter[str]) -> None:
        """Judge a case; raises ``Finding``."""

    def smaller(self, case: Case) -> Iterator[Case]:
        """Smaller cases to try, the boldest first."""
        for steps in shorter(case["steps"]):
            yield {**case, "steps": steps}

    @abstractmethod
    def script(self, case: Case) -> str:
        """A Python script of its own that shows the case."""


def kind_named(name: str) -> Kind:
    """The kind of this name."""
    kind: Kind = importlib.import_module(f".{name}", __package__).KIND
    return kind


def generator(name: str, seed: int) -> np.random.Generator:
    """The generator that a case is drawn from."""
    return np.random.default_rng([zlib.crc32(name.encode()), seed])


def shorter(steps: list[Any]) -> Iterator[list[Any]]:
    """Lists without some consecutive part: halves, quarters, ... single steps from the end."""
    size = len(steps)
    while size > 1:
        size = (size + 1) // 2
        for end in range(len(steps), 0, -size):
            rest = steps[: max(0, end - size)] + steps[end:]
            if rest:
                yield rest


# judging in this process ------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a case.

    Attributes:
      signature: of what is wrong; empty if nothing is.
      text: for people.
      counts: what was done.
    """

    signature: str = ""
    text: str = ""
    counts: Counter[str] = field(default_factory=Counter)


def judge(kind: Kind, case: Case) -> Outcome:
    """Run a case in this process."""
    counts: Counter[str] = Counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A program that should have been compiled, and is not, would not be tested.
            warnings.filterwarnings("error", ".*it could not be compiled")
            kind.run(case, counts)
    except Finding as finding:
        return Outcome(*finding.args, counts)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name} {place.name}"
        text = "".join(traceback.format_exception(error))
        return Outcome(f"raises {type(error).__name__} in {where}", text, counts)
    return Outcome("", "", counts)


def serve(requests: Any, replies: Any) -> None:
    """The loop of a child process: one JSON line in, one out."""
    prepared: dict[str, Kind] = {}
    for line in requests:
        request = json.loads(line)
        name = request["kind"]
        if name not in prepared:
            prepared[name] = kind_named(name)
            prepared[name].prepare()
        kind = prepared[name]
        case = request.get("case")
        if case is None:
            case = kind.draw(generator(name, request["seed"]))
        if request.get("draw"):
            reply: Any = case
        else:
            outcome = judge(kind, case)
            reply = [outcome.signature, outcome.text, outcome.counts]
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


# the sandbox ------------------------------------------------------------------------------------


class Died(Exception):  # noqa: N818  # it is a result, not an error of the fuzzer
    """The child ended or hung: ``Died(signature, text)``."""


class Sandbox:
    """A child process that judges cases, replaced when it dies; a context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="functrans-fuzz-")
        self._child: subprocess.Popen[bytes] | None = None
        self.history: list[str] = []
        """The cases that the child ran, the last one last."""

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    @property
    def _log(self) -> Path:
        return Path(self._folder.name) / "stderr"

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*map(str, (Path.cwd(), _TESTS)), *sys.path]),
            "FUNCTRANS_CACHE_DIR": str(Path(self._folder.name) / "cache"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", f"{__package__}.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self._folder.name,
            )
        self.history = []
        return self._child

    def stop(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def ask(self, timeout_s: float, **request: Any) -> Any:
        """One request; raises ``Died``."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        self.history.append(f"{request['kind']} {request.get('seed', 'given')}")
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
            line = _read_line(child.stdout.fileno(), timeout_s)
        except TimeoutError:
            child.send_signal(signal.SIGABRT)  # faulthandler writes where it hangs
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
            self.stop()
            raise Died("hangs", f"no end after {timeout_s} s\n{self._tail()}") from None
        except (EOFError, BrokenPipeError):
            code = child.wait()
            name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            self.stop()
            raise Died(f"dies of {name}", self._tail()) from None
        return json.loads(line)

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def judge(self, kind: Kind, *, seed: int | None = None, case: Case | None = None) -> Outcome:
        """Run the case of a seed, or one that is given."""
        given = {"seed": seed} if case is None else {"case": case}
        if len(self.history) >= kind.cases_per_child:
            self.stop()
        try:
            signature, text, counts = self.ask(kind.timeout_s, kind=kind.name, **given)
        except Died as died:
            if _is_in_plain_numpy(died.args[1]):
                return Outcome(counts=Counter({"NumPy did not return": 1}))
            return Outcome(*died.args)
        return Outcome(signature, text, Counter(counts))

    def draw(self, kind: Kind, seed: int) -> Case:
        """The case of a seed; raises ``Died``."""
        case: Case = self.ask(kind.timeout_s, kind=kind.name, seed=seed, draw=True)
        return case


def _is_in_plain_numpy(log: str) -> bool:
    """Whether a child was still drawing its case, in NumPy, by the stack that it left.

    LAPACK's decompositions may not come back from what they overflow in.
    """
    _, _, stack = log.rpartition("most recent call first")
    return " in draw" in stack and str(_TESTS.parent / "functrans") not in stack


def _read_line(descriptor: int, timeout_s: float) -> bytes:
    end = time.monotonic() + timeout_s
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(descriptor, 1 << 20)
        if not part:
            raise EOFError
        data += part
    return data


# failures ---------------------------------------------------------------------------------------


@dataclass
class Failure:
    """A case that failed, made small.

    Attributes:
      kind: its name.
      seed: that it was drawn from.
      signature: see the module's docstring.
      text: for people.
      case: the smallest that fails alike; None if even drawing it ends the process.
      needs: seeds that ran before in the same child, if it does not fail alone.
    """

    kind: str
    seed: int
    signature: str
    text: str
    case: Case | None
    needs: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the case as JSON, and as a script beside it."""
        path = folder / f"{self.kind}-{self.seed}.json"
        path.write_text(json.dumps(vars(self), indent=1) + "\n", encoding="utf-8")
        if self.case is not None:
            comment = "".join(f"# {line}\n" for line in (self.signature, *self.text.splitlines()))
            script = kind_named(self.kind).script(self.case)
            path.with_suffix(".py").write_text(f"{comment}{script}\n", encoding="utf-8")
        return path


def minimised(sandbox: Sandbox, kind: Kind, case: Case, outcome: Outcome) -> tuple[Case, Outcome]:
    """The smallest case found that fails with the same signature."""
    end = time.monotonic() + MINIMISE_S
    runs = 0
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in kind.smaller(case):
            runs += 1
            if runs > MINIMISE_RUNS or time.monotonic() > end:
                return case, outcome
            found = sandbox.judge(kind, case=candidate)
            if found.signature == outcome.signature:
                case, outcome, shrunk = candidate, found, True
                break
    return case, outcome


def examined(sandbox: Sandbox, kind: Kind, seed: int, outcome: Outcome) -> Failure:
    """Reproduce a failure in a new child and make it small."""
    before = tuple(sandbox.history[:-1])
    sandbox.stop()
    failure = Failure(kind.name, seed, outcome.signature, outcome.text, None)
    try:
        case = sandbox.draw(kind, seed)
    except Died:
        return failure
    failure.case = case
    if sandbox.judge(kind, case=case).signature != outcome.signature:
        failure.needs = before
        return failure
    failure.case, small = minimised(sandbox, kind, case, outcome)
    failure.text = small.text
    return failure


# campaigns --------------------------------------------------------------------------------------


@dataclass
class Report:
    """What a campaign did: counts by kind, seconds by kind, and failures by kind and signature."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], list[Failure]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, name: str, outcome: Outcome, seconds: float) -> bool:
        """Count a case; whether its failure is to be examined."""
        with self.lock:
            counts = self.counts.setdefault(name, Counter())
            counts.update(outcome.counts)
            counts["cases"] += 1
            counts["cases, " + ("failed" if outcome.signature else "passed")] += 1
            self.seconds[name] += seconds
            if not outcome.signature:
                return False
            self.failures[name, outcome.signature] += 1
            return self.failures[name, outcome.signature] <= WRITTEN_PER_SIGNATURE

    def summary(self) -> str:
        """All counts, one line each."""
        lines = []
        for name in sorted(self.counts):
            lines.append(f"{name}: {self.seconds[name]:.0f} s")
            lines += [f"  {n:9d} {what}" for what, n in sorted(self.counts[name].items())]
        lines.append(f"{self.failures.total()} failures, {len(self.failures)} different ones")
        for (name, signature), n in sorted(self.failures.items()):
            seeds = ", ".join(str(f.seed) for f in self.examples.get((name, signature), ()))
            lines.append(f"  {n:6d} {name}: {signature} (seeds {seeds})")
        return "\n".join(lines)


def check_seed(
    sandbox: Sandbox, kind: Kind, seed: int, report: Report, keep: Callable[[Failure], None]
) -> None:
    """Judge one case and note what became of it; a new failure is made small and kept."""
    began = time.monotonic()
    outcome = sandbox.judge(kind, seed=seed)
    if report.note(kind.name, outcome, time.monotonic() - began):
        failure = examined(sandbox, kind, seed, outcome)
        report.examples.setdefault((kind.name, outcome.signature), []).append(failure)
        keep(failure)
