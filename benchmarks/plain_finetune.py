"""The same fine-tuning as a plain PyTorch loop: what `notebooks/finetune.ipynb` must agree with, within the spread of seeds.

It shares the data set with the project and nothing else: the tokenizer pads pairs of text, the model is AutoModelForSequenceClassification,
batches are shuffled at random, and trec_eval measures. The last line is one JSON object.

    python benchmarks/plain_finetune.py --dataset wikiqa --model ibm-granite/granite-embedding-30m-english --seed 0
"""

import argparse
import json
import time

import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

from asutil.data import answers
from asutil.io import hub
from asutil.metrics import peers


def flat(split):
    return [(q.id, c.id, q.text, c.text, c.label) for q in split for c in q.candidates]


def scores(model, tokenizer, split, max_tokens):
    rows, found = flat(split), []
    with torch.no_grad():
        for start in range(0, len(rows), 64):
            part = rows[start : start + 64]
            texts = [row[2] for row in part], [row[3] for row in part]
            batch = tokenizer(
                *texts, truncation="longest_first", max_length=max_tokens, padding=True, return_tensors="pt"
            )
            found += (model(**batch).logits @ torch.tensor([-1.0, 1.0])).tolist()
    table = pd.DataFrame(rows, columns=["question_id", "candidate_id", "question", "answer", "label"])
    return table.assign(score=found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="wikiqa")
    parser.add_argument("--model", default="ibm-granite/granite-embedding-30m-english")
    parser.add_argument("--train-questions", default="with_positive")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--peak-lr", type=float, default=3e-5)
    parser.add_argument("--warmup-steps", type=int, default=27)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    splits = answers.load_answers(given.dataset, "clean", given.train_questions)
    path = hub.model_path(given.model)
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForSequenceClassification.from_pretrained(path, num_labels=2, dtype=torch.float32)
    rows = flat(splits["train"])
    steps = -(-len(rows) // given.batch_size) * given.epochs
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.peak_lr, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, given.warmup_steps, steps)
    started = time.monotonic()
    model.train()
    with tqdm(total=steps, unit=" steps") as bar:
        for _ in range(given.epochs):
            for numbers in torch.randperm(len(rows)).split(given.batch_size):
                part = [rows[n] for n in numbers.tolist()]
                texts = [row[2] for row in part], [row[3] for row in part]
                batch = tokenizer(
                    *texts, truncation="longest_first", max_length=given.max_tokens, padding=True, return_tensors="pt"
                )
                loss = torch.nn.functional.cross_entropy(model(**batch).logits, torch.tensor([row[4] for row in part]))
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                bar.update()
    seconds = time.monotonic() - started
    model.eval()
    test = peers.by_trec_eval(scores(model, tokenizer, splits["test"], given.max_tokens))
    print(json.dumps({"name": "plain_finetune", **vars(given), "training_seconds": round(seconds, 1), "test": test}))


if __name__ == "__main__":
    main()
