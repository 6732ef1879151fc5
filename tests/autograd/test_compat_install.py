"""Programs that import torch run over functrans after ``install()``, and by the command line."""

import subprocess
import sys
import textwrap
from pathlib import Path

import functrans as ft
from cases import each

ROOT = Path(ft.__file__).parent.parent
SCRIPT = """
import pickle
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function
from torch.nn.modules.loss import MSELoss
from torch.optim.adam import Adam
from torch.utils.data import DataLoader
print(sys.argv[1:], __name__, torch.__name__, MSELoss is nn.MSELoss)
print(F.relu(torch.tensor([-1.0, 2.0])))
assert issubclass(nn.Linear, nn.Module) and isinstance(nn.Linear(1, 1), torch.nn.Module)
print(torch.Tensor.__module__, nn.Parameter.__module__)
assert pickle.loads(pickle.dumps(nn.Parameter(torch.ones(1)))) == 1
try:
    import torch.fx
except ImportError as error:
    print(error)
"""
EXPECTED = [
    "['a', '-b'] __main__ functrans.compat.torch True",
    "tensor([0., 2.])",
    "torch torch.nn.parameter",
    "torch.fx is not offered by functrans.compat.torch (compilers, TorchScript and other "
    "internals): programs are compiled by functrans.jit; PyTorch's own parts have no counterpart",
]


def _run(*args: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_a_script_runs_by_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = _run("-m", "functrans.compat.torch", str(tmp_path / "script.py"), "a", "-b")
    assert done.stdout.splitlines() == EXPECTED, done.stderr


def test_a_module_runs_by_the_command_line() -> None:
    code = "import sys, torch; print(sys.argv[1:], torch.zeros(2))"
    done = _run("-m", "functrans.compat.torch", "-m", "timeit", "-n", "1", "-r", "1", code)
    assert "[" in done.stdout, done.stderr
    assert "tensor([0., 0.])" in done.stdout


@each("args", [[], ["-m"], ["-h"], ["--help"], ["-c", "import torch"]])
def test_the_command_line_needs_a_script(args: list[str]) -> None:
    done = _run("-m", "functrans.compat.torch", *args)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python -m functrans.compat.torch")


def test_the_command_line_says_that_there_is_no_script() -> None:
    done = _run("-m", "functrans.compat.torch", "no_script.py", "--help")
    assert done.returncode == 1
    assert done.stderr == "python -m functrans.compat.torch: there is no file 'no_script.py'\n"


def test_install_refuses_where_torch_is_imported() -> None:
    done = _run(
        "-c",
        textwrap.dedent(
            """
            import sys, types
            sys.modules["torch"] = types.ModuleType("torch")
            import functrans.compat.torch
            try:
                functrans.compat.torch.install()
            except ImportError as error:
                print(error)
            """
        ),
    )
    assert "functrans.compat.torch.install() before" in done.stdout, done.stderr
