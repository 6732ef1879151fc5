"""Programs on both sides, and what differs."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from .writing import FAMILIES, FUNCTIONS, Writer

REFUSED = 0.2
"""Share kept of the statements that PyTorch refuses."""
OFFERED_HERE = (
    "must override the setup_context",  # a Function without it has derivatives under transforms
    "inplace arithmetic(self, *extra_args)",  # in vmap: what was made inside gets a batch axis
    "fill_(self, *extra_args)",
    "is not possible because there exists a Tensor",
    "inside of a function being transformed by a functorch transform",  # requires_grad_, backward
    "to a single memory location",  # operands are read before; results have their own memory
    "allowed under vmap transform",  # of .data
    "inside functorch transform is not allowed",
    "Nested forward mode AD is not supported",  # jacfwd within a dual level
)
"""Words of refusals of PyTorch's of what is offered here: such programs end there."""
OF_ONE_EXAMPLE = "doesn't match the broadcast shape"
"""With an arithmetic write to what was made inside of ``vmap``, where there is one example."""
LARGE = 1e8
"""Beyond, rounding decides."""


def _first(value: Any) -> Any:
    while isinstance(value, (list, tuple)):
        value = value[0]
    return value


def _read(torch: Any, value: Any) -> Any:
    """What of a value is compared: numbers and what it says of itself."""
    if isinstance(value, torch.Tensor):
        told: list[Any] = [str(value.dtype), tuple(value.shape)]
        try:
            told += [value.requires_grad, value.is_leaf]
            with torch.no_grad():
                return [*told, np.array(value.detach().tolist())]
        except (RuntimeError, MemoryError):
            return "refused"
    if isinstance(value, (list, tuple)):
        return [_read(torch, item) for item in value]
    if callable(value) or hasattr(value, "remove"):
        return "object"
    return value


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        if ours.shape != theirs.shape:
            return False
        with np.errstate(all="ignore"):
            size = np.max(np.abs(theirs), initial=1.0, where=np.isfinite(theirs))
            near = {"rtol": 1e-5 if size > LARGE else 1e-7, "atol": 1e-9 * max(size, 1.0)}
            return bool(np.allclose(ours, theirs, **near, equal_nan=True))
    if "refused" in [x for x in (ours, theirs) if isinstance(x, str)]:
        return True
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


