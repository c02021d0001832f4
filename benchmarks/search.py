"""The ten nearest of a million vectors: this project, from a file, against sentence-transformers and faiss, which hold them in memory.

All three compare every vector: `asutil.tasks.vectors` block by block on a memory-mapped file, with scores summed in float64;
`sentence_transformers.util.semantic_search` with its own blocks; faiss's IndexFlatIP and, for the distance, IndexFlatL2, where faiss-cpu
is installed. The vectors are normal and of length 1, and the numbers that come back are compared. `memory_mib` is the most that one
search of this project allocates, with what it keeps of the vectors' lengths; `alone` are the questions one at a time.

    python benchmarks/search.py [--quick]         # --quick: 100,000 vectors
    python benchmarks/search.py --vectors 200000 --dimensions 768

The vectors, 1.5 GB, are written to a temporary folder by `vectors.embed` and deleted; the peers' are another 1.5 GB of memory each.
Ratios go by the clock on the wall: every side uses the same number of threads, all cores unless OMP_NUM_THREADS says less.
"""

import tempfile
import tracemalloc

import numpy as np
import side_by_side
import torch
from made_vectors import unit, written
from sentence_transformers import util

try:
    import faiss
except ImportError:
    faiss = None

GOAL, FAISS_GOAL, K = 1.0, 1.0, 10


def memory(search) -> float:
    """The most that one call allocates, in MiB; the pages of the mapped file are the system's."""
    tracemalloc.start()
    try:
        search()
        return round(tracemalloc.get_traced_memory()[1] / 2**20, 1)
    finally:
        tracemalloc.stop()


def by_semantic_search(questions: torch.Tensor, corpus: torch.Tensor) -> np.ndarray:
    found = util.semantic_search(questions, corpus, corpus_chunk_size=500_000, top_k=K, score_function=util.dot_score)
    return np.array([[hit["corpus_id"] for hit in one] for one in found])


def flat(index, corpus: np.ndarray):
    index.add(corpus)
    return index


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--vectors", type=int, help="how many there are (default: 1,000,000, or 100,000)")
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--questions", type=int, default=64)
    given = parser.parse_args()
    count, rounds = given.vectors or (100_000 if given.quick else 1_000_000), given.rounds or (3 if given.quick else 5)
    questions, numbers = unit(given.questions, given.dimensions, [1, 1]), {}
    if faiss:
        faiss.omp_set_num_threads(torch.get_num_threads())
    with tempfile.TemporaryDirectory() as folder:
        found, writing = written(folder, count, given.dimensions)
        search = lambda by="dot", asked=questions: found.search(asked, K, by)[1]
        held, asked = torch.from_numpy(np.array(found.vectors)), torch.from_numpy(questions)
        kept = memory(search)
        sides = {
            "ours": lambda: numbers.update(ours=search()),
            "semantic_search": lambda: numbers.update(semantic_search=by_semantic_search(asked, held)),
            "ours_cosine": lambda: search("cosine"),
            "ours_distance": lambda: numbers.update(ours_distance=search("distance")),
            "ours_alone": lambda: [search(asked=question[None]) for question in questions[:8]],
            "semantic_search_alone": lambda: [by_semantic_search(question[None], held) for question in asked[:8]],
        }
        if faiss:
            products = flat(faiss.IndexFlatIP(given.dimensions), held.numpy())
            distances = flat(faiss.IndexFlatL2(given.dimensions), held.numpy())
            sides |= {
                "faiss": lambda: numbers.update(faiss=products.search(questions, K)[1]),
                "faiss_distance": lambda: numbers.update(faiss_distance=distances.search(questions, K)[1]),
                "faiss_alone": lambda: [products.search(question[None], K) for question in questions[:8]],
            }
        wall, _ = side_by_side.seconds(sides, rounds)
    same = {
        name: bool((numbers[name] == numbers["ours_distance" if "distance" in name else "ours"]).all())
        for name in numbers
    }
    against = {
        name: side_by_side.ratios(wall["ours"], wall[name]) for name in ("semantic_search", "faiss") if name in wall
    }
    measured = {
        **({"against_faiss": against["faiss"] | {"goal": FAISS_GOAL}} if faiss else {}),
        **(
            {"distance_against_faiss": side_by_side.ratios(wall["ours_distance"], wall["faiss_distance"])}
            if faiss
            else {}
        ),
        "alone_against_semantic_search": side_by_side.ratios(wall["ours_alone"], wall["semantic_search_alone"]),
        **({"alone_against_faiss": side_by_side.ratios(wall["ours_alone"], wall["faiss_alone"])} if faiss else {}),
        "milliseconds_a_question": {
            name: side_by_side.spread(
                1000 * second / (min(8, given.questions) if "alone" in name else given.questions) for second in taken
            )
            for name, taken in wall.items()
        },
        "same_numbers": same,
        "memory_mib": kept,
        "vectors_mib": round(4 * count * given.dimensions / 2**20, 1),
        "vectors_written_a_second": round(count / writing),
        "vectors": count,
        "dimensions": given.dimensions,
        "questions": given.questions,
        "k": K,
        "threads": torch.get_num_threads(),
        "faiss": faiss.__version__ if faiss else None,
        "rounds": rounds,
        "quick": given.quick,
    }
    side_by_side.show(
        side_by_side.headline("search", GOAL, {"semantic_search": against["semantic_search"]}, **measured)
    )


if __name__ == "__main__":
    main()
