"""A training step on a CPU, the size of the stand-in with 30 million parameters: this project against a plain PyTorch loop.

Both sides train the same model (6 layers, 384 wide, 50,265 tokens, random weights) on the same optimiser batches,
pairs of SSP with masked tokens, with dropout, gradients clipped to 1 and the same learning rates. The plain loop
orders a batch by length, pads each micro-batch to its longest, and steps with torch's own dropout, attention and
AdamW. Further sides are this project without one of its parts each, and with its backbone compiled, which takes the
place of its own attention, dropout and memory. Before that both sides take the same steps without dropout: their
losses must agree to 1e-3 at every step.

Two sides at a time, each in a process of its own, take turns of a few steps: where the speed of a machine changes within minutes, as it
does where others share it, it changes for both. The first step of a turn is not timed.

    python benchmarks/cpu_step.py
    python benchmarks/cpu_step.py --quick    # the plain loop alone

bf16 is measured where the processor has instructions for it. The last line is one JSON object.
"""

import contextlib
import copy
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from unittest import mock

import numpy as np
import side_by_side
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from training_step import index, model_operations, roberta

from asutil import inputs, sampling, training
from asutil.inputs import packing
from asutil.models import loading, memory
from asutil.training import cpu, trainer

PEAK_LR, WARMUP, DECAY, SEED = 1e-4, 10, 0.01, 0
# Of a micro-batch: what is padded is fastest at some 1,024 tokens; what is packed does not depend on it from there on.
PADDED, PACKED = 1024, 4096
CHECKED = 8  # examples of a batch whose losses are compared
UNTIMED = 3  # steps of a side before its time counts


def ours(model, batches, precision: str, layout: str | None = None, compile: bool | None = None) -> list[float]:
    """The losses of this project's steps."""
    batches.layout, batches.micro_tokens = layout, PADDED if layout else PACKED
    options = {"peak_lr": PEAK_LR, "warmup_steps": WARMUP, "weight_decay": DECAY, "seed": SEED}
    options |= {"precision": precision, "compile": compile}
    with tempfile.TemporaryDirectory() as folder:
        history = training.train(model, batches, folder, save_every=10**6, log_every=1, progress=False, **options)
    return [row["loss"] for row in history["log"]]


def plain(model, batches, precision: str) -> list[float]:
    """The losses of a plain loop."""
    batches.layout, batches.micro_tokens = "ordered", PADDED
    model.train()
    optimizer = unfused(trainer.adamw)(model, PEAK_LR, DECAY)
    losses = []
    for step in range(len(batches)):
        batch, total = batches[step], 0.0
        for micro in batch["micro"]:
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                pair, words = model(micro)
            loss = (
                torch.nn.functional.cross_entropy(words.float(), micro["masked_targets"], reduction="sum")
                / batch["masked"]
            )
            loss = (
                loss
                + torch.nn.functional.cross_entropy(pair.float(), micro["labels"], reduction="sum") / batch["examples"]
            )
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = trainer.learning_rate(step, len(batches), PEAK_LR, WARMUP)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses


@contextlib.contextmanager
def torchs_dropout(model, *_):
    """In place of `cpu.fast`: everything but the keyed masks."""
    with memory.kept(), packing.plain_attention(model):
        yield


def unfused(fused):
    """`trainer.adamw` with torch's default implementation."""

    def adamw(model, peak_lr, weight_decay):
        groups = [
            {key: group[key] for key in ("params", "weight_decay")}
            for group in fused(model, peak_lr, weight_decay).param_groups
        ]
        return torch.optim.AdamW(groups, lr=peak_lr)

    return adamw


def peak(precision: str) -> float:
    """Operations a second of a product of two matrices of 2,048 x 2,048."""
    left = torch.randn(2048, 2048).to(torch.bfloat16 if precision == "bf16" else torch.float32)
    left @ left
    times = []
    for _ in range(5):
        started = time.perf_counter()
        left @ left
        times.append(time.perf_counter() - started)
    return 2 * 2048**3 / float(np.median(times))


