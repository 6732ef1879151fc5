"""Train two networks on images of digits, in code written for torch.

A perceptron sees 1,797 images of 8 x 8 pixels as vectors, an LSTM as sequences of eight rows.
Modules, optimizers, a schedule of the learning rate and hooks on gradients are torch's; the only
line that is not is its import. ``--compare`` puts ``import torch`` in its place, runs the same
program in torch, and prints the steps per second of both. The same seed gives the same initial
values there, so that the losses agree as well.

The size of every gradient is noted by a hook on its parameter, which writes to a tensor. With
``--jit`` the whole step (forward, backward, hooks, update) is one compiled program.

    python examples/train_digits.py               # figure in ./train_digits.png
    python examples/train_digits.py --jit
    python examples/train_digits.py --compare --no-figure

The exit status is 1 if a network recognizes fewer than 90 % of the images it has not seen. The data
and their source are in ``data/digits.txt``.
"""

import argparse
import functools
import sys
import time
import types
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import functrans.compat.torch as torch

DATA = Path(__file__).resolve().parent / "data" / "digits.npz"
N_TEST = 360
BATCH = 64
SEED = 0
OWN_IMPORT = "import functrans.compat.torch as torch\n"
INK, MUTED = "#22303c", "#7d8a96"
COLOURS = {"perceptron": "#3a6bd0", "LSTM": "#bf3b76"}


Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# The program, as for torch.


class Perceptron(torch.nn.Module):
    """Two layers on the pixels of an image."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(64, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 10),
        )

    def forward(self, images: torch.Tensor) -> Any:
        """Logits of the digits."""
        return self.layers(images)


class RowReader(torch.nn.Module):
    """An LSTM that reads an image row by row; a layer on its last state."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(8, width, batch_first=True)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> Any:
        """Logits of the digits."""
        _, (state, _) = self.lstm(images)
        return self.head(state[-1])


MODELS: dict[str, type[torch.nn.Module]] = {"perceptron": Perceptron, "LSTM": RowReader}


class GradientNorms:
    """The size of each parameter's gradient in the last step, noted by hooks."""

    def __init__(self, model: torch.nn.Module) -> None:
        parameters = list(model.parameters())
        self.values = torch.zeros(len(parameters))
        self.handles = [
            p.register_hook(functools.partial(self.note, i)) for i, p in enumerate(parameters)
        ]

    def note(self, i: int, gradient: torch.Tensor) -> None:
        """The hook of one parameter."""
        with torch.no_grad():
            self.values[i] = gradient.norm()


def load() -> tuple[torch.Tensor, ...]:
    """Images between 0 and 1 and their digits, for training and for the test."""
    with np.load(DATA) as data:
        images, labels = data["images"] / 16.0, data["labels"]
    order = np.random.default_rng(SEED).permutation(len(images))
    x = torch.tensor(images[order], dtype=torch.float32)
    y = torch.tensor(labels[order].astype(np.int64))
    return x[N_TEST:], y[N_TEST:], x[:N_TEST], y[:N_TEST]