class Side:
    """A namespace in which statements run; ``log`` is what hooks noted."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.log: list[Any] = []
        self.names: dict[str, Any] = {
            "torch": torch, "np": np, "note": self._note, "first": _first, "__name__": "program",
        }  # fmt: skip
        exec(FUNCTIONS, self.names)
        self.own = set(self.names)

    def _note(self, name: str, value: Any) -> None:
        self.log.append([name, _read(self.torch, value)])

    def run(self, statement: str) -> BaseException | None:
        """The exception, if there was one."""
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                exec(compile(statement, "program", "exec"), self.names)
            except Exception as error:
                return error
        return None

    @staticmethod
    def lines(error: BaseException) -> list[int]:
        """The statement's lines that led to the exception, the outermost first."""
        frames = traceback.walk_tb(error.__traceback__)
        return [line for frame, line in frames if frame.f_code.co_filename == "program"]

    def progress(self, statement: str) -> int:
        """How many lines run until the statement ends, those of its functions among them."""
        count = 0

        def counted(frame: FrameType, event: str, _: object) -> Any:
            nonlocal count
            if frame.f_code.co_filename != "program":
                return None
            count += event == "line"
            return counted

        before = sys.gettrace()
        sys.settrace(counted)
        try:
            self.run(statement)
        finally:
            sys.settrace(before)
        return count

    def state(self) -> Iterator[tuple[str, Any]]:
        """All that is known of the tensors."""
        for name, value in list(self.names.items()):
            if name in self.own or isinstance(value, type) or name.startswith("__"):
                continue
            yield name, _read(self.torch, value)
            if isinstance(value, self.torch.Tensor) and not name.startswith("d"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for what in ("grad", "_version"):
                        yield f"{name}.{what}", _read(self.torch, _asked(value, what))


def _asked(value: Any, what: str) -> Any:
    try:
        return getattr(value, what)
    except RuntimeError:
        return "refused"


def written(family: str, seed: int, torch: Any) -> list[str]:
    """A program: statements that PyTorch takes, and some that it refuses."""
    rng = np.random.default_rng([seed, sorted(FAMILIES).index(family)])
    writer, side = Writer(rng), Side(torch)
    program: list[str] = []
    for _ in range(int(rng.integers(1, 4))):
        name, text = writer.leaf()
        writer.names.append(name)
        program.append(text)
        side.run(text)
    wanted = int(rng.integers(2, 12 if family == "eager" else 6))
    for _ in range(4 * wanted):
        names, made = list(writer.names), writer.made
        text = FAMILIES[family](writer)
        failed = side.run(text)
        if failed is None or (rng.random() < REFUSED and not isinstance(failed, NameError)):
            program.append(text)
            wanted = 0 if failed is not None else wanted - 1
        else:
            side = _again(torch, program)
        if failed is not None:
            writer.names, writer.made = names, made
        if wanted == 0:
            break
    return program


def _again(torch: Any, program: list[str]) -> Side:
    side = Side(torch)
    for text in program:
        side.run(text)
    return side


@dataclass
class Difference:
    """Where the sides part: ``wrong``, ``accepted``, ``refused``, ``state``, ``log``, ``class``."""

    kind: str
    statement: int
    text: str
    detail: str

    @property
    def group(self) -> str:
        """The statement without its names and numbers."""
        last = self.text.split("\n")[-1] if self.kind != "accepted" else self.text
        plain = re.sub(r"\b[vxgdusfhab]_?\d+(_\d+)?\b", "v", re.sub(r"-?\d+\.\d+", "n", last))
        return f"{self.kind}: {plain} | {re.sub(r'[0-9.]+', 'n', self.detail)[:100]}"


def compared(program: list[str], ours: Any, theirs: Any) -> Difference | None:
    """The first difference of a program's runs."""
    here, there = Side(ours), Side(theirs)
    odd: Difference | None = None
    for number, text in enumerate(program):
        expected, got = there.run(text), here.run(text)
        if expected is not None and any(words in str(expected) for words in OFFERED_HERE):
            return odd
        if expected is not None and OF_ONE_EXAMPLE in str(expected) and "vmap" in text:
            return odd
        if expected is not None and got is None:
            return Difference("accepted", number, text, f"{type(expected).__name__}: {expected}")
        if got is not None and expected is None:
            return Difference("refused", number, text, f"{type(got).__name__}: {got}")
        if expected is not None and got is not None:
            words = f"{type(expected).__name__}: {expected} / {type(got).__name__}: {got}"
            if isinstance(expected, AttributeError):  # of None: both would have been stopped
                return odd
            if here.lines(got) != there.lines(expected):
                early, late = [
                    _again(torch, program[:number]).progress(text) for torch in (ours, theirs)
                ]
                if early != late:
                    kind = "accepted" if late < early else "refused"
                    return Difference(kind, number, text, words)
            if not isinstance(got, type(expected)):
                odd = odd or Difference("class", number, text, words)
            return odd  # what it had written until then is not compared
        if not _same(here.log, there.log):
            words = f"{here.log}\n{there.log}"
            if _logs_differ(here.log, there.log):
                return Difference("log", number, text, words)
            odd = odd or Difference("state", number, text, words)
        right = dict(there.state())
        for name, value in here.state():
            if name in right and not _same(value, right[name]):
                words = f"{name}: {value} / {right[name]}"
                if _numbers_differ(value, right[name]):
                    kind = "overlap" if _overlaps(theirs, there.names.get(name)) else "wrong"
                    return Difference(kind, number, text, words)
                odd = odd or Difference("state", number, text, words)
    return odd


def _logs_differ(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether hooks were called in another order or with other numbers."""
    if [name for name, _ in ours] != [name for name, _ in theirs]:
        return True
    return any(_numbers_differ(mine, its) for (_, mine), (_, its) in zip(ours, theirs, strict=True))


def _overlaps(torch: Any, value: Any) -> bool:
    """Whether elements of PyTorch's tensors share memory, so that a write to one is to several."""
    if isinstance(value, (list, tuple)):
        return any(_overlaps(torch, item) for item in value)
    if not isinstance(value, torch.Tensor):
        return False
    pairs = zip(value.shape, value.stride(), strict=True)
    return any(step == 0 and n > 1 for n, step in pairs)


def _numbers_differ(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list) and ours and theirs:
        if isinstance(ours[0], str) and isinstance(theirs[0], str):
            return not _same(ours[1], theirs[1]) or not _same(ours[-1], theirs[-1])
        return len(ours) != len(theirs) or any(map(_numbers_differ, ours, theirs))
    return not isinstance(ours, int) and (ours is None) != (theirs is None)


def judged(family: str, seeds: range) -> list[tuple[int, list[str], Difference | None]]:
    """Programs and their differences."""
    import torch as theirs
    import torch.utils.checkpoint

    import functrans.compat.torch as ours

    theirs.set_num_threads(1)
    programs = [(seed, written(family, seed, theirs)) for seed in seeds]
    return [(seed, program, compared(program, ours, theirs)) for seed, program in programs]
