"""Finding evidence in a long context: the evidence that a model names, its nearness to the question, and an answer."""

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import normalize
from tqdm.auto import tqdm

from .. import draws
from ..data.long_questions import KINDS
from ..inputs.long import Contexts
from ..inputs.long_batches import by_length, padded, parts_by_length, stacked
from ..inputs.template import Template
from ..metrics import answers
from ..models.finder import EvidenceFinder

LONGEST_SPAN = 30  # tokens of an answer that is read off its start and end
LONGEST_WRITTEN = 100  # tokens of an answer that a decoder writes (D-94)


def warmup(steps: int | None, share: float | None, total: int) -> int:
    """Steps of warm-up: as many as are given, or a share of all steps.

    Raises: ValueError for both or neither.
    Paper: evidence_contrast, appendix B.1 (a share) and B.2 (steps).
    """
    if (steps is None) == (share is None):
        raise ValueError(f"warm-up: either warmup_steps or warmup_share expected, got {steps} and {share}")
    return steps if share is None else round(share * total)


# ------------------------------------------------------------------ answers and evidence


@torch.no_grad()
def predict(
    model: EvidenceFinder, contexts: Contexts, micro_tokens: int = 4096, progress: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What a model says of some questions: a line a sentence, and a line a question.

    Returns: two DataFrames. A line a sentence: question_id, candidate_id ("passage-sentence"), label (1 for evidence),
        score (the logit of the evidence head) and three similarities with the question: raw (cosine of the vectors as
        they are), gold and predicted (as the loss compares them, by the question's gold type and by the predicted one).
        A line a question: question_id, kind, predicted_kind, answer.
    """
    training, device = model.training, next(model.parameters()).device
    model.eval()
    lines, asked, numbers = {}, {}, np.arange(len(contexts))
    with tqdm(total=len(contexts), unit=" questions", disable=not progress, dynamic_ncols=True) as bar:
        for some in by_length(contexts, numbers, micro_tokens):
            micro = {name: tensor.to(device) for name, tensor in padded(contexts, some).items()}
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                found = model(micro)
            written = _written(model, micro) if model.generates else None
            for row, number in enumerate(some):
                lines[number], asked[number] = _said(model, contexts, number, found, row)
                if written is not None:
                    asked[number]["answer"] = written[row]
            bar.update(len(some))
    model.train(training)
    return pd.concat([lines[n] for n in numbers], ignore_index=True), pd.DataFrame([asked[n] for n in numbers])


def _said(model, contexts, number: int, found: dict, row: int) -> tuple[pd.DataFrame, dict]:
    read, question = contexts.read[number], contexts.questions[number]
    count, kinds = len(read.sentences), contexts.kinds
    predicted = int(found["kind"][row].argmax())
    vector, sentences = found["questions"][row], found["sentences"][row, :count]
    seen_questions, seen = model.projected(vector, sentences)
    similarity = {"raw": normalize(sentences, dim=-1) @ normalize(vector, dim=-1)}
    for name, kind in (("gold", read.kind), ("predicted", predicted)):
        place = model.types[kind] if len(seen_questions) > 1 else 0
        similarity[name] = normalize(seen[place], dim=-1) @ normalize(seen_questions[place], dim=-1)
    scores = {"score": found["evidence"][row, :count], **similarity}
    table = _lines_of(question, read).assign(**{name: values.float().cpu().numpy() for name, values in scores.items()})
    answer = _answer(model, contexts, read, found, row, kinds[predicted])
    return table, {
        "question_id": question.id,
        "kind": kinds[read.kind],
        "predicted_kind": kinds[predicted],
        "answer": answer,
    }


def _answer(model, contexts, read, found: dict, row: int, kind: str) -> str:
    """The answer of a model without a decoder: its type's, or the likeliest span within one text."""
    if kind in ("yes", "no", "unanswerable") or model.span is None:
        return kind
    starts, ends = found["span"][row, : len(read.ids)].float().cpu().unbind(-1)
    length = torch.arange(len(starts))
    apart = length[None] - length[:, None]
    pieces = torch.from_numpy(read.pieces)
    allowed = (apart >= 0) & (apart < LONGEST_SPAN) & (pieces[:, None] == pieces[None]) & (pieces > 0)[:, None]
    if not allowed.any():
        return ""
    best = int((starts[:, None] + ends[None]).masked_fill(~allowed, -torch.inf).argmax())
    return read.text(*divmod(best, len(starts)), contexts.encode)


def _written(model, micro: dict) -> list[str]:
    given = {
        "input_ids": micro["input_ids"],
        "attention_mask": micro["attention_mask"],
        "global_attention_mask": micro["is_global"],
    }
    room = (
        getattr(model.backbone.config, "max_decoder_position_embeddings", LONGEST_WRITTEN + 1) - 1
    )  # the first token is given
    ids = model.backbone.generate(**given, max_new_tokens=min(LONGEST_WRITTEN, room), num_beams=1, do_sample=False)
    return [text.strip() for text in model.tokenizer.batch_decode(ids, skip_special_tokens=True)]


# ------------------------------------------------------------------ figures


SIMILARITIES = {
    "map_raw": "raw",
    "map_projected": "gold",
    "map_predicted_type": "predicted",
    "map_evidence_head": "score",
}


def measure(sentences: pd.DataFrame, questions: pd.DataFrame, contexts: Contexts) -> answers.Measured:
    """Answer and evidence by the data set's own rules, and how well three similarities and the evidence head rank the evidence.

    answer_f1, evidence_f1: of HotpotQA's and QASPER's evaluators, evidence being what the head gives more than even
    odds; map_raw, map_projected, map_predicted_type: mean average precision of the evidence by `predict`'s similarities
    (table 1), over the questions that have evidence; type_accuracy: of the question types.
    Paper: evidence_contrast, sections 4.1 and 4.2.
    Args:
        sentences, questions: what `predict` gave for these contexts.
    """
    chosen = {question.id: set() for question in contexts.questions}
    for name, unit in sentences.loc[sentences.score > 0, ["question_id", "candidate_id"]].itertuples(index=False):
        chosen[name].add(tuple(map(int, unit.split("-"))))
    means, table = _official(
        {name: (answer, chosen[name]) for name, answer in zip(questions.question_id, questions.answer)}, contexts
    )
    for name, column in SIMILARITIES.items():
        precisions = average_precisions(sentences, column, contexts)
        means |= {name: float(precisions.mean())}
        table = table.merge(precisions.rename(name), how="left", left_on="question_id", right_index=True)
    means["type_accuracy"] = float((questions.kind == questions.predicted_kind).mean())
    return answers.Measured(means, {"questions": len(contexts.questions)}, table)


def _official(said: dict, contexts: Contexts) -> tuple[dict, pd.DataFrame]:
    """Means and a table of answers and evidence by the data set's own evaluator; evidence that was cut away is missed.

    Args:
        said: question id -> (answer, the places of the sentences that are said to be evidence).
    """
    if set(contexts.kinds) == set(KINDS["qasper"]):
        golds = {
            one.id: [(answer.text, answer.kind, answer.evidence) for answer in one.answers]
            for one in contexts.questions
        }
        official = answers.qasper(said, golds)
        return dict(official.means), official.per_question
    official = answers.hotpotqa(
        said, {one.id: (one.answers[0].text, one.answers[0].evidence) for one in contexts.questions}
    )
    names = {
        "f1": "answer_f1",
        "em": "answer_em",
        "sp_f1": "evidence_f1",
        "sp_em": "evidence_em",
        "joint_f1": "joint_f1",
    }
    table = official.per_question.rename(columns=names)[["question_id", *names.values()]]
    return {new: official.means[old] for old, new in names.items()}, table


def average_precisions(sentences: pd.DataFrame, column: str, contexts: Contexts) -> pd.Series:
    """The average precision of every question that has evidence, by its id; evidence that was cut away is never found.

    AP = 1 / |E| sum_{n in E that were read} (evidence ranked down to n) / (rank of n)
    Paper: evidence_contrast, section 4.2 and table 1.
    Deviation: D-91.
    """
    ranked = answers.evidence_map(sentences.question_id, sentences.label, sentences[column]).per_question
    found = ranked.set_index("question_id").average_precision
    return _of_all_evidence(found, sentences, contexts)


def _of_all_evidence(found: pd.Series, sentences: pd.DataFrame, contexts: Contexts) -> pd.Series:
    """Average precisions among the sentences that were read, times the share of the evidence that was."""
    wanted = {question.id: len(question.answers[0].evidence) for question in contexts.questions}
    wanted = pd.Series({name: count for name, count in wanted.items() if count}, dtype=float)
    return (found * sentences.groupby("question_id").label.sum() / wanted).reindex(wanted.index).fillna(0.0)


# ------------------------------------------------------------------ lines of chance


def random_precision(count: int, right: int) -> float:
    """The average precision that a random order is expected to have, of `count` sentences of which `right` are evidence.

    E[AP] = 1/N (H_N + (R - 1) / (N - 1) (N - H_N)),  H_N = 1 + 1/2 + ... + 1/N

    Example:
        >>> random_precision(2, 1), random_precision(3, 3)  # (1 + 1/2) / 2; all are right
        (0.75, 1.0)
    """
    harmonic = sum(1 / rank for rank in range(1, count + 1))
    return (harmonic + (right - 1) / max(count - 1, 1) * (count - harmonic)) / count


def chance(model: EvidenceFinder, contexts: Contexts, micro_tokens: int = 4096) -> dict[str, dict]:
    """What no training reaches on the same contexts, cut as the model reads them.

    map of a random order (its expectation), of the order of the document, and of the cosine of question and sentence,
    each read alone by the backbone as it is now, the mean of its tokens; evidence_f1 of all sentences taken as
    evidence.
    Deviation: D-98.
    """
    sentences = pd.concat(map(_lines_of, contexts.questions, contexts.read), ignore_index=True)
    sentences["in_order"] = -np.arange(len(sentences), dtype=float)
    sentences["cosine"] = _cosines(model, contexts, micro_tokens)
    counted = sentences.groupby("question_id").label.agg(["size", "sum"])
    random = pd.Series(
        {one.Index: random_precision(one.size, one.sum) for one in counted.itertuples() if one.sum}, dtype=float
    )
    everything = {
        one.id: ("", set(map(tuple, read.units.tolist()))) for one, read in zip(contexts.questions, contexts.read)
    }
    return {
        "random": {"map": float(_of_all_evidence(random, sentences, contexts).mean())},
        "document_order": {"map": float(average_precisions(sentences, "in_order", contexts).mean())},
        "zero_shot": {"map": float(average_precisions(sentences, "cosine", contexts).mean())},
        "all_sentences": {"evidence_f1": _official(everything, contexts)[0]["evidence_f1"]},
    }


def _lines_of(question, read) -> pd.DataFrame:
    """A line a sentence that is read."""
    units = [f"{p}-{s}" for p, s in read.units.tolist()]
    return pd.DataFrame({"question_id": question.id, "candidate_id": units, "label": read.evidence.astype(np.int8)})


@torch.no_grad()
def _cosines(model: EvidenceFinder, contexts: Contexts, micro_tokens: int) -> np.ndarray:
    """Of every sentence that is read with its question, each a text of its own."""
    texts, owner = [], []
    for number, read in enumerate(contexts.read):
        pieces = read.pieces[read.sentences + 1]  # no text's where a sentence is empty
        texts += [read.ids[read.pieces == 0], *(read.ids[(read.pieces == piece) & (piece > 0)] for piece in pieces)]
        owner += [number] * (1 + len(pieces))
    vectors = normalize(_means(model, texts, contexts.tokenizer, micro_tokens), dim=-1)
    firsts = np.flatnonzero(np.diff(owner, prepend=-1))  # of each question: its own text
    asked = np.repeat(firsts, np.diff([*firsts, len(owner)]))
    cosines = (vectors * vectors[asked]).sum(-1).cpu().numpy()
    return np.delete(cosines, firsts)


def _means(model: EvidenceFinder, texts: list[np.ndarray], tokenizer, micro_tokens: int) -> torch.Tensor:
    """The mean of the last layer over the tokens of each text, between the special tokens of a text alone."""
    before, after = Template.of(tokenizer, 1).special
    training, device = model.training, next(model.parameters()).device
    rows = [np.concatenate([before, text, after]).astype(np.int64) for text in texts]
    found = [None] * len(rows)
    model.eval()
    for some in parts_by_length([len(row) for row in rows], np.arange(len(rows)), micro_tokens):
        width = max(len(rows[n]) for n in some)
        ids = torch.from_numpy(stacked([rows[n] for n in some], width, tokenizer.pad_token_id)).to(device)
        inner = [np.r_[np.zeros(len(before)), np.ones(len(texts[n]))] for n in some]
        counted = torch.from_numpy(stacked(inner, width, 0)).to(device)[..., None]
        attended = torch.from_numpy(stacked([np.ones(len(rows[n])) for n in some], width, 0)).to(device)
        hidden = model.encoded(ids, attended).last_hidden_state.float()
        for n, vector in zip(some, (hidden * counted).sum(1) / counted.sum(1).clamp(min=1)):
            found[n] = vector
    model.train(training)
    return torch.stack(found)


def markers(model: EvidenceFinder, contexts: Contexts, count: int = 15, seed: int = 0) -> dict:
    """The normalised vectors of some questions' markers and of a piece of evidence and another sentence of each, chosen by hashes.

    Paper: evidence_contrast, appendix A and figure 2.
    Args:
        count: at most so many questions of each type.
    Returns: {"vectors": (3 * questions, H), "roles": question, positive or negative, "questions": the number of each
        one's question, "kinds": its type}
    """
    found = {"vectors": [], "roles": [], "questions": [], "kinds": []}
    training, device = model.training, next(model.parameters()).device
    model.eval()
    for place, number in enumerate(_of_each_type(contexts, count, seed)):
        read, micro = contexts.read[number], padded(contexts, [number])
        with torch.no_grad():
            said = model({key: tensor.to(device) for key, tensor in micro.items()})
        sentences = dict(enumerate(normalize(said["sentences"][0], dim=-1).cpu().numpy()))
        picked = [int(draws.choose(np.flatnonzero(read.evidence == wanted), 1, seed)[0]) for wanted in (True, False)]
        found["vectors"] += [
            normalize(said["questions"][0], dim=-1).cpu().numpy(),
            *(sentences[number] for number in picked),
        ]
        found["roles"] += ["question", "positive", "negative"]
        found["questions"] += [place] * 3
        found["kinds"] += [contexts.kinds[read.kind]] * 3
    model.train(training)
    return found | {"vectors": np.stack(found["vectors"])}


def _of_each_type(contexts: Contexts, count: int, seed: int) -> list[int]:
    """The numbers of some questions that have both evidence and other sentences, type by type."""
    both = [n for n, read in enumerate(contexts.read) if read.evidence.any() and not read.evidence.all()]
    of_type = {
        kind: {contexts.questions[n].id: n for n in both if contexts.read[n].kind == kind}
        for kind in range(len(contexts.kinds))
    }
    return [known[name] for known in of_type.values() for name in draws.choose(known, count, seed)]
