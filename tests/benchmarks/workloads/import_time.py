"""Import time of each library in fresh processes."""

from __future__ import annotations

from tests.benchmarks.record import ProcessWorkload

WORKLOADS = (
    ProcessWorkload(
        name="import_time",
        description="import statement in a fresh process, minimum of alternating processes",
        statements={
            "functrans": "import functrans",
            "numpy": "import numpy",
            "autograd": "import autograd",
            "torch": "import torch",
            "jax": "import jax",
        },
    ),
)
