"""Runs as folders of other libraries: scores of sentence-transformers' CrossEncoder beside ours, the card, refusals."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import ModelCard
from transformers import BertConfig, ElectraConfig, ModernBertConfig, RobertaConfig

from aslab import export, runs
from aslab.commands import asutil
from asutil import load_ranker
from asutil.data.questions import Candidate, Question
from asutil.io import disk
from asutil.models import embedder, joint, loading
from asutil.tasks import cross_encoder, nearest, rank, rankers

from ..made_up import refused

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "initializer_range": 0.5}
CONFIGS = {
    "roberta": lambda special: RobertaConfig(**SIZE, **special, max_position_embeddings=80),
    "bert": lambda special: BertConfig(**SIZE, **special, max_position_embeddings=64),
    "electra": lambda special: ElectraConfig(**SIZE, **special, embedding_size=16, max_position_embeddings=64),
    "modernbert": lambda special: ModernBertConfig(**SIZE, **special, max_position_embeddings=64, reference_compile=False),
}
TEXTS = ("river mountain engine", "", "lantern bridge " * 40, "the copper matrix stands by the harbour", "garden")
QUESTION = Question(
    "q", "where is the copper matrix?", tuple(Candidate(f"c{n}", text, int(n == 3), None, None) for n, text in enumerate(TEXTS))
)


@pytest.fixture(params=CONFIGS)
def encoder(request, tokenizer):
    config = CONFIGS[request.param]({"vocab_size": len(tokenizer), **loading.special_ids(tokenizer)})
    return loading.from_config(config, tokenizer, seed=1, mlm=False).eval()


def test_a_cross_encoder_of_another_library_gives_our_scores(encoder, tmp_path):
    from sentence_transformers import CrossEncoder

    folder = cross_encoder.save(encoder, tmp_path / "exported", 48)
    ours = rank.Ranker(encoder, 48).score([QUESTION], progress=False)["score"].to_numpy()
    theirs = CrossEncoder(str(folder), device="cpu").predict([(QUESTION.text, text) for text in TEXTS])
    assert np.ptp(ours) > 0.01 and np.allclose(ours, theirs, atol=1e-5)
    assert "TokenizersBackend" not in (folder / "tokenizer_config.json").read_text()  # which transformers 4 does not know
    again = load_ranker(folder, "cpu").score([QUESTION], progress=False)["score"].to_numpy()
    assert np.allclose(ours, again, atol=1e-5)


def test_what_reads_other_inputs_is_no_cross_encoder(tokenizer, tmp_path):
    pair = loading.tiny(tokenizer, mlm=False)
    slots = joint.over(pair, joint.shape(True, "ie_k", 3, 48, "linear", "absolute"))
    with pytest.raises(ValueError, match="only a model with one head on pairs"):
        cross_encoder.save(slots, tmp_path / "exported", 48)
    assert not (tmp_path / "exported").exists()


@pytest.fixture
def run(tokenizer, tmp_path, monkeypatch):
    """A folder like that of a finished run of finetune."""
    folder = tmp_path / "finetune-mine-0123456789ab"
    loading.tiny(tokenizer, mlm=False).save(folder / "model")
    settings = {"dataset": "mine", "model": "owner/model", "max_tokens": 48, "protocol": "clean"}
    record = {"notebook": "finetune", "name": folder.name, "budget": "laptop", "seed": 3, "settings": settings, **runs.hashes(folder)}
    disk.write_json(folder / "record.json", record)
    scores = {"question_id": np.repeat(["a", "b"], 2), "candidate_id": list("1234"), "label": [1, 0, 0, 1], "score": [1.0, 0.0, 1.0, 0.0]}
    monkeypatch.setattr(export.rundir, "read_table", lambda folder, numbers: pd.DataFrame(scores))
    monkeypatch.setattr(export.rundir, "read_record", lambda folder: disk.read_json(folder / "record.json"))
    monkeypatch.setattr(export.models.loading, "load", lambda folder, real=loading.load: real(folder / "model"))
    return folder


def test_the_card_says_how_good_it_is_and_where_it_comes_from(run, tmp_path, capsys):
    words = ["export", str(run), "--to", str(tmp_path / "mine")]
    asutil.main(words)
    card = ModelCard.load(tmp_path / "mine" / "README.md")
    assert card.data.base_model == "owner/model" and card.data.pipeline_tag == "text-ranking"
    assert {result.metric_type: result.metric_value for result in card.data.eval_results} == {"p@1": 0.5, "map": 0.75, "mrr": 0.75}
    assert "| map | 75.0 | 50.0 to 100.0 |" in card.text and "| seed | `3` |" in card.text and 'CrossEncoder("mine")' in card.text
    assert capsys.readouterr().out.strip() == str(tmp_path / "mine")
    assert "exists: give a folder that does not" in refused(capsys, *words)


def test_an_embedder_is_handed_on_as_a_sentence_transformer(run, tokenizer, tmp_path):
    from sentence_transformers import SentenceTransformer

    shutil.rmtree(run / "model")
    ours = embedder.start_from("tiny", tokenizer, embedder.settings_of("siamese", "mean", 24))
    ours.save(run / "model")
    record = disk.read_json(run / "record.json")
    disk.write_json(
        run / "record.json", record | runs.hashes(run) | {"notebook": "embed", "settings": record["settings"] | {"rank_by": "distance"}}
    )
    folder = export.export(run, tmp_path / "vectors")
    theirs = SentenceTransformer(str(folder), device="cpu").encode(list(TEXTS))
    assert np.allclose(ours.encode(list(TEXTS)), theirs, atol=1e-5) and np.ptp(theirs) > 0.01
    card = ModelCard.load(folder / "README.md")
    assert card.data.pipeline_tag == "sentence-similarity" and "Candidates were ranked by distance." in card.text
    record = disk.read_json(run / "record.json")
    for by in ("distance", "cosine", "probability"):
        disk.write_json(run / "record.json", record | {"settings": record["settings"] | {"rank_by": by}})
        again = export.export(run, tmp_path / "vectors", replace=True)
        assert load_ranker(again).by == by and ("rank_by" in (again / "config.json").read_text()) == (by != "distance")
        (in_run, handed_on) = (rankers.load_encoder(path) for path in (run, again))  # a search takes what ranked, or its nearest
        searched = "cosine" if by == "cosine" else "distance"
        assert nearest.usual_of_vectors(in_run) == nearest.usual_of_vectors(handed_on) == searched
        assert in_run.identity == handed_on.identity, "vectors of one are vectors of the other"
        scores = SentenceTransformer(str(again), device="cpu").similarity(theirs[:1], theirs)[0]
        assert np.allclose(scores, nearest.similarity(theirs[[0] * len(theirs)], theirs, searched), atol=1e-3)


@pytest.mark.parametrize(
    ("notebook", "model", "said"),
    [("pretrain", True, "expected a run of finetune or embed, got one of pretrain"), ("finetune", False, "no model of its own")],
)
def test_other_runs_are_refused(run, tmp_path, notebook, model, said):
    record = json.loads((run / "record.json").read_text())
    disk.write_json(run / "record.json", record | {"notebook": notebook})
    if not model:
        (run / "model").rename(run / "elsewhere")
    with pytest.raises(ValueError, match=said):
        export.export(run, tmp_path / "mine")


@pytest.mark.parametrize(
    ("dataset", "hub_id"),
    [("wikiqa", "microsoft/wiki_qa"), ("own:mine.tsv", None), ("nq_sentences", None), ("some/one:de", "some/one"), ("pydocs", None)],
)
def test_a_card_names_what_is_on_the_hub_the_backbone_of_the_chain_and_the_teacher(run, tmp_path, dataset, hub_id):
    first = tmp_path / "pretrain-ssp-0123456789ab"
    first.mkdir()
    disk.write_json(first / "run.json", {"notebook": "pretrain", "given": {"model": "owner/backbone"}})
    record = disk.read_json(run / "record.json")
    disk.write_json(
        run / "record.json", record | {"settings": record["settings"] | {"dataset": dataset, "model": first.name, "teacher": "bm25"}}
    )
    card = ModelCard.load(export.export(run, tmp_path / "mine") / "README.md")
    assert card.data.datasets == ([hub_id] if hub_id else None) and card.data.license == "other"
    backbone = tmp_path / "backbone"
    own = export.card(disk.read_json(run / "record.json"), export.rundir.read_table(run, ()), "mine", str(backbone))
    assert own.data.base_model is None and "| backbone | `own:backbone` |" in own.text and str(tmp_path) not in own.text
    assert card.data.base_model == "owner/backbone" and f"| begins with | `{first.name}` |" in card.text
    assert "| teacher | `bm25` |" in card.text and "| loss |" not in card.text  # a run without the setting
    assert {result.dataset_type for result in card.data.eval_results} == {hub_id or dataset}


def test_the_licence_of_the_data_is_that_of_its_card():
    assert export.licence_of("wikiqa") == "Microsoft Research Data License, research use"
    assert export.licence_of("own:mine.tsv") == "not known: it has no data card"
