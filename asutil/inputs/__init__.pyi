from . import (
    batches as batches,
)
from . import (
    cut as cut,
)
from . import (
    groups as groups,
)
from . import (
    long as long,
)
from . import (
    masking as masking,
)
from . import (
    packing as packing,
)
from . import (
    pairs as pairs,
)
from . import (
    ragged as ragged,
)
from . import (
    slots as slots,
)
from . import (
    template as template,
)
from . import (
    triplets as triplets,
)
from .batches import (
    FinetuningBatches as FinetuningBatches,
)
from .batches import (
    ListBatches as ListBatches,
)
from .batches import (
    LongBatches as LongBatches,
)
from .batches import (
    PretrainingBatches as PretrainingBatches,
)
from .batches import (
    laid_out as laid_out,
)
from .batches import (
    micro_batches as micro_batches,
)
from .groups import Groups as Groups
from .groups import Lists as Lists
from .masking import share_to_mask as share_to_mask
from .pairs import (
    IGNORED as IGNORED,
)
from .pairs import (
    Pairs as Pairs,
)
from .pairs import (
    as_slots as as_slots,
)
from .pairs import (
    join_spans as join_spans,
)
from .pairs import (
    join_texts as join_texts,
)
from .ragged import Batch as Batch
from .ragged import Ragged as Ragged
from .template import Template as Template
