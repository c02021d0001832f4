"""Commands on pages that are longer than their column, broken with the backslash that a shell reads."""

import re

from docutils import nodes

COLUMNS = 77
WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


def fitted(text: str) -> str:
    """Shell commands in lines of at most 77 columns; comments stay as they are."""
    return "\n".join(line if len(line) <= COLUMNS or "#" in line else broken(line) for line in text.split("\n"))


def broken(command: str) -> str:
    """One command in several lines. A line ends between an option and its value only where both together are too long for one.

    Example:
        >>> print(broken("$ papermill notebooks/finetune.ipynb -p model answerdotai/ModernBERT-base -p dataset wikiqa"))
        $ papermill notebooks/finetune.ipynb -p model answerdotai/ModernBERT-base \\
              -p dataset wikiqa
    """
    parts: list[str] = []
    for word in WORD.findall(command):
        if not parts or word.startswith("-") or " -" not in f" {parts[-1]}":
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    lines, indent = parts[:1], " " * (6 if command.startswith("$ ") else 4)
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= COLUMNS:  # a space, and room for the backslash
            lines[-1] += f" {part}"
        elif len(indent + part) + 2 <= COLUMNS:
            lines.append(indent + part)
        else:
            *option, value = WORD.findall(part)
            # a name that fills a line by itself is indented less
            lines += [
                indent[: max(COLUMNS - 2 - len(piece), 0)] + piece for piece in (" ".join(option), value) if piece
            ]
    return " \\\n".join(lines)


def fit_commands(app, doctree) -> None:
    """Breaks the commands of a page."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") in ("bash", "console", "sh") and (text := fitted(block.astext())) != block.astext():
            block.clear()
            block.rawsource = text
            block += nodes.Text(text)
