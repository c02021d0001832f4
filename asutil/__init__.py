"""Pre-training objectives, heads, losses and metrics for answer sentence selection: the core, usable without a notebook.

`asutil.metrics` and its like are imported when they are first named: counting ranks needs no torch.
"""

import os

from .lazy import names_of

__version__ = "0.1.0"

# At the end of every operation the threads of GNU's OpenMP wait for each other in a busy loop. Where another process has a core, each waits
# for a thread that does not run: two trainings on two cores made a twentieth of the steps. So the loop is short. OpenMP reads this once,
# when torch is loaded. LLVM's and Intel's OpenMP (macOS, conda) let others run while they wait.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

__getattr__ = names_of(__name__)
