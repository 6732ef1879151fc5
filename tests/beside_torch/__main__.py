"""``python -m tests.beside_torch``: random programs, by functrans and by PyTorch.

Needs an environment with PyTorch. Programs of tensors, views, writes, hooks, ``Function``s, levels
of ``torch.func`` and duals; values, gradients, versions, and what hooks saw, in their order, are
compared after each statement, and what is refused. Differences are printed in groups. Programs run
in child processes: some of them crash PyTorch.
"""

import argparse
import json
import multiprocessing
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from .running import Difference, judged
from .writing import FAMILIES

CHUNK = 20
SECONDS = 6
IMPORTS = 60
"""Seconds until both libraries are imported, on a busy machine."""


def in_children(family: str, seeds: range) -> list[tuple[int, list[str], Difference | None]]:
    """The same in child processes; without programs that end theirs."""
    found: list[tuple[int, list[str], Difference | None]] = []
    context = multiprocessing.get_context("spawn")
    ended: list[int] = []
    parts = [seeds[i : i + CHUNK] for i in range(0, len(seeds), CHUNK)]
    while parts:
        with ProcessPoolExecutor(1, context) as pool:
            try:
                while parts:
                    found += pool.submit(judged, family, parts[0]).result(
                        IMPORTS + SECONDS * len(parts[0])
                    )
                    parts.pop(0)
                    print(f"{family}: {len(found)} of {len(seeds)}", end="\r", file=sys.stderr)
            except (BrokenProcessPool, TimeoutError):
                for process in list((pool._processes or {}).values()):
                    process.kill()
                broken = parts.pop(0)
                if len(broken) == 1:
                    ended.append(broken[0])
                parts = [broken[i : i + 1] for i in range(len(broken)) if len(broken) > 1] + parts
    print(f"{family}: {len(ended)} ended their processes, {ended[:5]}")
    return found


def main() -> int:
    """Run, print the groups, and return the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside_torch", description=__doc__)
    parser.add_argument("--family", default=",".join(FAMILIES), help="families, by commas")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=1000, help="programs of each family")
    parser.add_argument("--show", type=int, default=None, help="print this seed's program")
    parser.add_argument("--out", type=Path, default=None, help="differences, as JSON lines")
    arguments = parser.parse_args()
    groups: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    programs = statements = 0
    for family in arguments.family.split(","):
        if arguments.show is not None:
            ((_, program, found),) = judged(family, range(arguments.show, arguments.show + 1))
            print("\n".join(program), found, sep="\n\n")
            continue
        seeds = range(arguments.seed, arguments.seed + arguments.count)
        for seed, program, found in in_children(family, seeds):
            programs += 1
            statements += len(program)
            if found is None:
                continue
            groups[found.group].append((family, seed))
            if arguments.out is not None:
                row = {"family": family, "seed": seed, "program": program, **vars(found)}
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, default=str) + "\n")
    for group, cases in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(len(cases), group, cases[:3])
    print(f"{programs} programs, {statements} statements, {sum(map(len, groups.values()))} differ")
    return int(bool(groups))


if __name__ == "__main__":
    sys.exit(main())
