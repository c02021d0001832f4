from . import (
    agreement as agreement,
)
from . import (
    checkpoints as checkpoints,
)
from . import (
    cpu as cpu,
)
from . import (
    expectation as expectation,
)
from . import (
    loop as loop,
)
from . import (
    optimiser as optimiser,
)
from . import (
    options as options,
)
from . import (
    processes as processes,
)
from . import (
    trainer as trainer,
)
from . import (
    validation as validation,
)
from .loop import train as train
from .validation import order_metrics as order_metrics
from .validation import validate as validate
