"""Finding evidence in a long context: a model's evidence, its similarity to the question, and its answer."""

from collections import Counter

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import normalize
from tqdm.auto import tqdm

from .. import draws
from ..data.long_questions import KINDS
from ..inputs.cut import cut
from ..inputs.long import Contexts, stacked
from ..inputs.template import Template
from ..metrics import answers, rankings
from ..models.finder import LONGEST_SPAN, EvidenceFinder
from ..models.scoring import evaluating, has_bf16, moved

LONGEST_WRITTEN = 100  # tokens of an answer that a decoder writes (D-94)


def warmup(steps: int | None, share: float | None, total: int) -> int:
    """Steps of warm-up: a number of steps, or a share of all steps.

    Raises: ValueError for both or neither.
    Paper: evidence_contrast, appendix B.1 (a share) and B.2 (steps).
    """
    if (steps is None) == (share is None):
        raise ValueError(f"warm-up: either warmup_steps or warmup_share expected, got {steps} and {share}")
    return steps if share is None else round(share * total)


# ------------------------------------------------------------------ answers and evidence


def predict(
    model: EvidenceFinder, contexts: Contexts, micro_tokens: int = 4096, progress: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A model's predictions for some questions: one row per sentence, and one row per question.

    Returns: two DataFrames. Of sentences: question_id, candidate_id ("passage-sentence"), label (1 for evidence), score
        (the logit of the evidence head) and three similarities with the question: raw (cosine of the vectors as they
        are), gold and predicted (cosine of the vectors that the loss compares, by the question's gold type and by the predicted
        one; also where the loss takes a dot product).
        Of questions: question_id, kind, predicted_kind, answer. A model that does not learn types predicts none.
    Raises: ValueError for a model of other types of questions.
    """
    if tuple(model.finding.kinds) != tuple(contexts.kinds):
        raise ValueError(f"questions of the types {model.finding.kinds} expected, got {contexts.kinds}")
    sentences_of, row_of, numbers = {}, {}, np.arange(len(contexts))
    bar = tqdm(total=len(contexts), unit=" questions", disable=not progress, dynamic_ncols=True)
    with bar, evaluating(model, autocast=False) as device:
        for some in cut(contexts.lengths, micro_tokens):
            micro = moved(contexts.padded(some), device)
            with torch.autocast(device.type, torch.bfloat16, enabled=has_bf16(device)):
                outputs = model(micro)
            written = _written(model, micro) if model.generates else None
            for row, number in enumerate(some):
                output = {name: values[row] for name, values in outputs.items()}
                sentences_of[number], row_of[number] = _predictions(model, contexts, number, output)
                if written is not None:
                    row_of[number]["answer"] = written[row]
            bar.update(len(some))
    sentences = pd.concat([sentences_of[number] for number in numbers], ignore_index=True)
    questions = pd.DataFrame([row_of[number] for number in numbers])
    if not model.learns_type:  # the head was never trained
        return sentences.drop(columns="predicted"), questions.drop(columns="predicted_kind")
    return sentences, questions


def _predictions(model, contexts, number: int, output: dict) -> tuple[pd.DataFrame, dict]:
    """The rows of one question's sentences, and the question's own row."""
    read, question, kinds = contexts.read[number], contexts.questions[number], contexts.kinds
    predicted = int(output["kind"].argmax())
    vector, sentences = output["questions"], output["sentences"][: len(read.sentences)]
    projected_questions, projected = model.projected(vector, sentences)
    scores = {"score": output["evidence"][: len(read.sentences)]}
    scores["raw"] = normalize(sentences, dim=-1) @ normalize(vector, dim=-1)
    for name, kind in {"gold": read.kind, "predicted": predicted}.items():
        projection = model.types[kind] if len(projected_questions) > 1 else 0
        question_vector = normalize(projected_questions[projection], dim=-1)
        scores[name] = normalize(projected[projection], dim=-1) @ question_vector
    table = sentence_rows(question, read)
    table = table.assign(**{name: values.float().cpu().numpy() for name, values in scores.items()})
    row = {"question_id": question.id, "kind": kinds[read.kind], "predicted_kind": kinds[predicted]}
    return table, row | {"answer": _answer(model, contexts, read, output, kinds[predicted])}


def _answer(model, contexts, read, output: dict, kind: str) -> str:
    """The answer of a model without a decoder: its type's, or the likeliest span within one text."""
    if kind in ("yes", "no", "unanswerable") or model.span is None:
        return kind
    starts, ends = output["span"][: len(read.ids)].float().cpu().unbind(-1)
    pieces, count = torch.from_numpy(read.pieces), len(starts)
    spans = torch.full((count, LONGEST_SPAN), -torch.inf)  # of each start, by how far its end is from it
    for far in range(min(LONGEST_SPAN, count)):
        within = (pieces[: count - far] == pieces[far:]) & (pieces[far:] > 0)
        spans[: count - far, far] = (starts[: count - far] + ends[far:]).where(within, -torch.inf)
    start, far = divmod(int(spans.argmax()), LONGEST_SPAN)
    return "" if spans[start, far] == -torch.inf else read.text(start, start + far, contexts.encode)


def _written(model, micro: dict) -> list[str]:
    """The answers that a model with a decoder writes, greedily."""
    inputs = {name: micro[name] for name in ("input_ids", "attention_mask")}
    if model.reads_globally:
        inputs["global_attention_mask"] = micro["is_global"]
    positions = getattr(model.backbone.config, "max_decoder_position_embeddings", LONGEST_WRITTEN + 1)
    longest = min(LONGEST_WRITTEN, positions - 1)  # the first token is not written
    ids = model.backbone.generate(**inputs, max_new_tokens=longest, num_beams=1, do_sample=False)
    return [text.strip() for text in model.tokenizer.batch_decode(ids, skip_special_tokens=True)]


# ------------------------------------------------------------------ figures


HOTPOTQA_NAMES = {
    "f1": "answer_f1",
    "em": "answer_em",
    "sp_f1": "evidence_f1",
    "sp_em": "evidence_em",
    "joint_f1": "joint_f1",
}
SIMILARITIES = {
    "map_raw": "raw",
    "map_projected": "gold",
    "map_predicted_type": "predicted",
    "map_evidence_head": "score",
}


def measure(sentences: pd.DataFrame, questions: pd.DataFrame, contexts: Contexts) -> answers.Measured:
    """Answers and evidence by the data set's own rules, and how well similarities and the evidence head rank evidence.

    answer_f1, evidence_f1: by HotpotQA's and QASPER's evaluators; evidence is what the head gives more than even odds.
    map_raw, map_projected, map_predicted_type, map_evidence_head: mean average precision of the evidence by `predict`'s
    similarities (table 1) and by the evidence head, over the questions that have evidence.
    type_accuracy: of the question types; like map_predicted_type, only where the model learns them.
    Paper: evidence_contrast, sections 4.1 and 4.2.
    Args:
        sentences, questions: what `predict` gave for these contexts.
    """
    chosen = {question.id: set() for question in contexts.questions}
    for name, unit in sentences.loc[sentences.score > 0, ["question_id", "candidate_id"]].itertuples(index=False):
        chosen[name].add(tuple(map(int, unit.split("-"))))
    predictions = {name: (answer, chosen[name]) for name, answer in zip(questions.question_id, questions.answer)}
    means, table = _official(predictions, contexts)
    known = {name: column for name, column in SIMILARITIES.items() if column in sentences}
    for name, column in known.items():
        precisions = average_precisions(sentences, column, contexts)
        means |= {name: float(precisions.mean())}
        table = table.merge(precisions.rename(name), how="left", left_on="question_id", right_index=True)
    if "predicted_kind" in questions:
        means["type_accuracy"] = float((questions.kind == questions.predicted_kind).mean())
    return answers.Measured(means, {"questions": len(contexts.questions)}, table)


def _official(predictions: dict, contexts: Contexts) -> tuple[dict, pd.DataFrame]:
    """Means and a table of answers and evidence by the data set's own evaluator; evidence that was truncated is missed.

    Args:
        predictions: question id -> (answer, the (passage, sentence) pairs of its evidence).
    """
    references = {question.id: question.answers for question in contexts.questions}
    if set(contexts.kinds) == set(KINDS["qasper"]):
        golds = {name: [(one.text, one.kind, one.evidence) for one in several] for name, several in references.items()}
        official = answers.qasper(predictions, golds)
        return dict(official.means), official.per_question
    golds = {name: (answer.text, answer.evidence) for name, [answer, *_] in references.items()}
    official = answers.hotpotqa(predictions, golds)
    table = official.per_question.rename(columns=HOTPOTQA_NAMES)[["question_id", *HOTPOTQA_NAMES.values()]]
    return {new: official.means[old] for old, new in HOTPOTQA_NAMES.items()}, table


def average_precisions(sentences: pd.DataFrame, column: str, contexts: Contexts) -> pd.Series:
    """The average precision of every question that has evidence, by its id; truncated evidence is never found.

    AP = 1 / |E| sum_{n in E that were read} (evidence ranked down to n) / (rank of n)
    Paper: evidence_contrast, section 4.2 and table 1.
    Deviation: D-91.
    """
    ranked = rankings.ranking(sentences.question_id, sentences.label, sentences[column], empty="zero").per_question
    precisions = ranked.set_index("question_id").average_precision
    return _of_all_evidence(precisions, sentences, contexts)


def _of_all_evidence(precisions: pd.Series, sentences: pd.DataFrame, contexts: Contexts) -> pd.Series:
    """Average precisions among the sentences that were read, times the share of the evidence that was read."""
    counts = {question.id: len(question.answers[0].evidence) for question in contexts.questions}
    counts = pd.Series({name: count for name, count in counts.items() if count}, dtype=float)
    read = sentences.groupby("question_id").label.sum()
    return (precisions * read / counts).reindex(counts.index).fillna(0.0)


# ------------------------------------------------------------------ untrained baselines


def chance(model: EvidenceFinder, contexts: Contexts, train: Contexts, micro_tokens: int = 4096) -> dict[str, dict]:
    """Baselines without training on the same contexts, truncated as the model reads them.

    map of a random order (its expectation), of the order of the document, and of the cosine of question and sentence,
    each read alone by the backbone as it is now, the mean of its tokens; evidence_f1 of all sentences as evidence;
    answer_f1 of the most frequent answer of `train` to every question.
    Deviation: D-98.
    """
    sentences = pd.concat(map(sentence_rows, contexts.questions, contexts.read), ignore_index=True)
    sentences["in_order"] = -np.arange(len(sentences), dtype=float)
    sentences["cosine"] = _cosines(model, contexts, micro_tokens)
    random = rankings.at_random(sentences, empty="zero").per_question.set_index("question_id")["average_precision"]
    same = most_frequent_answer(train)
    always, _ = _official({question.id: (same, set()) for question in contexts.questions}, contexts)
    pairs = zip(contexts.questions, contexts.read)
    all_sentences, _ = _official({q.id: ("", set(map(tuple, read.units.tolist()))) for q, read in pairs}, contexts)
    return {
        "random": {"map": float(_of_all_evidence(random, sentences, contexts).mean())},
        "document_order": {"map": float(average_precisions(sentences, "in_order", contexts).mean())},
        "zero_shot": {"map": float(average_precisions(sentences, "cosine", contexts).mean())},
        "all_sentences": {"evidence_f1": all_sentences["evidence_f1"]},
        "most_frequent_answer": {"answer_f1": always["answer_f1"]},
    }


def most_frequent_answer(train: Contexts) -> str:
    """The most frequent answer of training questions; of several, the first in the alphabet."""
    counts = Counter(question.answers[0].text for question in train.questions)
    return min(counts, key=lambda text: (-counts[text], text))


def sentence_rows(question, read) -> pd.DataFrame:
    """question_id, candidate_id and label of every sentence of a question that is read."""
    units = [f"{p}-{s}" for p, s in read.units.tolist()]
    return pd.DataFrame({"question_id": question.id, "candidate_id": units, "label": read.evidence.astype(np.int8)})


def _cosines(model: EvidenceFinder, contexts: Contexts, micro_tokens: int) -> np.ndarray:
    """The cosine of every sentence that is read with its question, each embedded as a text of its own."""
    texts, questions, question_of = [], [], []  # the rows of the questions, and of each text's question
    for read in contexts.read:
        pieces = read.pieces[read.sentences + 1]  # 0 where a sentence is empty
        questions.append(len(texts))
        question_of += [len(texts)] * (1 + len(pieces))
        texts += [read.ids[read.pieces == 0], *(read.ids[(read.pieces == piece) & (piece > 0)] for piece in pieces)]
    vectors = normalize(_means(model, texts, contexts.tokenizer, micro_tokens), dim=-1)
    return np.delete((vectors * vectors[question_of]).sum(-1).cpu().numpy(), questions)


def _means(model: EvidenceFinder, texts: list[np.ndarray], tokenizer, micro_tokens: int) -> torch.Tensor:
    """The mean of the last layer over the tokens of each text, between the special tokens of a text alone."""
    before, after = Template.of(tokenizer, 1).special
    rows = [np.concatenate([before, text, after]).astype(np.int64) for text in texts]
    vectors = [None] * len(rows)
    with evaluating(model, autocast=False) as device:
        for some in cut([len(row) for row in rows], micro_tokens):
            width = max(len(rows[n]) for n in some)
            ids = torch.from_numpy(stacked([rows[n] for n in some], width, tokenizer.pad_token_id)).to(device)
            inner = [np.r_[np.zeros(len(before)), np.ones(len(texts[n]))] for n in some]
            counted = torch.from_numpy(stacked(inner, width, 0)).to(device)[..., None]
            attended = torch.from_numpy(stacked([np.ones(len(rows[n])) for n in some], width, 0)).to(device)
            hidden = model.encoded(ids, attended).last_hidden_state.float()
            for n, vector in zip(some, (hidden * counted).sum(1) / counted.sum(1).clamp(min=1)):
                vectors[n] = vector
    return torch.stack(vectors)


def markers(model: EvidenceFinder, contexts: Contexts, count: int = 15) -> dict:
    """Normalised vectors of some questions' markers, and of a piece of evidence and another sentence of each question.

    Questions and sentences are chosen by keyed hashes.
    Paper: evidence_contrast, appendix A and figure 2.
    Args:
        count: at most so many questions of each type.
    Returns: {"vectors": (3 * questions, H), "roles": question, positive or negative, "questions": the number of each
        vector's question, "kinds": that question's type}
    Raises: ValueError where no question has both, within what is read of its context.
    """
    vectors, kinds = [], []
    with evaluating(model, autocast=False) as device:
        numbers = _of_each_type(contexts, count)
        if not numbers:
            raise ValueError(
                f"expected a question whose input has evidence and other sentences, got none among {len(contexts.read)}: contexts are "
                f"cut at max_tokens={contexts.max_tokens}, which left out {contexts.dropped['evidence']} pieces of evidence"
            )
        for number in numbers:
            read, outputs = contexts.read[number], model(moved(contexts.padded([number]), device))
            [positive] = draws.choose(np.flatnonzero(read.evidence), 1)
            [negative] = draws.choose(np.flatnonzero(~read.evidence), 1)
            sentences = normalize(outputs["sentences"][0], dim=-1)
            three = [normalize(outputs["questions"][0], dim=-1), sentences[int(positive)], sentences[int(negative)]]
            vectors += [vector.cpu().numpy() for vector in three]
            kinds += [contexts.kinds[read.kind]] * 3
    count = len(vectors) // 3
    roles, questions = ["question", "positive", "negative"] * count, np.repeat(np.arange(count), 3).tolist()
    return {"vectors": np.stack(vectors), "roles": roles, "questions": questions, "kinds": kinds}


def _of_each_type(contexts: Contexts, count: int) -> list[int]:
    """The numbers of some questions that have both evidence and other sentences, type by type."""
    both = [n for n, read in enumerate(contexts.read) if read.evidence.any() and not read.evidence.all()]
    chosen = []
    for kind in range(len(contexts.kinds)):
        number_of = {contexts.questions[n].id: n for n in both if contexts.read[n].kind == kind}
        chosen += [number_of[name] for name in draws.choose(number_of, count)]
    return chosen
