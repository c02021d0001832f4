"""Rules of `settings:` in a paper's file: the values that count as the paper's own, one, several or any."""

import math

from asutil.data.long_questions import KINDS

ANY = "any"  # the paper leaves the setting open
FORMS = {  # {form: what it is compared with}, and how the page of deviations writes it
    "each": "for each question type one of {}",
    "at_most": "up to {}",
    "of_a_pass": "{} of one pass",
}


def allowed(rules: list[dict], notebook: str, row: str, wanted: dict) -> dict[str, list]:
    """The values that the paper's rules allow for a run of a row; of several rules about a setting the last one holds."""
    known = wanted | {"row": row}
    values = {}
    for rule in rules:
        applies = all(known.get(name) in fits for name, fits in rule.get("when", {}).items())
        if rule["notebook"] == notebook and applies:
            values |= {name: listed(value) for name, value in rule["are"].items()}
    return values


def accepts(choices: list, name: str, settings: dict, dataset: str) -> bool:
    """Whether a setting of a run is one of the allowed values."""
    return any(_fits(settings.get(name), choice, settings, dataset) for choice in choices)


def _fits(value, choice, settings: dict, dataset: str) -> bool:
    """{each: values}: one of them for each question type, joined by commas; {at_most: number}: any number up to it;
    {of_a_pass: share}: a share of all steps that is this share of one epoch.
    """
    if not isinstance(choice, dict):
        return choice in (ANY, value)
    ((form, expected),) = choice.items()
    if form == "each":
        parts = [float(part) for part in str(value).split(",")]
        return len(parts) == len(KINDS[dataset]) and set(parts) <= set(expected)
    if type(value) not in (int, float):
        return False
    return value <= expected if form == "at_most" else math.isclose(value * settings["epochs"], expected)


def several(data: dict) -> dict[str, list[str]]:
    """The settings with more than one allowed value in words, by `notebook.parameter`: ["any value"], ["128", "256"]."""
    every = {}
    for rule in data.get("settings", ()):
        for name, value in rule["are"].items():
            if ANY in listed(value) or len(listed(value)) > 1:
                words = every.setdefault(f"{rule['notebook']}.{name}", {})
                words |= dict.fromkeys(map(_in_words, listed(value)))
    return {name: list(words) for name, words in every.items()}


def _in_words(choice) -> str:
    if isinstance(choice, dict):
        ((form, expected),) = choice.items()
        return FORMS[form].format(", ".join(map(str, listed(expected))))
    return {ANY: "any value", None: "none"}.get(choice, str(choice))


def listed(value) -> list:
    return value if isinstance(value, list) else [value]
