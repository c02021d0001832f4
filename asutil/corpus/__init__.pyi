from . import (
    arrays as arrays,
)
from . import (
    cleaning as cleaning,
)
from . import (
    index as index,
)
from . import (
    plain_tokenizer as plain_tokenizer,
)
from . import (
    shards as shards,
)
from . import (
    sources as sources,
)
from . import (
    tokenizers as tokenizers,
)
from . import (
    tokenizing as tokenizing,
)
from .index import (
    Corpus as Corpus,
)
from .index import (
    EmptyCorpus as EmptyCorpus,
)
from .index import (
    build as build,
)
from .index import (
    prepare as prepare,
)
from .index import (
    tokenizer_hash as tokenizer_hash,
)
from .sources import documents as documents
from .sources import read_titles as read_titles
from .tokenizers import (
    load_tokenizer as load_tokenizer,
)
from .tokenizers import (
    tokenizer_for as tokenizer_for,
)
from .tokenizers import (
    train_tokenizer as train_tokenizer,
)