def accuracy(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Share of images whose digit is recognized."""
    model.eval()
    with torch.no_grad():
        hits = (model(x).argmax(dim=1) == y).sum().item()
    model.train()
    return float(hits / len(y))


def train(
    name: str, epochs: int, compiled: Callable[[Step], Step] | None = None
) -> tuple[list[float], list[float], float, float]:
    """Train a network.

    Args:
      name: of the network.
      epochs: how often each image is seen.
      compiled: what the step goes through before it is used, or ``None``.

    Returns:
      Losses and sizes of gradients per step, the share of recognized test images, and steps per
      second after the first epoch.
    """
    torch.manual_seed(SEED)
    model = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.3)
    criterion = torch.nn.CrossEntropyLoss()
    norms = GradientNorms(model)
    x, y, x_test, y_test = load()

    def step(images: torch.Tensor, digits: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = criterion(model(images), digits)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run: Step = step if compiled is None else compiled(step)
    order = np.random.default_rng(SEED)
    losses: list[float] = []
    sizes: list[float] = []
    seconds, steps = 0.0, 0
    for epoch in range(epochs):
        places = order.permutation(len(x))
        batches = [
            (x[torch.tensor(part)], y[torch.tensor(part)])
            for part in np.array_split(places, len(x) // BATCH)
            if len(part) >= BATCH
        ]
        start = time.perf_counter()
        for images, digits in batches:
            losses.append(run(images[:BATCH], digits[:BATCH]).item())
            sizes.append(norms.values.norm().item())
        if epoch:
            seconds += time.perf_counter() - start
            steps += len(batches)
        schedule.step()
    return losses, sizes, accuracy(model, x_test, y_test), steps / max(seconds, 1e-9)


# Around it.


def in_torch() -> types.ModuleType:
    """This program with ``import torch`` in the place of its own import."""
    source = Path(__file__).read_text(encoding="utf-8")
    module = types.ModuleType("train_digits_in_torch")
    module.__file__ = __file__
    exec(compile(source.replace(OWN_IMPORT, "import torch\n", 1), __file__, "exec"), vars(module))
    return module


def smooth(values: np.ndarray, n: int = 20) -> np.ndarray:
    """Means of ``n`` neighbours."""
    kernel = np.ones(n) / n
    return np.convolve(values, kernel, mode="valid")


def draw(results: dict[str, Any], path: Path) -> None:
    """Losses and sizes of gradients by step."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    figure.suptitle("Training on handwritten digits", x=0.012, ha="left", weight="bold", color=INK)
    titles = "Loss of a batch", "Size of the gradient, noted by hooks"
    labels = "cross entropy", "Euclidean norm"
    for axis, title, label, which in zip(axes, titles, labels, (0, 1), strict=True):
        axis.set_ylabel(label, color=MUTED)
        for name, result in results.items():
            values = np.array(result[which])
            axis.plot(values, color=COLOURS[name], alpha=0.18, linewidth=0.8)
            shown = smooth(values)
            axis.plot(
                np.arange(len(shown)) + len(values) - len(shown), shown,
                color=COLOURS[name], linewidth=1.6,
                label=f"{name}, {100 * result[2]:.1f} % of test images",
            )  # fmt: skip
        axis.set_yscale("log")
        axis.set_title(title, loc="left", color=INK, fontsize=11)
        axis.set_xlabel("step", color=MUTED)
        axis.tick_params(colors=MUTED, labelsize=8)
        axis.grid(color="#e3e8ec", linewidth=0.6)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Train, print and draw; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=40, help="passes over the images")
    parser.add_argument("--model", choices=[*COLOURS], help="one of them only")
    parser.add_argument("--jit", action="store_true", help="compile the whole step")
    parser.add_argument("--compare", action="store_true", help="run in torch as well")
    parser.add_argument(
        "--output", type=Path, default=Path("train_digits.png"), help="PNG to write"
    )
    parser.add_argument("--no-figure", action="store_true", help="print only")
    options = parser.parse_args(arguments)
    if not options.no_figure and find_spec("matplotlib") is None:
        parser.error("the figure needs matplotlib: pip install 'functrans[viz]', or --no-figure")

    compiled = None
    if options.jit:
        import functrans

        compiled = functrans.jit
    results = {}
    for name in [options.model] if options.model else COLOURS:
        results[name] = losses, _, share, rate = train(name, options.epochs, compiled)
        line = f"{name:>10}: loss {losses[0]:.4f} -> {np.mean(losses[-20:]):.4f}, "
        line += f"{100 * share:.1f} % of test images, {rate:.0f} steps/s"
        if options.compare:
            other = in_torch().train(name, options.epochs)
            line += f"; in torch {np.mean(other[0][-20:]):.4f}, {100 * other[2]:.1f} %, "
            line += f"{other[3]:.0f} steps/s"
        print(line)
    if not options.no_figure:
        draw(results, options.output)
        print(f"figure: {options.output}")
    return 0 if all(result[2] >= 0.9 for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
