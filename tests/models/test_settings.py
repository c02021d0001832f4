"""Settings of models in config.json: as earlier versions wrote them, byte for byte, and what else is refused."""

import re

import pytest
from transformers import RobertaConfig

from asutil.io import disk
from asutil.models import settings
from asutil.models.embedder import Embedding
from asutil.models.finder import Contrast, Finding
from asutil.models.joint import Joint

CONTRAST = {
    "projection": "none", "similarity": "cosine", "loss_weight": 0.25, "temperatures": [0.5, 0.5], "projection_size": None,
    "projection_dropout": 0.1, "wrong_types": True, "other_evidence": "exclude", "reduction": "mean",
}  # fmt: skip
FINDING = {"kinds": ["span", "yes"], "form": "marked", "max_tokens": 64, "contrast": CONTRAST}
JOINT = {"head": "ae_k", "k": 5, "classes": 2, "slot_tokens": 64, "form": "linear", "positions": "absolute"}
LATER = {"pooling": "first", "init": None, "start": "class"}
TRIPLET = {"architecture": "triplet", "pooling": "cls", "max_tokens": 48, "margin": 5.0, "distance": "plain", "selection": "all"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (JOINT | LATER, Joint(**JOINT)),
        (TRIPLET, Embedding("triplet", "cls", 48, 5.0, "plain", "all")),
        (FINDING, Finding(["span", "yes"], "marked", 64, Contrast("none", "cosine", 0.25, [0.5, 0.5]))),
        (FINDING | {"types": [0, 0], "type_loss": False}, Finding(["span", "yes"], "marked", 64, Contrast(**CONTRAST), [0, 0], False)),
    ],
)
def test_a_config_as_earlier_versions_wrote_it_is_read_and_written_again_byte_for_byte(tmp_path, written, expected):
    kind = type(expected)
    config, again = RobertaConfig(**{kind.__name__.lower(): written}), RobertaConfig()
    config.save_pretrained(tmp_path)
    assert settings.kept(config, kind) == settings.saved(tmp_path, kind) == expected
    settings.keep(again, expected)
    assert again.to_json_string() == config.to_json_string()
    settings.drop_all(again)
    assert again.to_json_string() == RobertaConfig().to_json_string() and settings.kept(again, kind) is None


def test_a_joint_model_from_before_pooling_and_start_has_the_choices_of_its_time():
    assert settings.kept(RobertaConfig(joint=JOINT), Joint) == Joint(**JOINT | LATER)


@pytest.mark.parametrize(
    ("kind", "written"),
    [(Joint, {"head": "ae_k"}), (Joint, JOINT | {"depth": 2}), (Finding, FINDING | {"contrast": 3}), (Finding, {"kinds": ["span"]})],
)
def test_settings_with_other_fields_are_refused(tmp_path, kind, written):
    key = kind.__name__.lower()
    disk.write_json(tmp_path / "config.json", {key: written})
    with pytest.raises(ValueError, match=re.escape(f"config.json, {key}: the fields ") + f".* expected, got {re.escape(str(written))}"):
        settings.saved(tmp_path, kind)


def test_a_folder_without_settings_or_without_a_config_has_none(tmp_path):
    assert settings.saved(tmp_path, Embedding) is None
    disk.write_json(tmp_path / "config.json", {})
    assert settings.saved(tmp_path, Embedding) is None
