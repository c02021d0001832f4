"""The command `asutil`: every tool of the project, with one form of help, of errors and of completion.

A command is declared where its function is, those of `asutil` in `data_commands` and `vector_commands`, and named in `COMMANDS`: so
`asutil --help` imports none of these modules.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator

import click

# The words of a command -> the module that declares it as `command`, or module:name, and what it does.
COMMANDS = {
    "blind": ("aslab.blind", "Tests whether finished runs read the question."),
    "build nq_sentences": ("aslab.data_commands:nq_sentences", "Builds the data set nq_sentences from QED."),
    "build selqa": ("aslab.data_commands:selqa", "Builds the data set selqa from SelQA's files for analysis."),
    "calibration": ("aslab.calibration", "Measures whether the probabilities of models are right."),
    "claims": ("aslab.analysis.claims", "Writes the verdict on every claim of the papers as a table."),
    "compare": ("aslab.compare", "Compares rankings of the same questions."),
    "embedded": ("aslab.backbone", "Makes the embedded backbone from a finished run."),
    "export": ("aslab.export", "Writes the model of a finished run for other libraries."),
    "fetch": ("aslab.data_commands:fetch", "Writes the first rows of a hub data set into a file."),
    "first-stage": ("aslab.first_stage", "Measures how many answers a first stage keeps."),
    "gallery": ("aslab.gallery", "Writes executed notebooks of finished runs into results/."),
    "gpus": ("aslab.gpus", "Runs a command on a free GPU of this machine."),
    "hours": ("aslab.hours", "Prints the expected hours of a paper's runs at a budget."),
    "index build": ("aslab.pipeline", "Builds the index of a large source in shards."),
    "index verify": ("aslab.data_commands:verify", "Checks the hashes of all arrays of an index."),
    "mine": ("aslab.data_commands:mine", "Adds hard negatives to training questions."),
    "mined": ("aslab.mined", "Measures what mined negatives change."),
    "overlap": ("aslab.analysis.overlap", "Finds questions about articles that a corpus contains."),
    "own": ("aslab.own", "Compares runs on your own documents; exports the better."),
    "publish": ("aslab.publish", "Writes the records of finished runs into results/."),
    "slots": ("aslab.slot_cosines", "Measures the cosines between the slots of joint inputs."),
    "trec": ("aslab.trec", "Writes the scores of a run as files for trec_eval."),
    "vectors embed": ("aslab.vector_commands:embed", "Embeds the texts of a file."),
    "vectors search": ("aslab.vector_commands:search", "Prints the texts nearest to questions."),
}
GROUPS = {
    "build": "Builds a data set from its release.",
    "index": "Builds and checks the token index of a corpus.",
    "vectors": "Embeds texts, and finds those nearest to a question.",
}
COMPLETION = (
    '\b\nCompletion (zsh_source, fish_source for those shells):\n  eval "$(_ASUTIL_COMPLETE=bash_source asutil)"'
)
BAD_INPUT = (ValueError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
# A full disk, a hub that does not answer, a package or data of NLTK that are not installed.
FAILURES = (OSError, ImportError, LookupError)


def failure(error: Exception, context: click.Context) -> click.ClickException:
    """An error as one line: status 2 for a wrong input, else 1."""
    made = click.ClickException(str(error))
    made.ctx = context
    made.exit_code = 2 if isinstance(error, BAD_INPUT) else 1
    return made


class Command(click.Command):
    """A command that prints what its function returns, and each item as it comes of one that yields."""

    def invoke(self, context):
        try:
            result = super().invoke(context)
            for line in result if isinstance(result, (list, tuple, Iterator)) else [result] * (result is not None):
                click.echo(line)
        except (BrokenPipeError, KeyError, IndexError):
            raise
        except (*BAD_INPUT, *FAILURES) as error:
            raise failure(error, context) from error


class Group(click.Group):
    """The commands of `COMMANDS` that begin with some words, each imported when it is called."""

    def __init__(self, *words: str, **options):
        super().__init__(words[-1] if words else "asutil", no_args_is_help=False, **options)
        self.words = list(words)

    def list_commands(self, context):
        start = len(self.words)
        return list(dict.fromkeys(name.split()[start] for name in COMMANDS if name.split()[:start] == self.words))

    def get_command(self, context, name):
        words = " ".join([*self.words, name])
        if words in GROUPS:
            return Group(*self.words, name, help=GROUPS[words])
        return click.Command(name, help=COMMANDS[words][1]) if words in COMMANDS else None

    def resolve_command(self, context, args):
        name, listed, rest = super().resolve_command(context, args)
        if isinstance(listed, Group) or listed is None:
            return name, listed, rest
        module, _, attribute = COMMANDS[" ".join([*self.words, name])][0].partition(":")
        try:
            command = getattr(importlib.import_module(module), attribute or "command")
        except ImportError as error:
            raise failure(error, click.Context(listed, context, name)) from error
        command.name, command.help = name, f"{listed.help}\n\n{command.details}"
        return name, command, rest

    def main(self, args=None, prog_name=None, **extra):
        try:
            return super().main(args, "asutil", standalone_mode=False)
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            click.echo(f"{context.command_path if context else 'asutil'}: {error.format_message()}", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(130)


asutil = Group(
    help=__doc__.splitlines()[0],
    epilog=COMPLETION,
    context_settings={"show_default": True, "max_content_width": 120, "help_option_names": ["-h", "--help"]},
)


def command(function: Callable, *parameters: click.Parameter, example: str, details: str = "", **options) -> Command:
    """The command of a function: its parameters have the names of the function's; what it returns or yields is printed."""
    made = Command(None, callback=function, params=list(parameters), epilog=f"\b\nExample:\n  {example}", **options)
    made.details = details
    module = inspect.unwrap(function).__globals__
    if module["__name__"] == "__main__":  # an old name, as `python -m aslab.compare`
        words = next(words for words, (place, _) in COMMANDS.items() if place == module["__spec__"].name)
        main(words.split()[0])
    return made


def argument(name: str, help: str, required: bool = True, **options) -> click.Argument:
    return click.Argument([name], help=help, required=required, **options)


def option(name: str, help: str, **options) -> click.Option:
    return click.Option(name.split(), help=help, **options)


def main(command: str = "") -> None:
    """Run `asutil`; with `command`, that command of it, as `python -m aslab.compare` does."""
    asutil.main([*command.split(), *sys.argv[1:]] or ["--help"])
