from . import (
    intervals as intervals,
)
from . import (
    lists as lists,
)
from . import (
    markup as markup,
)
from . import (
    pca as pca,
)
from . import (
    picture as picture,
)
from . import (
    plots as plots,
)
from . import (
    tables as tables,
)
from .lists import compare_rankings as compare_rankings
from .lists import ranked_example as ranked_example
from .lists import sampled as sampled
from .plots import (
    accuracy_bars as accuracy_bars,
)
from .plots import (
    confusion_plot as confusion_plot,
)
from .plots import (
    moves_plot as moves_plot,
)
from .plots import (
    training_curves as training_curves,
)
