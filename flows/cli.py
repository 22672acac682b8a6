"""The command `gristmill`: what people type, and no more. A command settles the environment, calls, shows.

In: arguments. Out: an exit status and text. Heavy libraries are imported by the command that needs them, so
that --help costs a fifth of a CPU second. -C DIR, --json and --debug may stand anywhere.
"""

from __future__ import annotations

import errno
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from flows import environment
from flows.asked import ASKED, EVERYWHERE
from flows.tokenizer_commands import tokenizer_app
from tasks.errors import ParamsError

FIRST, MORE = "First", "More"
CODES = (
    "Exit status: 0 done · 1 anything else · 2 usage or params.yaml · 3 sources · 4 a promise broken · "
    "5 an expectation failed · 6 damaged files · 7 tokenizer · 8 DVC · 9 git · "
    "28 no space or no right to write · 75 another build holds the lock · 130 interrupted"
)
INTERRUPTED = 130

app = typer.Typer(
    name="gristmill",
    help="Grinds raw text into training batches, and can answer for every token.",
    epilog=CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tokenizer_app, name="tokenizer", rich_help_panel=MORE)

Pin = Annotated[str, typer.Argument(metavar="PIN", help="A release's name, or six or more digits of a fingerprint.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; without it run.workers of params.yaml.")]


@app.callback()
def everywhere(
    directory: Annotated[Path, typer.Option("-C", metavar="DIR", help="Work in DIR instead of here.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON on standard output.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
) -> None:
    """Grinds raw text into training batches, and can answer for every token."""
    ASKED.root, ASKED.json, ASKED.debug = directory.resolve(), as_json, debug
    environment.settle(ASKED.root, quiet=not debug)


@app.command(rich_help_panel=FIRST, epilog=EVERYWHERE)
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to lay it in.")],
    source: Annotated[str | None, typer.Option("--from", metavar="PATH", help="Texts to take: a path or URL.")] = None,
    recipe: Annotated[str | None, typer.Option(help="web, code, chinese, multilingual or sft.")] = None,
) -> None:
    """Lay a corpus in DIR: params.yaml, dvc.yaml, expectations, git and DVC with a local remote."""
    from flows import actions

    actions.init(ASKED, directory, source, recipe)


@app.command(rich_help_panel=FIRST, epilog=EVERYWHERE)
def build(
    until: Annotated[str | None, typer.Option(metavar="STEP", help="Stop after STEP.")] = None,
    workers: Workers = None,
    force: Annotated[list[str] | None, typer.Option(metavar="STEP", help="Make STEP anew; may be repeated.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:port, on a shared file system.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="A small run: N documents of each source.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option(metavar="F", help="A small run: that fraction of each source.")
    ] = None,
) -> None:
    """Let every artifact stand as params.yaml wants it; only what changed is made."""
    from flows import actions

    if limit is not None and fraction is not None:
        raise ParamsError("--limit and --fraction were both given", "give one of them")
    if fraction is not None and not 0 < fraction <= 1:
        raise ParamsError(f"--fraction is {fraction}, not above 0 and at most 1", "as --fraction 0.01")
    if limit is None and fraction is None:
        actions.build(ASKED, until, workers, force or [], cluster)
    elif force:
        raise ParamsError("--force goes with a whole build only", "remove the tree below small/ instead")
    else:
        actions.build_small(ASKED, until, workers, limit, fraction)


@app.command(rich_help_panel=FIRST, epilog=EVERYWHERE)
def status(
    with_bytes: Annotated[
        bool, typer.Option("--bytes", help="Also bytes per artifact, and their ratio to the raw.")
    ] = False,
) -> None:
    """Say what is up to date, and what would run and why."""
    from flows import actions

    actions.status(ASKED, with_bytes)


@app.command(rich_help_panel=FIRST, epilog=EVERYWHERE)
def release(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As corpus-1; also a git tag.")],
) -> None:
    """Give what stands a name: validate, push with DVC, commit releases/NAME.json, tag, and lay the pin."""
    from flows import actions

    actions.release(ASKED, name)


@app.command(rich_help_panel=FIRST, epilog=EVERYWHERE)
def verify(
    pin: Annotated[str | None, typer.Argument(metavar="[PIN]", help="A pin; without it, the artifacts.")] = None,
) -> None:
    """Hold every file against its digest: of the artifacts, or of a pin."""
    from flows import actions

    actions.verify(ASKED, pin)


@app.command(rich_help_panel=FIRST, epilog=EVERYWHERE)
def train(
    pin: Pin,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps; without it train.steps of params.yaml.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Train though an equal run is complete.")] = False,
) -> None:
    """Train a small GPT on PIN: proof that the data feeds a GPU. Logs into runs/."""
    from flows import actions

    actions.train(ASKED, pin, steps, again)


@app.command(rich_help_panel=MORE, epilog=EVERYWHERE)
def fetch(
    pin: Pin, documents: Annotated[bool, typer.Option("--documents", help="What dedup.against needs of it.")] = False
) -> None:
    """Lay a pin on this machine, from data/ or else from DVC's cache or remote."""
    from flows import actions

    actions.fetch(ASKED, pin, documents)


@app.command("what-if", rich_help_panel=MORE, epilog=EVERYWHERE)
def what_if(
    limits: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LIMIT...",
            help="filter.gopher.words.min=20 (none: no limit), dedup.threshold=0.7..0.9, pack.strategy.",
        ),
    ] = None,
) -> None:
    """Say which documents another limit would keep or drop, or how another strategy would pack, and build nothing."""
    from flows import actions

    actions.what_if(ASKED, limits or [])


