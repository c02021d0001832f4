"""Ranking with a trained model: questions in, one score a candidate out. After this no step needs a model."""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from ..corpus import index
from ..data.answers import Candidate, Question
from ..inputs import batches, groups
from ..inputs import pairs as input_pairs
from ..inputs.batches import TOKENS_ON_CPU, TOKENS_ON_GPU
from ..io import checkpoints, disk, hub
from ..models.loading import check_length, usual_length
from ..models.pair import PairEncoder

WINDOW = 1 << 15  # candidates that are tokenised and ordered by length together: memory is bounded by it
log = logging.getLogger(__name__)


class Ranker:
    """Scores of candidates by a pair model, one that reads their contexts too, or a joint one: the difference of two logits, in float32.

    s(q, c) = z_1 - z_0,  P(label 1) = 1 / (1 + exp(-s))
    The order is that of the probability, without its ties: past a difference of 17 every float32 probability is 1.
    A joint model reads the candidates of a question in groups of k, which depend on their texts alone.
    Paper: contextual_as2, section 3 (the context is the sentence before and the one after a candidate); joint_inference, section 3.2.
    """

    def __init__(self, model: PairEncoder, max_tokens: int | None = None):
        self.model, self.max_tokens = model, max_tokens or usual_length(model)

    @property
    def joint_k(self) -> int | None:
        """How many candidates a joint model reads at once; None for a model of another kind."""
        return (getattr(self.model.backbone.config, "joint", None) or {}).get("k")

    def inputs_of(self, questions) -> "input_pairs.Pairs | groups.Groups":
        """The candidates of some questions as the model reads them."""
        if self.joint_k:
            return groups.Groups(self.model.tokenizer, questions, self.joint_k)
        return input_pairs.Pairs(self.model.tokenizer, questions, context=self.model.parts == 3)

    def rank(
        self, question: str, candidates: list[str], contexts: list[tuple] | None = None
    ) -> list[tuple[int, float]]:
        """Candidates in order, best first: (its number, its score); equal scores keep the order given.

        Args:
            contexts: for a model that was trained with contexts, and for no other: the sentence before and the one after each
                candidate, None where there is none.
        """
        if contexts is not None and self.model.parts == 2:
            raise ValueError("this model was trained on pairs of question and candidate: it takes no contexts")
        if contexts is None and self.model.parts == 3:
            raise ValueError(
                "this model was trained with contexts: contexts=[(sentence before, sentence after), ...] expected, got none"
            )
        contexts = [(None, None)] * len(candidates) if contexts is None else contexts
        if wrong := [context for context in contexts if isinstance(context, str) or len(context) != 2]:
            raise ValueError(
                f"contexts: (sentence before, sentence after) of each candidate expected, got {wrong[0]!r}"
            )
        if len(contexts) != len(candidates):
            raise ValueError(
                f"contexts: one for each of the {len(candidates)} candidates expected, got {len(contexts)}"
            )
        if not candidates:
            return []
        texts = [Candidate("", text, 0, *around) for text, around in zip(candidates, contexts)]
        scores = self.score(_Ordered([Question("", question, tuple(texts))]), progress=False)["score"].to_numpy()
        return [(int(n), float(scores[n])) for n in np.argsort(-scores, kind="stable")]

    def score(
        self,
        questions: Iterable,
        max_tokens: int | None = None,
        progress: bool = True,
        folder: str | Path | None = None,
    ) -> pd.DataFrame:
        """Score every candidate of every question, window by window: what is in memory does not grow with the questions.

        Args:
            questions: of `Question(id, text, candidates)` with `Candidate(id, text, label, before, after)`; any iterable, read once.
                The last two are read by models with contexts alone.
            max_tokens: of all parts together, cut as in training; the ranker's own where left out.
            folder: keep the scores of every finished window here: a scoring that was stopped goes on where it was. A window is found
                again by the texts, ids and labels of its questions and by all that its scores follow from, the weights included.
                Delete the folder once the table is written.
        Returns: DataFrame with question_id, candidate_id, label (int8), score (float32), in the order given.
        """
        max_tokens = max_tokens or self.max_tokens
        check_length(self.model, max_tokens)
        scored_by, context = folder and self._identity(max_tokens), self.model.parts == 3
        return windowed(
            questions, lambda window, bar: self._window(window, max_tokens, bar), progress, folder, scored_by, context
        )

    def _window(self, questions: list, max_tokens: int, bar) -> pd.DataFrame:
        pairs = self.inputs_of(questions)
        asked = [pairs.question_ids[owner] for owner in pairs.owners]
        table = {"question_id": asked, "candidate_id": pairs.candidate_ids, "label": pairs.labels.astype(np.int8)}
        scores = self._scores(pairs, max_tokens, bar)
        return pd.DataFrame(table).assign(score=pairs.mean_over_duplicates(scores) if self.joint_k else scores)

    @torch.no_grad()
    def _scores(self, pairs, max_tokens: int, bar) -> np.ndarray:
        device, training = self._device, self.model.training
        micro_tokens = TOKENS_ON_GPU if device.type == "cuda" else TOKENS_ON_CPU
        members, scores = pairs.members(np.arange(len(pairs))), torch.empty(len(pairs.labels), device=device)
        self.model.eval()
        with torch.autocast(
            device.type, torch.bfloat16, enabled=device.type == "cuda"
        ):  # the body's; heads are float32 by themselves
            # Ordered by length, so the rows come in another order: their numbers go along in the place of the labels.
            for batch in batches.micro_batches(
                pairs.join(members, max_tokens), members, pairs.template.pad, micro_tokens
            ):
                places = (batch["labels"].flatten() >= 0).nonzero()[
                    :, 0
                ]  # of full slots; found here, a GPU would have to be waited for
                batch = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
                rows, places = batch.pop("labels").flatten(), places.to(device, non_blocking=True)
                logits, _ = self.model(batch)
                scores[rows[places]] = (logits[..., 1] - logits[..., 0]).flatten()[places]
                bar.update(len(places))
        self.model.train(training)
        return scores.cpu().numpy()  # the only time that a GPU is waited for

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _identity(self, max_tokens: int) -> str:
        """What scores follow from beside the questions: weights, architecture, tokenizer, length, and the device's arithmetic."""
        config = self.model.backbone.config.to_dict()
        config = {
            name: value for name, value in config.items() if name not in ("_name_or_path", "transformers_version")
        }
        settings = [config, index.tokenizer_hash(self.model.tokenizer), max_tokens, self._device.type]
        return checkpoints.fingerprint_of_weights(
            settings, self.model.backbone, getattr(self.model, self.model.HEADS[0])
        )


