"""Slopes: derivatives of single expressions, many in one case, without machine code.

As ``derivatives``, but each expression is judged alone, at the same arguments, to order 2: what is
searched are the rules of the primitives at many shapes, axes, ties and zeros.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .common import Case
from .derivatives import ONE, Derivatives

N_EXPRESSIONS = (6, 12)
WORDS_OF_TWO = (["hvp"], ["hessian"], ["jet"], *([a, b] for a in ONE for b in ONE))


class Slopes(Derivatives):
    """See the module's docstring."""

    name = "slopes"

    def draw(self, rng: np.random.Generator) -> Case:
        args, values = self.drawn_arguments(rng, 3)
        steps = self.drawn_steps(
            rng, dict(values), int(rng.integers(*N_EXPRESSIONS)), is_deep=False
        )
        twice = WORDS_OF_TWO[rng.integers(len(WORDS_OF_TWO))]
        words = [[str(rng.choice(ONE[1:]))], ["vjp"], list(twice), ["grad", "jvp"]]
        return {
            "args": args,
            "steps": steps,
            "words": words,
            "directions": int(rng.integers(10**6)),
        }

    def run(self, case: Case, counts: Counter[str]) -> None:
        for step in case["steps"]:
            counts["expressions"] += 1
            super().run({**case, "steps": [step]}, counts)


KIND = Slopes()
