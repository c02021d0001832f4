from . import (
    answers as answers,
)
from . import (
    calibration as calibration,
)
from . import (
    changes as changes,
)
from . import (
    measures as measures,
)
from . import (
    peers as peers,
)
from . import (
    rankings as rankings,
)
from . import (
    registry as registry,
)
from . import (
    significance as significance,
)
from . import (
    trec as trec,
)
from . import (
    two_sources as two_sources,
)
from . import (
    verdicts as verdicts,
)
from .rankings import (
    Ranking as Ranking,
)
from .rankings import (
    at_random as at_random,
)
from .rankings import (
    auc as auc,
)
from .rankings import (
    classification as classification,
)
from .rankings import (
    of as of,
)
from .rankings import (
    ranking as ranking,
)
from .significance import (
    Comparison as Comparison,
)
from .significance import (
    holm as holm,
)
from .significance import (
    paired_bootstrap as paired_bootstrap,
)
from .significance import (
    student_t as student_t,
)
from .significance import (
    student_t_from_summary as student_t_from_summary,
)
from .trec import write_trec as write_trec
from .two_sources import (
    over_questions_and_seeds as over_questions_and_seeds,
)
from .two_sources import (
    seed_variance as seed_variance,
)
from .two_sources import (
    smallest_effect as smallest_effect,
)
from .verdicts import confusion as confusion
from .verdicts import verification as verification
