"""Makes the embedded backbone from a finished run of `pretrain` that learnt masked language modelling alone."""

import shutil
from pathlib import Path

from transformers import AutoModelForMaskedLM, AutoTokenizer, RobertaForMaskedLM

from asutil.io import checkpoints, disk, hub

from . import commands, rundir


def export(run: str | Path, folder: str | Path) -> Path:
    """Write the masked-language model of a finished run in half precision, with tokenizer, record and log of its losses.

    Raises: ValueError for a run that is not finished or not of a RoBERTa, or that learnt anything but masked language modelling.
    """
    path = checkpoints.source(run)
    run_folder, record = rundir.finished(run)
    learnt = record["settings"].get("objective")
    if learnt != "mlm":
        raise ValueError(f"{run}: a run of pretrain with objective=mlm is expected, its objective is {learnt}")
    masked, _ = checkpoints.with_head(AutoModelForMaskedLM, path, run)
    if not isinstance(masked, RobertaForMaskedLM):
        raise ValueError(f"{run}: a RoBERTa is expected, it is {masked.config.model_type}")
    parameters = masked.lm_head.named_parameters("mlm.lm_head")
    head = {name: parameter for name, parameter in parameters if name != "mlm.lm_head.decoder.weight"}  # it is tied
    checkpoints.restore(head, checkpoints.saved_heads(path), run)
    for seal in ("weights_sha256", "model_sha256", "tables_sha256", "content_sha256"):
        record.pop(seal, None)
    with disk.whole_folder(folder) as part, checkpoints.quiet():
        masked.half().save_pretrained(part)
        checkpoints.from_pretrained(AutoTokenizer, path, run).save_pretrained(part)
        shutil.copyfile(run_folder / "log.jsonl", part / "log.jsonl")
        disk.write_json(part / "record.json", record | {"model_sha256": hub.sha256(part / "model.safetensors")})
    return Path(folder)


def export_and_measure(run: str, out: Path) -> str:
    corpus = rundir.finished(run)[1]["settings"]["corpus"]
    if out == hub.EMBEDDED_FOLDER and corpus != "pydocs":
        raise ValueError(f"{run}: the embedded backbone is of pydocs, this run read {corpus}: give another --out")
    folder = export(run, out)
    return f"{folder}: {sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.1f} MB"


command = commands.command(
    export_and_measure,
    commands.argument("run", "a finished run of pretrain with objective=mlm, by its name or folder"),
    commands.option("--out", "folder to write; default: that in the package", type=Path, default=hub.EMBEDDED_FOLDER),
    example="asutil embedded pretrain-mlm-<hash>",
)