def still(model):
    """A copy without dropout."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


# ------------------------------------------------------------------ turns


def sides(precision: str) -> dict:
    """What takes turns: functions of a model and its batches."""
    run = partial(ours, precision=precision)
    return {
        "ours": run,
        "plain": partial(plain, precision=precision),
        "padded": partial(run, layout="ordered"),
        "torch's dropout": partial(patched, cpu, "fast", torchs_dropout, run),
        "memory given back": partial(patched, memory, "kept", contextlib.nullcontext, run),
        "unfused AdamW": partial(patched, trainer, "adamw", unfused(trainer.adamw), run),
        "compiled": partial(run, compile=True),
    }


def patched(where, name: str, other, run, *arguments):
    with mock.patch.object(where, name, other):
        return run(*arguments)


def work(side, model, batches) -> None:
    """Take a step for each line of standard input, and answer with its seconds, on the wall's clock and on the processor's.

    Steps from UNTIMED on; those before are taken at once.
    """
    began, taken = [], []

    def wait(*_):
        ended = time.perf_counter(), time.process_time()
        taken.append(ended)
        if len(taken) < UNTIMED:
            return
        print(json.dumps([end - start for start, end in zip(began, ended)]), flush=True)
        if not sys.stdin.readline():
            raise SystemExit
        began[:] = time.perf_counter(), time.process_time()

    register_optimizer_step_post_hook(wait)
    side(model, batches)


@contextlib.contextmanager
def worker(side: str, precision: str, given):
    """A process that works as one side; it comes as a function that has it take a step, and returns the step's seconds."""
    command = [sys.executable, __file__, "--side", side, "--precision", precision, "--folder", given.folder]
    command += [f"--{name.replace('_', '-')}={getattr(given, name)}" for name in ("batch_size", "steps", "rounds")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer() -> list[float]:
        if not (line := process.stdout.readline()):
            raise SystemExit(f"{side}: its process ended with status {process.wait()}, its error is printed above")
        return json.loads(line)

    def step() -> list[float]:
        process.stdin.write("\n")
        process.stdin.flush()
        return answer()

    with process:
        answer()
        yield step


def turns(other: str, precision: str, given) -> np.ndarray:
    """Seconds of this project and of another side, round by round. Shape: (2 sides, rounds, 2 clocks)"""
    with worker("ours", precision, given) as ours, worker(other, precision, given) as theirs:
        read = np.zeros((2, given.rounds, 2))
        for number in range(given.rounds):
            for place, step in ((0, ours), (1, theirs))[:: -1 if number % 2 else 1]:
                step()  # memory and caches were the other side's
                read[place, number] = np.sum([step() for _ in range(given.steps)], axis=0)
    print(f"{precision}: ours {read[0, :, 0].sum():.1f} s, {other} {read[1, :, 0].sum():.1f} s", flush=True)
    return read


def measure(precision: str, model, make, given) -> dict:
    """Speeds, ratios and losses in one precision."""
    check = make(given.check_steps, CHECKED)
    quiet = [run(still(model), check, precision) for run in (ours, plain)]
    loud = [run(copy.deepcopy(model), check, precision) for run in (ours, plain)]
    apart = float(np.abs(np.subtract(*quiet)).max())
    if precision == "fp32" and apart > 1e-3:
        raise SystemExit(f"without dropout the losses of a step differ by {apart:.2g}: at most 0.001 expected")
    others = ["plain"] if given.quick else list(sides(precision))[1:]
    read = {name: turns(name, precision, given) for name in others}
    batches = make(total_steps(given), given.batch_size)
    batches.layout, batches.micro_tokens = "packed", PACKED
    timed = [
        batches[UNTIMED + number * (1 + given.steps) + step]
        for number in range(given.rounds)
        for step in range(1, 1 + given.steps)
    ]
    tokens = sum(batch["tokens"] for batch in timed)
    operations, best = sum(model_operations(model.backbone.config, batch) for batch in timed), peak(precision)
    against = {name: side_by_side.spread(taken[1, :, 0] / taken[0, :, 0]) for name, taken in read.items()}
    wall, processor = (read["plain"][..., clock] for clock in (0, 1))
    return {
        "clocks": {"wall": against.pop("plain"), "processor": side_by_side.ratios(*processor)},
        **({"with_torch_compile": against.pop("compiled"), "without_one_part": against} if against else {}),
        "tokens_a_second": {name: round(tokens / taken.sum()) for name, taken in zip(("ours", "plain"), wall)},
        "share_of_matrix_product": round(float(operations / wall[0].sum() / best), 3),
        "matrix_product_gflops": round(best / 1e9),
        "losses": {
            "steps": given.check_steps,
            "largest_difference_without_dropout": float(f"{apart:.2g}"),
            "mean_with_dropout": {
                name: round(float(np.mean(values)), 4) for name, values in zip(("ours", "plain"), loud)
            },
        },
    }


def total_steps(given) -> int:
    return UNTIMED + given.rounds * (1 + given.steps)


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--folder", default="runs/benchmarks", help="where the index is kept")
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--steps", type=int, default=4, help="of a turn that are timed")
    parser.add_argument("--check-steps", type=int, default=50, help="whose losses are compared")
    parser.add_argument(
        "--side",
        choices=sides("fp32"),
        help="measure nothing, but work as this side; steps are asked for on standard input",
    )
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="of --side")
    given = parser.parse_args()
    given.rounds = given.rounds or (1 if given.quick else 3)
    if given.quick:
        given.steps, given.check_steps = 2, 3
    corpus = index("pydocs", given.folder)
    config = roberta(corpus.tokenizer, 6, 384, 50265, heads=12, types=2)
    torch.manual_seed(SEED)
    model = loading.from_config(config, corpus.tokenizer)
    sampler = sampling.Sampler(corpus, "ssp", max_tokens=128)
    make = lambda steps, size: inputs.PretrainingBatches(lambda epoch: sampler, steps, size)
    if given.side:
        work(sides(given.precision)[given.side], model, make(total_steps(given), given.batch_size))
        return
    able = torch.backends.cpu.get_cpu_capability() != "AVX2"
    precisions = ("fp32", *["bf16"] * able)
    measured = {precision: measure(precision, model, make, given) for precision in precisions}
    compared = {f"{name} {clock}": spread for name, one in measured.items() for clock, spread in one["clocks"].items()}
    settings = {name: getattr(given, name) for name in ("batch_size", "steps", "rounds")}
    settings |= {"micro_tokens": {"packed": PACKED, "padded": PADDED}}
    side_by_side.show(
        side_by_side.headline(
            "cpu_step",
            1.6,
            compared,
            **measured,
            bf16_measured=able,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            settings=settings,
            device=f"{torch.get_num_threads()} CPU threads, {torch.backends.cpu.get_cpu_capability()}",
        )
    )


if __name__ == "__main__":
    main()
