from . import (
    corpus as corpus,
)
from . import (
    data as data,
)
from . import (
    draws as draws,
)
from . import (
    heads as heads,
)
from . import (
    inputs as inputs,
)
from . import (
    io as io,
)
from . import (
    lazy as lazy,
)
from . import (
    losses as losses,
)
from . import (
    metrics as metrics,
)
from . import (
    models as models,
)
from . import (
    plugins as plugins,
)
from . import (
    pydocs as pydocs,
)
from . import (
    registry as registry,
)
from . import (
    sampling as sampling,
)
from . import (
    tasks as tasks,
)
from . import (
    training as training,
)
from .tasks.rankers import load_ranker as load_ranker
