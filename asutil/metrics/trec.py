"""TREC files: scores as the two files that trec_eval reads, and the figures of such files by its rules."""

import csv
import gzip
import runpy
from pathlib import Path

import numpy as np
import pandas as pd

from ..io import disk
from . import rankings


def write_trec(scores: pd.DataFrame, run_path: Path, qrels_path: Path, tag: str = "asutil") -> tuple[Path, Path]:
    """Write scores (question_id, candidate_id, label, score) as a run file and a qrels file.

    run: question Q0 candidate rank score tag;  qrels: question 0 candidate label
    Scores have as many digits as it takes to read the same 32-bit float back. At one score the rank of a wrong
    candidate comes first, as in `ranking`; trec_eval reads scores alone and breaks ties by its own rule.
    Nothing is written unless both texts could be made; each file is replaced as a whole.
    Raises: ValueError naming the row for an id that is empty or holds white space, or a candidate that a question has
        twice.
    """
    texts = {name: ["" if pd.isna(v) else str(v) for v in scores[name]] for name in ("question_id", "candidate_id")}
    table = pd.DataFrame(texts)
    for name, column in table.items():
        if len(wrong := np.flatnonzero(~column.str.fullmatch(r"\S+"))):
            reason = f"TREC files part their columns by white space, so {name} {column[wrong[0]]!r} cannot be one"
            reason += "; give your questions or candidates ids without white space, and run again"
            raise ValueError(f"row {wrong[0]}: {reason}")
    if len(twice := np.flatnonzero(table.duplicated())):
        question, candidate = table.loc[twice[0]]
        raise ValueError(f"row {twice[0]}: candidate {candidate!r} appears twice in question {question!r}")
    table["label"] = rankings.checked_labels(scores["label"]).astype(int)
    table["score"] = rankings.checked_scores(scores["score"]).astype(np.float32)
    table["question"] = pd.factorize(table.question_id)[0]
    ranked = table.sort_values(["question", "score", "label"], ascending=[True, False, True], kind="stable")
    ranked["rank"] = ranked.groupby("question").cumcount() + 1
    ranked = ranked.assign(q0="Q0", tag=tag, score=[f"{score:.9g}" for score in ranked.score])
    files = {
        run_path: ranked[["question_id", "q0", "candidate_id", "rank", "score", "tag"]],
        qrels_path: table.assign(zero=0)[["question_id", "zero", "candidate_id", "label"]],
    }
    form = {"sep": " ", "header": False, "index": False, "lineterminator": "\n", "quoting": csv.QUOTE_NONE}
    lines = {path: columns.to_csv(**form) for path, columns in files.items()}
    for path, text in lines.items():
        disk.atomically(Path(path), lambda part, text=text: part.write_text(text, encoding="utf-8"))
    return Path(run_path), Path(qrels_path)


def read_run(path: str | Path) -> pd.DataFrame:
    """A run file of any program, or its .gz: question_id, candidate_id, score (float32). What follows the tag is not read.

    Raises: ValueError naming file and line.
    """
    table = _columns(path, ("question_id", "q0", "candidate_id", "rank", "score", "tag"), "score")
    return table[["question_id", "candidate_id", "score"]].astype({"score": np.float32})


def read_qrels(path: str | Path, relevant_from: int = 1) -> pd.DataFrame:
    """A qrels file, or its .gz: question_id, candidate_id, label, relevance.

    Args:
        relevant_from: the lowest relevance that makes label 1, for graded qrels (trec_eval: -l).
    Raises: ValueError naming file and line, also for a relevance that is no whole number: trec_eval cuts its fraction off.
    """
    if relevant_from < 1:
        raise ValueError(f"relevant_from is 1 or more, since a relevance of 0 is wrong: got {relevant_from}")
    table = _columns(path, ("question_id", "iteration", "candidate_id", "label"), "label")
    ids, relevance = table[["question_id", "candidate_id"]], table["label"].astype(int)
    return ids.assign(label=(relevance >= relevant_from).astype(int), relevance=relevance)