@app.command(rich_help_panel=MORE, epilog=EVERYWHERE)
def export(
    pin: Pin,
    form: Annotated[str, typer.Argument(metavar="FORM", help="megatron, npy, huggingface or documents.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")],
    kind: Annotated[str, typer.Option("--as", help="Of documents: jsonl or parquet.")] = "jsonl",
    reasons: Annotated[bool, typer.Option("--reasons", help="Of documents: dropped ones too, and why.")] = False,
) -> None:
    """Write PIN for another trainer, or the clean text of its documents."""
    from flows import actions

    actions.export(ASKED, pin, form, folder, kind, reasons)


@app.command(rich_help_panel=MORE, epilog=EVERYWHERE)
def inspect(
    pin: Pin,
    batches: Annotated[int, typer.Option(min=1, help="Batches of eight sequences to verify.")] = 3,
    samples: Annotated[int, typer.Option(min=1, help="Sequences whose ids are counted.")] = 1000,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="An .svg to write, not in reports/docs.")] = None,
    step: Annotated[int | None, typer.Option(min=1, metavar="N", help="Instead: the documents of batch N.")] = None,
) -> None:
    """Look at what PIN would feed a model: batches, lengths of documents, vocabulary. Exits 4 where a fault is."""
    from flows import actions

    if step is not None:
        actions.trace(ASKED, pin, step)
    else:
        actions.inspect(ASKED, pin, batches, samples, picture)


@app.command(rich_help_panel=MORE, epilog=EVERYWHERE)
def unlock() -> None:
    """Forget the lock of a build that died on another host."""
    from flows import actions

    actions.unlock(ASKED)


@app.command(rich_help_panel=MORE, epilog=EVERYWHERE)
def demo(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to lay it.")] = Path("demo"),
) -> None:
    """Show the whole main job on the texts that this machine has."""
    from flows.demo import run

    run(ASKED, ASKED.root / directory)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status.

    Errors are one line on standard error, with a traceback under --debug.
    """
    words = hoisted(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        code = int(app(words, standalone_mode=False) or 0)
        return _fail("interrupted; parts that were done are kept", code) if code == INTERRUPTED else code
    except typer.TyperException as error:
        tell = getattr(error, "format_message", error.__str__)
        return _fail(tell(), getattr(error, "exit_code", 2), "see gristmill --help")
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _fail(*_told(error))


def hoisted(words: list[str]) -> list[str]:
    """`words` with -C DIR, --json and --debug moved to the front, where the parser wants them."""
    front, rest, ahead = [], [], iter(words)
    for word in ahead:
        if word == "--":
            rest.extend([word, *ahead])
        elif word in ("--json", "--debug"):
            front.append(word)
        elif word == "-C":
            front.extend([word, *(value for value in [next(ahead, None)] if value is not None)])
        else:
            rest.append(word)
    return front + rest


def _told(error: Exception) -> tuple[str, int, str | None]:
    """(what and where, exit status, mend) of an error.

    Those of training are no GristmillError, but have the same fields.
    """
    if hasattr(error, "mend") and hasattr(error, "message"):
        return str(error.message), int(getattr(error, "code", 1)), error.mend
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
        return f"{error.filename or 'a file'}: {error.strerror}", 28, "free some space, or mend the rights"
    said = " ".join(str(error).split()) or "it said nothing"
    return f"{type(error).__name__}: {said}", 1, "--debug shows where"


def _fail(message: str, code: int, mend: str | None = None) -> int:
    text = f"{message.rstrip('.')}; {mend}" if mend else message
    print(f"gristmill: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
