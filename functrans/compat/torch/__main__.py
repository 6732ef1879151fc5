"""``python -m functrans.compat.torch script.py``: run a script that imports torch.

Also ``-m module``, with arguments behind it.

Layer: ``compat``.
"""

import runpy
import sys
from pathlib import Path

from functrans.compat.torch.submodules import install


def main() -> None:
    """Run what the command line names."""
    name, *rest = sys.argv[1:] or [""]
    if not name or (name[0] == "-" and not (name == "-m" and rest)):
        sys.exit("usage: python -m functrans.compat.torch (script.py | -m module) [argument ...]")
    if name != "-m" and not Path(name).exists():
        sys.exit(f"python -m functrans.compat.torch: there is no file {name!r}")
    install()
    sys.argv[1:] = rest
    if name == "-m":
        name = sys.argv.pop(1)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = name
        sys.path[0] = str(Path(name).resolve().parent)
        runpy.run_path(name, run_name="__main__")


if __name__ == "__main__":
    main()
