"""Pre-training steps a second: this project against transformers' Trainer with DataCollatorForLanguageModeling.

Both sides train a RoBERTa of random weights, of the same size, on the same pairs in the same order; what counts is real tokens a second,
padding left out. The peer tokenises pairs of text, masks them with the collator and learns MLM alone; this project learns its
sentence-level objective beside it. Rounds alternate between all sides, so that what else runs on the machine falls on all of them.

    python benchmarks/training_step.py            # a small model on a CPU; RoBERTa-base in bfloat16 where there is a GPU
    python benchmarks/training_step.py --quick

It needs this package with torch, transformers, accelerate, tensorboard, pandas and pyarrow. The index of the corpus, some 3 MB, is built
at the first call (with blingfire) and read from --folder afterwards: to a machine without blingfire bring that folder along.
`trainer_overhead` is the project's Trainer against a bare loop over the same batches. On a GPU, where this project compiles the backbone
and the peer does not, it also trains without that, and `largest_micro_batch` has the most tokens that pass through the model together,
doubled until memory ends, and the peak of memory. The last line is one JSON object.
"""

import contextlib
import re
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import side_by_side
import torch
import transformers
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, SequentialSampler
from transformers import DataCollatorForLanguageModeling, RobertaConfig, RobertaForMaskedLM, Trainer, TrainingArguments

from asutil import corpus, inputs, sampling, training
from asutil.corpus import sources, tokenizers
from asutil.models import loading
from asutil.training import cpu

SIZES = {"tiny": (2, 128, 8192), "small": (4, 256, 8192), "base": (12, 768, 50265)}  # layers, hidden size, vocabulary
MAX_TOKENS = 128
PEAK, OF = 989e12, ("H100", "H200")  # dense bfloat16 operations a second, by their data sheets
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


class Clock:
    """Seconds, and processor seconds, from the end of optimiser step `first` to the end of step `last`, whoever takes the steps."""

    def __init__(self, first, last):
        self.marks, self.steps, self.read = (first, last), 0, []

    def __call__(self, *_):
        self.steps += 1
        if self.steps in self.marks:
            if GPU:
                torch.cuda.synchronize()
            self.read.append((time.perf_counter(), time.process_time()))

    def measure(self, run) -> np.ndarray:
        self.steps, self.read = 0, []
        hook = register_optimizer_step_post_hook(self)
        run()
        hook.remove()
        return np.subtract(self.read[1], self.read[0])


def ours(model, batches, compile=None):
    options = {
        "compile": compile,
        "peak_lr": 1e-4,
        "warmup_steps": 2,
        "weight_decay": 0.01,
        "seed": 0,
        "save_every": 10**6,
        "log_every": 100,
    }
    with tempfile.TemporaryDirectory() as folder:
        return training.train(model, batches, folder, progress=False, **options)


def bare(model, batches):
    """The same steps without any Trainer: what cannot be saved."""
    model.train()
    model.compiled = torch.compile(model.backbone.forward, dynamic=True) if GPU else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    with contextlib.nullcontext() if GPU else cpu.fast(model, cpu.KeyedDropout()):
        for batch in DataLoader(batches, 1, collate_fn=lambda items: items[0], num_workers=2 * GPU, pin_memory=GPU):
            for micro in batch["micro"]:
                micro = {
                    name: value.to(DEVICE, non_blocking=True) if torch.is_tensor(value) else value
                    for name, value in micro.items()
                }
                with torch.autocast(DEVICE, torch.bfloat16, enabled=GPU):
                    logits = model(micro)
                model.losses(logits, micro, batch).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.compiled = None


class InOrder(Trainer):
    def _get_train_sampler(self, *_):
        return SequentialSampler(self.train_dataset)


def peer(model, pairs, tokenizer, steps, batch_size, padding):
    """transformers' Trainer; `pairs` are cycled over."""
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)

    def collate(chosen):
        first, second = zip(*chosen)
        encoded = tokenizer(
            first,
            second,
            truncation="longest_first",
            max_length=MAX_TOKENS,
            padding=padding,
            return_special_tokens_mask=True,
        )
        return collator([{name: values[row] for name, values in encoded.items()} for row in range(len(chosen))])

    rows = min(batch_size, 256)  # of one pass through the model; its logits at all positions do not fit otherwise
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=batch_size // rows,
            learning_rate=1e-4,
            warmup_steps=2,
            weight_decay=0.01,
            bf16=GPU,
            optim="adamw_torch_fused",
            dataloader_num_workers=8 * GPU,
            dataloader_pin_memory=GPU,
            remove_unused_columns=False,
            logging_steps=100,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        cycled = [pairs[number % len(pairs)] for number in range(steps * batch_size)]
        trainer = InOrder(model, arguments, train_dataset=cycled, data_collator=collate)
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()


