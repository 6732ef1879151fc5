"""Batches: random programs, several compiled as one, each judged as if it were alone.

As ``programs``, but one function calls all programs of a case, each in a form of its own (as it is,
over a batch, of captured arrays, with its derivatives), so that many programs cost little: they
share one staging, one module of machine code and one wrapper, and those of one shape share loops.
Every program is judged in the run of machine code and in that of the interpreter. In a case that is
``exact``, machine code must also give the bits of ``compiler_math``, those of derivatives, too.

If such a function is refused, its programs are run one by one. A failure is made small by leaving
out programs first, so that it names the one that fails, or those that fail only together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import functrans as ft
from functrans.compiler import compiled

from .common import Case, Finding, Kind, shorter
from .judging import same_bits
from .programs import DERIVED, Program, call_of, operands_of, pattern_of, refusal, rows_of
from .programs import KIND as PROGRAMS

SIZE = 8
FORMS = ("native", "jit(vmap)", "captured", "jit(jvp)", "jit(vjp)")
"""Runs of ``programs``."""
_SHARES = {False: (0.5, 0.15, 0.1, 0.1, 0.15), True: (0.15, 0.1, 0.05, 0.3, 0.4)}
"""How often each is drawn, in other cases and in exact ones, which compare derivatives."""


class NotCompiled(Exception):  # noqa: N818  # it is a result, not an error
    """The function is interpreted: a Python integer in it is too large for machine code."""


class _Member:
    """One program of a case.

    Attributes:
      case: of ``programs``, with one run.
      form: its run.
      program: the program.
      fun: what is called.
      args: its arguments.
      refused: why it was not staged; empty if it was.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        (self.form,) = case["runs"]
        self.program = Program(case)
        self.fun, self.args = call_of(self.form, self.program, case)
        self.refused = ""

    def staged(self, args: Any) -> Any:
        """What the form gives of traced arguments; ``None`` where it is refused."""
        try:
            return self.fun(*args)
        except Exception as error:
            self.refused = refusal(error) or ""
            if not self.refused:
                raise
            return None

    def judge(self, found: Any, run: str, counts: Counter[str]) -> None:
        """Compare a run's values with NumPy's."""
        counts[f"programs, {self.form}, {run}"] += 1
        for args, row in rows_of(self.form, self.program, self.case, found):
            try:
                self.program.judge(args, row, counts)
            except Finding as finding:
                signature, text = finding.args
                raise Finding(f"{self.form}, {run}: {signature}", text) from None

    def compare_bits(self, found: Any, expected: Any, counts: Counter[str]) -> None:
        """Compare the values of machine code, and derivatives, with those of ``compiler_math``."""
        counts[f"programs, {self.form}, bits"] += 1
        values, derivatives = found if self.form in DERIVED else (found, [])
        wanted, others = expected if self.form in DERIVED else (expected, [])
        parts = [pattern_of(text) for _, text, _ in self.program.steps]
        for part, one, other in zip(
            (*parts, "derivatives"), (*values, derivatives), (*wanted, others), strict=True
        ):
            for x, y in zip(ft.tree.leaves(one), ft.tree.leaves(other), strict=True):
                x, y = np.asarray(x), np.asarray(y)
                if (x.shape, x.dtype) != (y.shape, y.dtype) or not same_bits(x, y).all():
                    raise Finding(f"{self.form}, bits: {part}", f"{x!r} instead of {y!r}")
                counts["outputs compared, bits"] += 1


class Batches(Kind):
    """See the module's docstring."""

    name = "batches"
    cases_per_child = 200

    def draw(self, rng: np.random.Generator) -> Case:
        is_exact = bool(rng.random() < 1 / 16)
        programs: list[Case] = []
        while len(programs) < SIZE:
            program = PROGRAMS.draw(rng)
            if "native" in program["runs"] and program["steps"]:
                form = str(rng.choice(FORMS, p=_SHARES[is_exact]))
                programs.append({**program, "runs": [form]})
        optimised = bool(rng.random() < 0.25)
        return {"programs": programs, "optimised": optimised, "exact": is_exact}

    def run(self, case: Case, counts: Counter[str]) -> None:
        members = [_Member(program) for program in case["programs"]]
        try:
            with np.errstate(all="ignore"):
                runs = _runs(members, case)
        except Exception as error:
            reason = "not compiled" if isinstance(error, NotCompiled) else refusal(error)
            if reason is None:
                raise
            if len(members) == 1:
                counts[f"refused, {members[0].form}: {reason}"] += 1
                return
            counts["batches taken apart"] += 1
            for program in case["programs"]:
                self.run({**case, "programs": [program]}, counts)
            return
        for i, member in enumerate(members):
            if member.refused:
                counts[f"refused, {member.form}: {member.refused}"] += 1
                continue
            counts["programs"] += 1
            counts.update(f"programs with {what}" for what in _traits(member.program))
            with np.errstate(all="ignore"):
                member.judge(runs["native"][i], "native", counts)
                member.judge(runs["interpreted"][i], "interpreted", counts)
                if "bits" in runs:
                    member.compare_bits(runs["native"][i], runs["bits"][i], counts)

    def smaller(self, case: Case) -> Iterator[Case]:
        programs = case["programs"]
        for fewer in shorter(programs):
            yield {**case, "programs": fewer}
        if case["exact"]:
            yield {**case, "exact": False}
        for i, program in enumerate(programs):
            for less in PROGRAMS.smaller(program):
                yield {**case, "programs": [*programs[:i], less, *programs[i + 1 :]]}

    def script(self, case: Case) -> str:
        kept = f"optimised: {case['optimised']}, bits are compared: {case['exact']}"
        scripts = "\n".join(map(PROGRAMS.script, case["programs"]))
        return f"# {len(case['programs'])} programs compiled as one; {kept}\n{scripts}"


def _runs(members: list[_Member], case: Case) -> dict[str, list[Any]]:
    """What all programs find, by run; raises what one of them raises."""

    def together(args: list[Any]) -> list[Any]:
        return [member.staged(given) for member, given in zip(members, args, strict=True)]

    args = [member.args for member in members]
    lowered = ft.jit(together).lower(args)
    # Code is optimised as far as its length allows, or begins without.
    lines = math.inf if case["optimised"] else 0
    with patch.object(compiled, "QUICK_LINES", lines):
        executable = lowered.compile()
    if not executable.is_native:
        raise NotCompiled
    runs = {"native": executable(args)}
    structure = ft.tree.structure(runs["native"])
    found = ft.eval_jaxpr(lowered.jaxpr, None, *ft.tree.leaves(args))
    runs["interpreted"] = ft.tree.unflatten(structure, found)
    if case["exact"]:
        with ft.config(compiler_math=True):
            runs["bits"] = executable(args)
    return runs


def _traits(program: Program) -> set[str]:
    """What is unusual about arguments that the program reads."""
    read = {name for _, text, _ in program.steps for name in operands_of(text)}
    arrays = [x for name, x in program.args.items() if name in read]
    traits = {
        "half precision": lambda x: x.dtype == np.float16,
        "extended precision": lambda x: x.dtype == np.longdouble,
        "foreign byte order": lambda x: not x.dtype.isnative,
        "unaligned arguments": lambda x: not x.flags.aligned,
        "negative strides": lambda x: any(stride < 0 for stride in x.strides),
    }
    return {name for name, applies in traits.items() if any(map(applies, arrays))}


KIND = Batches()
