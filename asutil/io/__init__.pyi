from . import (
    checkpoints as checkpoints,
)
from . import (
    disk as disk,
)
from . import (
    files as files,
)
from . import (
    hub as hub,
)
from . import (
    model_folders as model_folders,
)
from . import (
    private as private,
)
from . import (
    remote as remote,
)
from . import (
    sentence_transformer as sentence_transformer,
)
from . import (
    spelling as spelling,
)
from . import (
    weight_shapes as weight_shapes,
)
