from . import (
    base as base,
)
from . import (
    formulas as formulas,
)
from . import (
    mspp as mspp,
)
from . import (
    objective as objective,
)
from . import (
    objectives as objectives,
)
from . import (
    pairs as pairs,
)
from . import (
    sampler as sampler,
)
from . import (
    spans as spans,
)
from . import (
    union as union,
)
from .objectives import OBJECTIVES as OBJECTIVES
from .sampler import (
    Sampler as Sampler,
)
from .sampler import (
    context_overlap as context_overlap,
)
from .sampler import (
    head_count as head_count,
)
from .sampler import (
    objective_of_data as objective_of_data,
)
