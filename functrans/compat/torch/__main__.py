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
    if not sys.argv[1:] or sys.argv[1:] == ["-m"]:
        sys.exit("usage: python -m functrans.compat.torch (script.py | -m module) [argument ...]")
    install()
    _, name, *sys.argv[1:] = sys.argv
    if name == "-m":
        name = sys.argv.pop(1)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = name
        sys.path[0] = str(Path(name).resolve().parent)
        runpy.run_path(name, run_name="__main__")


if __name__ == "__main__":
    main()
