from . import (
    base as base,
)
from . import (
    cross_encoder as cross_encoder,
)
from . import (
    embedding as embedding,
)
from . import (
    finding as finding,
)
from . import (
    mine as mine,
)
from . import (
    nearest as nearest,
)
from . import (
    own_tasks as own_tasks,
)
from . import (
    rank as rank,
)
from . import (
    ranked_sentences as ranked_sentences,
)
from . import (
    rankers as rankers,
)
from . import (
    reranking as reranking,
)
from . import (
    vector_search as vector_search,
)
from . import (
    vectors as vectors,
)
from . import (
    verifying as verifying,
)
from .base import BaseRanker as BaseRanker
from .nearest import Nearest as Nearest
from .rank import Ranker as Ranker
from .rankers import load_ranker as load_ranker
from .vectors import Vectors as Vectors