def windowed(
    questions: Iterable, score, progress=True, folder=None, scored_by: str | None = None, context=False
) -> pd.DataFrame:
    """The scores of all questions, window by window; those that `folder` already holds are read.

    Args:
        score: (questions of a window, progress bar) -> DataFrame.
        scored_by: what else the scores follow from, as a hash; context: the sentences around the candidates too.
    """
    tables = []
    with tqdm(total=_pairs(questions), unit=" pairs", disable=not progress, dynamic_ncols=True) as bar:
        for number, window in enumerate(_windows(questions)):
            kept = folder and Path(folder) / f"window-{number:05d}-{_identity(scored_by, window, context)}"
            if kept and (held := _kept(kept)) is not None:
                tables.append(held)
                bar.update(len(held))
                continue
            tables.append(score(window, bar))
            if kept:
                _keep(kept, tables[-1])
    if not tables:
        raise ValueError("expected questions with candidates to score, got none")
    return pd.concat(tables, ignore_index=True)


def _keep(window: Path, scores: pd.DataFrame) -> None:
    window.parent.mkdir(parents=True, exist_ok=True)
    table = disk.atomically(window.with_suffix(".parquet"), lambda path: scores.to_parquet(path, index=False))
    disk.write_json(window.with_suffix(".json"), {"sha256": hub.sha256(table)})


def _kept(window: Path) -> pd.DataFrame | None:
    """The scores of a window that was finished; None where it was not, or where they are no longer what they were."""
    table, known = window.with_suffix(".parquet"), window.with_suffix(".json")
    if not known.is_file():
        return None
    try:
        return pd.read_parquet(disk.check(table, disk.read_json(known)["sha256"]))
    except ValueError as error:
        log.warning("scored again: %s", error)
        return None


class _Ordered(list):
    """Questions whose contexts are known, also where not one of their candidates has any."""

    ordered = True


def _identity(scored_by: str, window: list, context: bool) -> str:
    rows = [
        [q.id, q.text, [[c.id, c.text, int(c.label), *[c.before, c.after] * context] for c in q.candidates]]
        for q in window
    ]
    return hashlib.sha256(json.dumps([scored_by, rows]).encode()).hexdigest()[:16]


def _pairs(questions: Iterable) -> int | None:
    """How many pairs there are, where that is known without reading all of them."""
    if isinstance(questions, list | tuple):
        return sum(len(question.candidates) for question in questions)
    return len(questions.rows()) if hasattr(questions, "rows") else None


def _windows(questions: Iterable, candidates: int | None = None) -> Iterator[list]:
    """Questions by windows of some `candidates`: enough to order by length, few enough for memory."""
    new = _Ordered if getattr(questions, "ordered", False) else list
    window, held = new(), 0
    for question in questions:
        window.append(question)
        held += len(question.candidates)
        if held >= (candidates or WINDOW):
            yield window
            window, held = new(), 0
    if held:
        yield window
