"""Sampling and masking on one core: this project against text pairs -> tokenizer -> DataCollatorForLanguageModeling.

Both sides make masked pre-training examples of the same pairs, on one thread and by the processor's clock, so that what else runs on
the machine does not count. This project draws the pairs itself and reads their token ids from its index; the peer is given finished
pairs of text and has to tokenise, pad and mask them; of examples with a context, which it cannot take as a third text, the second
text has candidate and context; the texts of mspp it takes one by one, each cut and padded to its slot. The first figure is sampling
and masking; `batches` has padding, ordering by length and tensors as well, all that a training step takes.

    python benchmarks/sampling.py [--quick]

The corpus is local/wikipedia_small of ASUTIL_MIRROR where that is set, else the embedded pydocs; its index is kept under --folder.
"""

import itertools
import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core for both sides

import numpy as np
import side_by_side
import torch
from transformers import DataCollatorForLanguageModeling

from asutil import corpus, inputs, sampling
from asutil.corpus import tokenizers
from asutil.draws import keyed
from asutil.inputs import masking
from asutil.io import hub

BATCH = 4096  # the paper's
GOAL, EXAMPLES, TOKENS = (
    50,
    500_000,
    40_000_000,
)  # times the peer; a second and core: examples, or tokens where contexts are longer


def open_corpus(folder):
    """The index of real documents, kept between calls."""
    real = hub.mirror("local/wikipedia_small") is not None
    source = "local/wikipedia_small" if real else "pydocs"
    model = "ibm-granite/granite-embedding-30m-english" if real else "tiny"
    tokenizer = tokenizers.tokenizer_for(model, source, folder)
    return source, corpus.prepare(source, tokenizer, folder, progress=True)


class Objective:
    """The two sides of one objective."""

    def __init__(self, found, name, batches, pairs):
        self.sampler = sampling.Sampler(found, name)
        self.numbers = [np.arange(n * BATCH, (n + 1) * BATCH) % len(self.sampler) for n in range(batches)]
        self.batches = inputs.PretrainingBatches(lambda epoch: self.sampler, batches, BATCH)
        self.pairs = [self.sampler[int(number)].parts for number in np.linspace(0, len(self.sampler) - 1, pairs)]
        self.tokenizer, self.template = found.tokenizer, self.batches.template
        self.collator = DataCollatorForLanguageModeling(found.tokenizer, mlm_probability=0.15)
        self.tokens = 0

    def ours(self):
        self.tokens = 0
        for numbers in self.numbers:
            ragged = inputs.join_spans(self.sampler, self.sampler.spans(numbers), self.template)
            ids, _, _ = masking.mask(ragged, self.template, keyed(0, 0, numbers))
            self.tokens += len(ids)

    def whole(self):
        for step in range(len(self.batches)):
            self.batches.made_of([(0, self.numbers[step])])

    def peer(self):
        for start in range(0, len(self.pairs), 64):
            if len(self.pairs[0]) > 3:
                self.collator([self.laid_out(parts) for parts in self.pairs[start : start + 64]])
                continue
            first, second = map(
                list, zip(*((first, " ".join(others)) for first, *others in self.pairs[start : start + 64]))
            )
            encoded = self.tokenizer(
                first,
                second,
                truncation="longest_first",
                max_length=self.sampler.max_tokens,
                return_special_tokens_mask=True,
            )
            self.collator([{key: values[row] for key, values in encoded.items()} for row in range(len(first))])

    def laid_out(self, parts):
        """The texts of a group, each cut and padded to its slot."""
        encoded = self.tokenizer(
            list(parts),
            truncation=True,
            max_length=self.sampler.slot_tokens,
            padding="max_length",
            return_special_tokens_mask=True,
        )
        return {key: list(itertools.chain.from_iterable(values)) for key, values in encoded.items()}


def main():
    parser = side_by_side.arguments(__doc__)
    parser.add_argument("--folder", default="runs/benchmarks", help="where the index is kept")
    given = parser.parse_args()
    torch.set_num_threads(1)
    source, found = open_corpus(given.folder)
    batches, pairs, rounds = (8, 512, given.rounds or 3) if given.quick else (32, 2048, given.rounds or 9)
    compared, objectives = {}, {}
    for name in sampling.OBJECTIVES:
        one = Objective(found, name, batches, pairs)
        one.ours(), one.peer(), one.whole()  # what is done once, at the first call
        _, taken = side_by_side.seconds({"ours": one.ours, "peer": one.peer, "whole": one.whole}, rounds)
        examples = batches * BATCH
        compared[name] = side_by_side.ratios(taken["ours"], taken["peer"], examples, pairs)
        rate = side_by_side.spread(examples / second for second in taken["ours"])
        tokens = side_by_side.spread(one.tokens / second for second in taken["ours"])
        objectives[name] = {
            "ratio": compared[name],
            "batches": side_by_side.ratios(taken["whole"], taken["peer"], examples, pairs),
            "examples_a_second": rate,
            "tokens_a_second": tokens,
            "fast_enough": rate["median"] >= EXAMPLES or tokens["median"] >= TOKENS,
            "tokens_an_example": round(one.tokens / examples, 1),
            "peer_examples_a_second": side_by_side.spread(pairs / second for second in taken["peer"]),
        }
        print(
            f"{name}: {compared[name]['median']:.0f} times the peer, {rate['median']:,.0f} examples/s, {tokens['median']:,.0f} tokens/s"
        )
    measured = {
        "objectives": objectives,
        "corpus": source,
        "rounds": rounds,
        "batch": BATCH,
        "threads": 1,
        "quick": given.quick,
    }
    side_by_side.show(side_by_side.headline("sampling", GOAL, compared, **measured))


if __name__ == "__main__":
    main()
