from . import (
    classifiers as classifiers,
)
from . import (
    electra as electra,
)
from . import (
    elsewhere as elsewhere,
)
from . import (
    embedded as embedded,
)
from . import (
    embedder as embedder,
)
from . import (
    finder as finder,
)
from . import (
    heads as heads,
)
from . import (
    joint as joint,
)
from . import (
    last_layer as last_layer,
)
from . import (
    loading as loading,
)
from . import (
    memory as memory,
)
from . import (
    pair as pair,
)
from . import (
    scoring as scoring,
)
from . import (
    settings as settings,
)
from . import (
    word_vectors as word_vectors,
)
from .electra import ElectraEncoder as ElectraEncoder
from .embedder import Embedder as Embedder
from .finder import EvidenceFinder as EvidenceFinder
from .joint import JointEncoder as JointEncoder
from .loading import load as load
from .loading import start_from as start_from
from .pair import PairEncoder as PairEncoder
from .scoring import device as device