def _columns(path: str | Path, names: tuple[str, ...], number: str) -> pd.DataFrame:
    path, rows, seen = Path(path), [], set()
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", errors="backslashreplace") as lines:
        for at, line in enumerate(lines, 1):
            cells = line.split()
            if not cells:
                continue
            if len(cells) < len(names) or (len(cells) > len(names) and names[-1] != "tag"):
                raise ValueError(f"{path.name}, line {at}: expected {' '.join(names)}, got {line.strip()[:80]!r}")
            row = dict(zip(names, cells))
            try:
                row[number] = float(row[number])
            except ValueError:
                raise ValueError(f"{path.name}, line {at}: {number} is a number, got {row[number]!r}") from None
            if number == "label" and row[number] % 1:
                raise ValueError(f"{path.name}, line {at}: a relevance is a whole number, got {row[number]:g}")
            if not np.isfinite(row[number]):
                raise ValueError(f"{path.name}, line {at}: {number} is a finite number, got {row[number]}")
            if (key := (row["question_id"], row["candidate_id"])) in seen:
                raise ValueError(f"{path.name}, line {at}: candidate {key[1]!r} appears twice in question {key[0]!r}")
            seen.add(key)
            rows.append(row)
    if not rows:
        raise ValueError(f"{path.name}: no lines")
    return pd.DataFrame(rows)


def by_trec_eval(scores: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """P@1, AP and RR of each question by trec_eval's rules: p_at_1, average_precision, reciprocal_rank, by question_id.

    AP = sum over retrieved right candidates of their precision / all right candidates of the qrels; a candidate without a label is
    wrong; ties by descending id.
    Returns: the questions of the run that have a right candidate in the qrels, in the order of the qrels.
    """
    ids = {"question_id": str, "candidate_id": str}
    asked = qrels.astype(ids).groupby("question_id", sort=False)["label"].sum()
    table = scores[["question_id", "candidate_id", "score"]].astype(ids)
    table = table.merge(qrels.astype(ids), on=list(ids), how="left").fillna({"label": 0})
    retrieved = table.groupby("question_id")["label"].sum()
    names = ("question_id", "label", "score", "candidate_id")
    questions, labels, values, candidates = (table[name] for name in names)
    ranking = rankings.ranking(questions, labels, values, ties="trec_eval", empty="zero", candidate_ids=candidates)
    kept = ranking.per_question.set_index("question_id")
    kept["average_precision"] *= retrieved.reindex(kept.index) / asked.reindex(kept.index)
    return kept.reindex([question for question in asked.index[asked > 0] if question in kept.index])


def require_judged(name: str, scores: pd.DataFrame, qrels: pd.DataFrame) -> None:
    """Refuse a run with ids of another making, none in the qrels, where every candidate would count as wrong. Raises: ValueError."""
    ids = ["question_id", "candidate_id"]
    came, known = (set(table[ids].astype(str).itertuples(index=False, name=None)) for table in (scores, qrels))
    if came.isdisjoint(known):
        expected, got = (f"{pair[1]!r} of question {pair[0]!r}" for pair in (min(known), min(came)))
        raise ValueError(f"{name}: no candidate is in the qrels: expected ids such as {expected}, got {got}")


def measure_named(name: str):
    """A measure by its name in `ir_measures`, such as nDCG@10, R@100 or P(rel=2)@5.

    Raises: ImportError that says what to install; ValueError for a name that it does not know.
    """
    try:
        import ir_measures
    except ImportError:
        raise ImportError(f"the measure {name} needs ir_measures: pip install 'asutil[measures]'") from None
    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError, SyntaxError):
        raise ValueError(f"{name}: expected a measure of ir_measures, such as nDCG@10, R@5 or P(rel=2)@3") from None


def by_measure(scores: pd.DataFrame, qrels: pd.DataFrame, name: str, relevant_from: int = 1) -> pd.Series:
    """A measure of each question of the qrels, by question_id; 0 for a question that the run lacks.

    Args:
        scores: question_id, candidate_id, score. Ties are broken by descending id, as trec_eval does.
        qrels: question_id, candidate_id, relevance.
        name: as in `measure_named`.
        relevant_from: the lowest relevance that is right, for a measure that asks what is right and names no level itself.
    """
    import ir_measures

    measure = measure_named(name)
    if relevant_from > 1 and "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
        measure = measure(rel=relevant_from)

    renamed = {"question_id": "query_id", "candidate_id": "doc_id"}
    judged = qrels.rename(columns=renamed).astype({"query_id": str, "doc_id": str})
    # A score without ties, by trec_eval's order in single precision: some providers of ir_measures break ties by ascending id.
    run = scores.rename(columns=renamed).astype({"query_id": str, "doc_id": str, "score": np.float32})
    run = run.sort_values(["score", "doc_id"])
    run["score"] = run.groupby("query_id").cumcount().astype(float)
    values = ir_measures.iter_calc([measure], judged, run)
    return pd.Series({value.query_id: value.value for value in values}, name=name)


def untied(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores that give the order of `ranking`, the wrong candidate first at one score, to a program that breaks ties by id."""
    order = scores.sort_values(["score", "label"], ascending=[True, False], kind="stable").index
    return scores.assign(score=pd.Series(np.arange(len(scores)), order, dtype=float))


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "trec"})
