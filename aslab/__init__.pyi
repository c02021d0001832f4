from . import (
    analysis as analysis,
)
from . import (
    backbone as backbone,
)
from . import (
    blind as blind,
)
from . import (
    calibration as calibration,
)
from . import (
    cards as cards,
)
from . import (
    chains as chains,
)
from . import (
    closing as closing,
)
from . import (
    commands as commands,
)
from . import (
    compare as compare,
)
from . import (
    console as console,
)
from . import (
    data_commands as data_commands,
)
from . import (
    datasets as datasets,
)
from . import (
    export as export,
)
from . import (
    first_stage as first_stage,
)
from . import (
    gallery as gallery,
)
from . import (
    gpus as gpus,
)
from . import (
    hours as hours,
)
from . import (
    identity as identity,
)
from . import (
    launch as launch,
)
from . import (
    measured as measured,
)
from . import (
    mined as mined,
)
from . import (
    own as own,
)
from . import (
    own_inputs as own_inputs,
)
from . import (
    papers as papers,
)
from . import (
    parameters as parameters,
)
from . import (
    pipeline as pipeline,
)
from . import (
    plan as plan,
)
from . import (
    processes as processes,
)
from . import (
    provenance as provenance,
)
from . import (
    publish as publish,
)
from . import (
    rankers as rankers,
)
from . import (
    records as records,
)
from . import (
    repeats as repeats,
)
from . import (
    rules as rules,
)
from . import (
    rundir as rundir,
)
from . import (
    runs as runs,
)
from . import (
    saved_models as saved_models,
)
from . import (
    show as show,
)
from . import (
    slot_cosines as slot_cosines,
)
from . import (
    slots as slots,
)
from . import (
    stages as stages,
)
from . import (
    task_difficulty as task_difficulty,
)
from . import (
    teachers as teachers,
)
from . import (
    transfer as transfer,
)
from . import (
    trec as trec,
)
from . import (
    vector_commands as vector_commands,
)
