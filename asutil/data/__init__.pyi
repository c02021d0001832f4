from . import (
    answers as answers,
)
from . import (
    baselines as baselines,
)
from . import (
    built as built,
)
from . import (
    candidates as candidates,
)
from . import (
    claims as claims,
)
from . import (
    data_sets as data_sets,
)
from . import (
    document_order as document_order,
)
from . import (
    hotpotqa as hotpotqa,
)
from . import (
    hub_answers as hub_answers,
)
from . import (
    long_questions as long_questions,
)
from . import (
    newsas2 as newsas2,
)
from . import (
    nq_sentences as nq_sentences,
)
from . import (
    own_answers as own_answers,
)
from . import (
    qasper as qasper,
)
from . import (
    question_rows as question_rows,
)
from . import (
    questions as questions,
)
from . import (
    selqa as selqa,
)
from . import (
    splits as splits,
)
from . import (
    table_files as table_files,
)
from . import (
    tables as tables,
)
from .answers import Split as Split
from .answers import load_answers as load_answers
from .baselines import baseline_scores as baseline_scores
from .candidates import Candidate as Candidate
from .candidates import Question as Question
from .claims import Claim as Claim
from .claims import Claims as Claims
from .claims import Evidence as Evidence
from .claims import load_claims as load_claims
from .long_questions import LongQuestion as LongQuestion
from .long_questions import LongQuestions as LongQuestions
from .long_questions import load_evidence as load_evidence
