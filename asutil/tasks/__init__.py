"""What a trained model is for: ranking, re-ranking, search by vectors, verifying claims, finding evidence.

`own_tasks` measures it on its own pre-training task.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
