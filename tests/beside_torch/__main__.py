"""``python -m tests.beside_torch``: random programs, by functrans and by PyTorch.

Needs an environment with PyTorch. Programs of tensors, views, writes, hooks, ``Function``s, levels
of ``torch.func`` and duals; values, gradients, versions, and what hooks saw, in their order, are
compared after each statement, and what is refused. Differences are printed in groups.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from .running import compared, written
from .writing import FAMILIES


def main() -> int:
    """Run, print the groups, and return the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside_torch", description=__doc__)
    parser.add_argument("--family", default=",".join(FAMILIES), help="families, by commas")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=1000, help="programs of each family")
    parser.add_argument("--show", type=int, default=None, help="print this seed's program")
    parser.add_argument("--out", type=Path, default=None, help="differences, as JSON lines")
    arguments = parser.parse_args()
    import torch as theirs  # noqa: PLC0415 - only here is it needed
    import torch.utils.checkpoint  # noqa: PLC0415

    import functrans.compat.torch as ours  # noqa: PLC0415

    groups: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    statements = 0
    for family in arguments.family.split(","):
        seeds = range(arguments.seed, arguments.seed + arguments.count)
        for seed in [arguments.show] if arguments.show is not None else seeds:
            program = written(family, seed, theirs)
            statements += len(program)
            found = compared(program, ours, theirs)
            if arguments.show is not None:
                print("\n".join(program), found, sep="\n\n")
            if found is not None:
                groups[found.group].append((family, seed))
                if arguments.out is not None:
                    row = {"family": family, "seed": seed, "program": program, **vars(found)}
                    with arguments.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row, default=str) + "\n")
    for group, cases in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(len(cases), group, cases[:3])
    print(f"{statements} statements, {sum(map(len, groups.values()))} differences")
    return int(bool(groups))


if __name__ == "__main__":
    sys.exit(main())