def largest_micro_batch(model, sampler, size=1 << 14, most=1 << 23) -> dict:
    """The most tokens, doubling from `size`, that a forward and a backward pass take at once, and the peak of memory with them.

    The states of an optimiser are not included.
    """
    largest = {}
    while size <= most:
        logits = micro = None  # those of the last size would count
        pairs = size // MAX_TOKENS  # of at most so many tokens each
        batches = inputs.PretrainingBatches(lambda epoch: sampler, 1, pairs, size, layout="packed")
        if GPU:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            micro = {
                name: value.to(DEVICE) if torch.is_tensor(value) else value
                for name, value in batches[0]["micro"][0].items()
            }
            with torch.autocast(DEVICE, torch.bfloat16, enabled=GPU):
                logits = model(micro)
            model.losses(logits, micro, batches[0]).sum().backward()
        except torch.OutOfMemoryError:
            break
        finally:
            model.zero_grad()
        largest = {"tokens": int(micro["input_ids"].numel()), "pairs": len(micro["first"])}
        largest["peak_memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2) if GPU else None
        size *= 2
    return largest


def model_operations(config, batch) -> float:
    """Floating-point operations of forward and backward on the real tokens of one optimiser batch, recomputation and padding left out."""
    layers, hidden = config.num_hidden_layers, config.hidden_size
    ends = [micro["cu_seq_lens"].diff()[: len(micro["first"])].double() for micro in batch["micro"]]
    squares = sum(float(lengths.square().sum()) for lengths in ends)
    projections, behind = 3 * hidden**2, hidden**2 + 2 * hidden * config.intermediate_size
    body = batch["tokens"] * layers * (projections + behind)
    head = hidden**2 + hidden * config.vocab_size
    return 6 * body + 12 * layers * hidden * squares + 6 * batch["masked"] * head


def index(source, folder):
    """The index of a corpus' first documents, with a tokenizer trained on them."""
    out = Path(folder) / f"training_step-{re.sub(r'[^A-Za-z0-9]+', '-', source)}"
    if not out.is_dir():
        out.parent.mkdir(parents=True, exist_ok=True)
        documents = list(sources.documents(source, limit=4000))
        tokenizer = tokenizers.train_tokenizer(
            ("\n\n".join(d) if isinstance(d, list) else d for d in documents), vocab_size=8192
        )
        corpus.build(documents, tokenizer, out, source=source)
    return corpus.Corpus.open(out)


def roberta(tokenizer, layers: int, hidden: int, vocabulary: int, heads: int, types: int = 1) -> RobertaConfig:
    """The config of a RoBERTa for inputs of 512 tokens."""
    size = {"num_hidden_layers": layers, "hidden_size": hidden, "vocab_size": vocabulary, "num_attention_heads": heads}
    size |= {"intermediate_size": 4 * hidden, "max_position_embeddings": 514, "type_vocab_size": types}
    return RobertaConfig(**size, **loading.special_ids(tokenizer))


def sides(given, found, config) -> tuple:
    """What takes turns: this project, a bare loop over its batches, the peer padded to 128 and to the longest of a batch.

    Returns: the sides, this project's batches, how long it waited for each, and what finds the largest micro-batch.
    """
    tokenizer, waiting = found.tokenizer, []
    sampler = sampling.Sampler(found, "ssp", max_tokens=MAX_TOKENS)
    batches = inputs.PretrainingBatches(lambda epoch: sampler, given.steps, given.batch_size, given.micro_tokens)
    pairs = [sampler[number].parts for number in range(min(len(sampler), given.steps * given.batch_size))]
    model = loading.from_config(config, tokenizer).to(DEVICE)
    other = partial(peer, pairs=pairs, tokenizer=tokenizer, steps=given.steps, batch_size=given.batch_size)
    turns = {
        "ours": lambda: waiting.append(ours(model, batches, compile=GPU or None)["waiting"]),
        "bare": partial(bare, model, batches),
        "padded": partial(other, RobertaForMaskedLM(config), padding="max_length"),
        "dynamic": partial(other, RobertaForMaskedLM(config), padding="longest"),
    }
    if GPU:
        turns["not_compiled"] = lambda: ours(model, batches, compile=False)
    return turns, batches, waiting, partial(largest_micro_batch, model, sampler)


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--folder", default="runs/benchmarks", help="where the index is kept")
    parser.add_argument(
        "--corpus", default="pydocs", help="source of the documents: pydocs, a hub id, a folder, a file"
    )
    parser.add_argument("--size", choices=SIZES, help="of the model; base on a GPU, small on a CPU, tiny with --quick")
    parser.add_argument("--batch-size", type=int, default=1024 if GPU else 32)
    parser.add_argument("--micro-tokens", type=int, default=65536 if GPU else 4096)
    parser.add_argument(
        "--steps", type=int, default=40 if GPU else 16, help="of a round; the first quarter is not timed"
    )
    given = parser.parse_args()
    given.size = given.size or ("tiny" if given.quick else "base" if GPU else "small")
    given.steps, given.rounds = (
        (8, given.rounds or 2) if given.quick else (given.steps, given.rounds or (3 if GPU else 5))
    )
    transformers.utils.logging.set_verbosity_error()
    found = index(given.corpus, given.folder)
    layers, hidden, vocabulary = SIZES[given.size]
    config = roberta(found.tokenizer, layers, hidden, vocabulary, heads=max(hidden // 64, 4))
    turns, batches, waiting, largest = sides(given, found, config)
    first = given.steps // 4
    clock, read = Clock(first, given.steps), {name: [] for name in turns}
    for number in range(given.rounds):
        for name in list(turns)[:: -1 if number % 2 else 1]:
            read[name].append(clock.measure(turns[name]))
        print(
            f"round {number + 1}:",
            ", ".join(f"{name} {values[-1][0]:.2f} s" for name, values in read.items()),
            flush=True,
        )

    timed = [batches[step] for step in range(first, given.steps)]
    tokens = sum(batch["tokens"] for batch in timed)
    wall, processor = ({name: np.array(values)[:, place] for name, values in read.items()} for place in (0, 1))
    clocks = (
        {"wall": wall} if GPU else {"wall": wall, "processor": processor}
    )  # the wall's clock counts the neighbours' work too
    worked = list(clocks.values())[-1]
    compared = {name: side_by_side.ratios(taken["ours"], taken["padded"]) for name, taken in clocks.items()}
    measured = {
        "clocks": compared,
        "against_dynamic_padding": side_by_side.ratios(worked["ours"], worked["dynamic"])
        | ({"goal": 1.5} if GPU else {}),
        "trainer_overhead": side_by_side.spread(worked["ours"] / worked["bare"] - 1) | {"goal": 0.03},
        "waiting_for_data": side_by_side.spread(np.array(waiting) / wall["ours"]) | ({"goal": 0.01} if GPU else {}),
        "tokens_a_second": {name: round(tokens / float(np.median(values))) for name, values in wall.items()},
        "tokens_a_pair": round(tokens / len(timed) / given.batch_size, 1),
        "corpus": given.corpus,
        "model": {"size": given.size, "layers": layers, "hidden": hidden, "vocabulary": vocabulary},
        "settings": {name: getattr(given, name) for name in ("batch_size", "micro_tokens", "steps", "rounds")}
        | {"layout": batches.layout},
        "device": torch.cuda.get_device_name() if GPU else f"{torch.get_num_threads()} CPU threads",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    if GPU:
        if any(name in measured["device"] for name in OF):
            share = sum(model_operations(config, batch) for batch in timed) / PEAK / wall["ours"]
            measured["share_of_989_tflops"] = side_by_side.spread(share) | {"goal": 0.3}
        measured["compiled_against_not"] = side_by_side.ratios(wall["ours"], wall["not_compiled"])
        turns.clear()  # the peer's models leave the GPU
        try:
            measured["largest_micro_batch"] = largest()
        except RuntimeError as error:  # such as a tensor with too many elements: what was measured is kept
            measured["largest_micro_batch"] = {"stopped": str(error)[:200]}
    side_by_side.show(side_by_side.headline("training_step", 2.5, compared, **measured))


if __name__ == "__main__":
    main()
