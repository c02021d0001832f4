"""A fine-tuned pair model in sentence-transformers' CrossEncoder: with torch, with ONNX, and with ONNX in int8, on the same questions.

Speed is measured turn by turn on some pairs; scores, MAP and its difference to torch's with a 95 % interval on all test questions. torch
and ONNX compute in float32. int8 is dynamic quantisation: weights are stored as 8-bit integers, activations become integers while they
are computed. All three run on the CPU with the same number of threads.

    python benchmarks/backends.py FOLDER [--dataset wikiqa] [--quick]

FOLDER is what `asutil export` wrote, or a finished run of finetune on pairs. The ONNX packages need transformers 4, so they have
an environment of their own, which takes the rest from the project's; there give an exported folder:

    python3 -m venv onnx
    .venv/bin/python -c "import site; print(site.getsitepackages()[0])" > $(echo onnx/lib/python*/site-packages)/project.pth
    onnx/bin/pip install --no-deps "sentence-transformers<6" "transformers<4.58" "huggingface_hub<1" "tokenizers<0.23" "datasets<4.5" \\
        "optimum~=2.1.0" optimum-onnx onnx onnxruntime ml_dtypes flatbuffers
    .venv/bin/asutil export RUN --to exported
    PYTHONPATH=. onnx/bin/python benchmarks/record.py backends --arguments "exported --dataset wikiqa"
"""

import platform
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import side_by_side
import torch
import transformers
from sentence_transformers import CrossEncoder

from asutil import metrics
from asutil.data import answers

GOAL = 1.0  # int8 is for speed: it should not be slower than torch
BATCH = 32
SPEED_PAIRS, QUICK_PAIRS, QUICK_QUESTIONS = 1000, 100, 30
OPTIONS = {"device": "cpu", "local_files_only": True, "trust_remote_code": False}


def require_onnx() -> None:
    """Raises: SystemExit that names the package which is absent, or does not work with the others."""
    try:
        import onnxruntime  # noqa: F401
        from optimum.onnxruntime import ORTQuantizer  # noqa: F401
    except ImportError as error:
        advice = 'install "sentence-transformers[onnx]" in an environment of its own (the top of benchmarks/backends.py shows one)'
        raise SystemExit(
            f"backends: optimum-onnx and onnxruntime are expected, and they do not import with transformers "
            f"{transformers.__version__} ({error}): {advice}"
        ) from error


def instructions() -> str:
    """What sentence-transformers calls the integer instructions of this processor."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return "arm64"
    info = Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    known = (("avx512_vnni", "avx512_vnni"), ("avx512f", "avx512"))
    return next((name for flag, name in known if flag in flags), "avx2")


def exported(name: str, folder: Path) -> Path:
    """The folder of a cross-encoder: the named one itself, or a finished run's model, written into `folder`."""
    if (Path(name) / "config.json").is_file():
        return Path(name)
    from aslab import export

    return export.export(name, folder)


def in_onnx(source: Path, folder: Path) -> dict[str, CrossEncoder]:
    """The same model in ONNX, in float32 and in int8; its files are written into `folder`."""
    import onnxruntime
    from sentence_transformers import export_dynamic_quantized_onnx_model

    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads = torch.get_num_threads()
    onnx = {"provider": "CPUExecutionProvider", "session_options": session}
    whole = CrossEncoder(str(source), backend="onnx", model_kwargs=onnx | {"export": True}, **OPTIONS)
    whole.save_pretrained(str(folder))
    export_dynamic_quantized_onnx_model(whole, instructions(), str(folder))
    (small,) = (folder / "onnx").glob("*int8*.onnx")
    quantised = onnx | {"file_name": f"onnx/{small.name}"}
    return {"onnx": whole, "onnx_int8": CrossEncoder(str(folder), backend="onnx", model_kwargs=quantised, **OPTIONS)}


def precision(questions: list, scores: dict[str, np.ndarray]) -> dict[str, dict]:
    """MAP of each side, and how it differs from torch's, question by question."""
    rows = [(question.id, candidate.label) for question in questions for candidate in question.candidates]
    table = pd.DataFrame(rows, columns=["question_id", "label"])
    values = {
        side: metrics.of(table.assign(score=column), empty="skip").per_question["average_precision"]
        for side, column in scores.items()
    }
    compared = {}
    for side, column in scores.items():
        compared[side] = {"map": float(f"{values[side].mean():.4f}")}
        if side != "torch":
            against = metrics.paired_bootstrap(values[side], values["torch"])
            low, high = against.interval
            compared[side] |= {
                "map_difference": float(f"{against.difference:.4f}"),
                "interval": f"{low:.4f} to {high:.4f}",
                "largest_score_difference": float(f"{np.abs(column - scores['torch']).max():.2g}"),
            }
    return compared


def texts_of(questions: list) -> list[tuple[str, str]]:
    return [(question.text, candidate.text) for question in questions for candidate in question.candidates]


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("model", help="an exported folder, or a finished run of finetune on pairs")
    parser.add_argument("--dataset", default="wikiqa", help="whose test questions are ranked (default: wikiqa)")
    given = parser.parse_args()
    require_onnx()
    transformers.utils.logging.set_verbosity_error()
    rounds = given.rounds or (3 if given.quick else 5)
    questions = list(answers.load_answers(given.dataset)["test"])[: QUICK_QUESTIONS if given.quick else None]
    pairs = texts_of(questions)
    some = pairs[: QUICK_PAIRS if given.quick else SPEED_PAIRS]
    options = {"batch_size": BATCH, "show_progress_bar": False, "activation_fn": torch.nn.Identity()}
    with tempfile.TemporaryDirectory() as folder:
        source = exported(given.model, Path(folder) / "exported")
        models = {"torch": CrossEncoder(str(source), **OPTIONS)} | in_onnx(source, Path(folder) / "onnx")
        scores = {side: model.predict(pairs, **options) for side, model in models.items()}
        sides = {side: lambda model=model: model.predict(some, **options) for side, model in models.items()}
        wall, _ = side_by_side.seconds(sides, rounds)
        bytes_of = {side: file_size(source, Path(folder) / "onnx", side) for side in models}
    ratio = {side: side_by_side.ratios(wall[side], wall["torch"]) for side in ("onnx", "onnx_int8")}
    quality = precision(questions, scores)
    measured = {
        **{
            side: {
                "pairs_a_second": side_by_side.spread(len(some) / second for second in wall[side]),
                **({"times_torch": ratio[side]} if side in ratio else {}),
                **quality[side],
                "megabytes": bytes_of[side],
            }
            for side in models
        },
        "model": Path(given.model).name,
        "dataset": given.dataset,
        "questions": len(questions),
        "pairs": len(pairs),
        "pairs_a_round": len(some),
        "instructions": instructions(),
        "batch_size": BATCH,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "quick": given.quick,
    }
    side_by_side.show(side_by_side.headline("backends", GOAL, {"onnx_int8": ratio["onnx_int8"]}, **measured))


def file_size(source: Path, onnx: Path, side: str) -> float:
    """The size of a side's weights on disk, in megabytes."""
    weights = {
        "torch": source.glob("*.safetensors"),
        "onnx": (onnx / "onnx").glob("model.onnx*"),
        "onnx_int8": (onnx / "onnx").glob("*int8*.onnx"),
    }
    return round(sum(file.stat().st_size for file in weights[side]) / 1e6, 1)


if __name__ == "__main__":
    main()
