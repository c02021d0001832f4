"""Made-up vectors, normal and of length 1, in memory and on disk: what `search` and `growth` measure on."""

import time
from types import SimpleNamespace

import numpy as np

from asutil.tasks import vectors


def unit(count: int, dimensions: int, seed) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((count, dimensions), np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def written(folder, count: int, dimensions: int) -> tuple[vectors.Vectors, float]:
    """So many vectors on disk, and the seconds that writing them took."""
    encode = lambda texts: unit(len(texts), dimensions, int(texts[0]))
    encoder, started = SimpleNamespace(encode=encode, dimensions=dimensions, identity="normal"), time.perf_counter()
    on_disk = vectors.embed(encoder, map(str, range(count)), f"{folder}/vectors", progress=False)
    return on_disk, time.perf_counter() - started
