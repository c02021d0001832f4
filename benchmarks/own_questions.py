"""How time and memory grow with your own questions: 5,000 to 500,000 in a .jsonl, read, fine-tuned for one epoch, ranked and compared.

Every step is the command that a user would give, in a process of its own: `papermill notebooks/finetune.ipynb -p dataset FILE -p epochs 1`
with a model of one layer and random weights, then `papermill notebooks/rank.ipynb` with two rankers, then `asutil compare` of their
run. A question has three short candidates; a tenth of the questions is ranked.

    python benchmarks/own_questions.py [--quick]

`exponents` are the slopes of log(seconds) and of log(memory) over log(questions) between the two largest files, without what a
file of 50 questions takes: 1 is linear. The ratio is three times the size of the
largest file, divided by the memory that reading it took: the goal is 1. The last line is one JSON object.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import side_by_side

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("read", "finetune", "rank", "compare")
SIZES = (5_000, 50_000, 500_000)
READ = "import sys; from asutil.data import load_answers; print({name: len(split) for name, split in load_answers(sys.argv[1]).items()})"


def written(path: Path, questions: int) -> None:
    """Write made-up questions to a .jsonl. Each has three candidates; the right one shares words with its question."""
    draw = np.random.default_rng(0)
    words = np.array(
        [
            f"{first}{last}"
            for first in "bdfglmnprst"
            for last in ("a", "en", "ist", "or", "um", "il", "ek", "ob", "ark")
        ]
    )
    with path.open("w", encoding="utf-8") as stream:
        for number in range(questions):
            asked = draw.choice(words, 6)
            for candidate in range(3):
                right = int(candidate == number % 3)
                text = np.concatenate(
                    [draw.choice(asked, 3) if right else draw.choice(words, 3), draw.choice(words, 9)]
                )
                row = {
                    "question": f"{' '.join(asked)} {number}",
                    "answer": f"{' '.join(text)} {number} {candidate}",
                    "label": right,
                }
                stream.write(json.dumps(row) + "\n")


def model_of(path: Path, texts: Path) -> None:
    """A model of one layer with random weights, and its tokenizer, in a folder.

    Called in a process of its own: one that has loaded torch gives its size to every process that it starts.
    """
    import growth
    from transformers import RobertaConfig, RobertaModel

    from asutil.corpus import tokenizers

    with texts.open(encoding="utf-8") as lines:
        tokenizer = tokenizers.train_tokenizer((json.loads(line)["answer"] for line in lines), vocab_size=1024)
    tokenizer.save_pretrained(path)
    tokenizer = tokenizers.load_tokenizer(str(path))
    config = growth.config(128, tokenizer).to_dict() | {
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "intermediate_size": 128,
    }
    RobertaModel(RobertaConfig(**config)).save_pretrained(path)


def timed(*command) -> dict:
    """Seconds of a command, and the most memory of one process that it starts, in MiB."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, *map(str, command)], cwd=ROOT, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            output.seek(0)
            raise SystemExit(f"{' '.join(map(str, command))} failed: {output.read()[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, else KiB
    return {"seconds": round(time.perf_counter() - started, 2), "mib": round(usage.ru_maxrss * unit / 2**20)}


def measured(folder: Path, questions: int) -> dict:
    """Seconds and memory of every step with so many questions."""
    file, model, runs = folder / f"own{questions}.jsonl", folder / "model", folder / f"runs{questions}"
    written(file, questions)
    if not model.exists():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(model_of, (model, file))
    notebook = lambda name, **given: timed(
        *("-m", "papermill", f"notebooks/{name}.ipynb", os.devnull),
        *(word for item in given.items() for word in ("-p", *item)),
        *("-p", "dataset", file, "-p", "runs_dir", runs),
    )
    steps = {"read": timed("-c", READ, file)}
    steps["finetune"] = notebook("finetune", model=model, epochs=1, batch_size=256, max_tokens=64)
    trained = next(runs.glob("finetune-*"))
    steps["rank"] = notebook("rank", models=f"bm25,{trained}")
    steps["compare"] = timed("-m", "asutil", "compare", next(runs.glob("rank-*")))
    print(
        f"{questions:,} questions:",
        ", ".join(f"{name} {one['seconds']} s, {one['mib']} MiB" for name, one in steps.items()),
        flush=True,
    )
    return {"questions": questions, "file_mb": round(file.stat().st_size / 1e6, 1), **steps}


def exponents(idle: dict, fewer: dict, more: dict) -> dict:
    """The slopes of log(seconds) and of log(memory) over log(questions) of every step, None where it takes no more than an idle one.

    Example:
        >>> point = lambda questions, used: {"questions": questions} | {step: {"seconds": used, "mib": used} for step in STEPS}
        >>> exponents(point(1, 2.0), point(10, 3.0), point(100, 102.0))["rank"]
        {'seconds': 2.0, 'mib': 2.0}
        >>> exponents(point(1, 2.0), point(10, 1.9), point(100, 102.0))["rank"]
        {'seconds': None, 'mib': None}
    """
    fitted = {step: {} for step in STEPS}
    for step in STEPS:
        for figure in ("seconds", "mib"):
            low, high = (point[step][figure] - idle[step][figure] for point in (fewer, more))
            slope = np.log(high / low) / np.log(more["questions"] / fewer["questions"]) if low > 0 < high else None
            fitted[step][figure] = slope and round(float(slope), 3)
    return fitted


def main():
    given = side_by_side.arguments(__doc__).parse_args()
    sizes = (1_000, 5_000) if given.quick else SIZES
    with tempfile.TemporaryDirectory() as made:
        idle, *points = [measured(Path(made), size) for size in (50, *sizes)]
    slopes, largest = exponents(idle, *points[-2:]), points[-1]
    held = (largest["read"]["mib"] - idle["read"]["mib"]) * 2**20 / 1e6
    ratio = side_by_side.spread([3 * largest["file_mb"] / held])
    figures = {f"{point.pop('questions'):,} questions": point for point in (idle, *points)}
    side_by_side.show(side_by_side.headline("own_questions", 1.0, {"memory": ratio}, exponents=slopes, **figures))


if __name__ == "__main__":
    main()
