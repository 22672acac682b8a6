"""What each command does once its arguments are known: call, then show as a table or as JSON.

In: what was asked. Out: text. Each action imports what it needs, so that none pays for another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from flows import show
from flows.asked import Asked
from flows.guard import guard
from tasks.project import Project
from tasks.remote import is_url


def init(asked: Asked, directory: Path, source: str | None, recipe: str | None) -> None:
    from flows.init import init as lay

    place = source if source is None or is_url(source) else asked.root / source
    with show.shown(quiet=asked.json) as watcher:
        laid = lay(asked.root / directory, place, recipe=recipe, say=watcher.said)
    if asked.json:
        return show.as_json(laid)
    sizes = ", ".join(f"{kind} {show.size(size)}" for kind, size in laid.bytes_per_kind.items())
    return show.line(f"laid a corpus in {directory} ({sizes}); next: [bold]gristmill -C {directory} build[/]")


def build(asked: Asked, until: str | None, workers: int | None, force: list[str], cluster: str | None = None) -> None:
    built = run_build(asked, until, workers, force, cluster)
    if asked.json:
        return show.as_json(built)
    show.funnel(built["funnel"])
    cached = sum(step["cached"] for step in built["steps"])
    show.line(f"{len(built['steps'])} steps stand, {cached} of them cached")
    return show.line(
        f"fingerprint [bold]{built['fingerprint']}[/]" if built["fingerprint"] else f"stopped after {until}"
    )


def run_build(
    asked: Asked, until: str | None, workers: int | None, force: list[str], cluster: str | None = None
) -> dict[str, Any]:
    """The flow build_corpus, with its progress shown; what it returns."""
    from flows.scope import check_request

    check_request(Project(asked.root), until, force)  # an error should not wait until Prefect is up
    guard()
    with show.shown(quiet=asked.json):
        from flows.corpus import build_corpus

        return build_corpus(str(asked.root), until, workers, force, cluster)


def build_small(
    asked: Asked, until: str | None, workers: int | None, limit: int | None, fraction: float | None
) -> None:
    from flows import small

    with show.shown(quiet=asked.json):
        built = small.build_small(small.small_project(asked.root, limit, fraction), until, workers)
    if asked.json:
        return show.as_json(built)
    rows = [
        (row["step"], row["outcome"], show.seconds(row["seconds"]), show.size(row["bytes"])) for row in built["steps"]
    ]
    show.table(f"Small run in {built['tree']}", ("step", "outcome", "time", "disk"), rows, right=("time", "disk"))
    whole = built["projected"]
    time = show.seconds(whole["seconds"]) if whole["seconds"] is not None else "unknown (it stood already)"
    return show.line(f"the whole, {show.size(whole['raw_bytes'])} of raw text: {time} and {show.size(whole['bytes'])}")


def status(asked: Asked, with_bytes: bool) -> None:
    from flows.standing import statuses

    rows = statuses(Project(asked.root), with_bytes)
    show.as_json(rows) if asked.json else show.statuses(rows, with_bytes)


def release(asked: Asked, name: str) -> None:
    from flows.release import release as make

    with show.shown(quiet=asked.json):
        released = make(asked.root, name)
    if asked.json:
        return show.as_json(released)
    show.line(f"released [bold]{name}[/]" if released.new else f"release {name} is there already: nothing to do")
    return show.line(f"fingerprint {released.fingerprint}\npin {released.pin.relative_to(asked.root)}")


def verify(asked: Asked, pin: str | None) -> None:
    from flows.standing import verified_artifacts, verified_pin

    rows = [verified_pin(asked.root, pin)] if pin else verified_artifacts(Project(asked.root))
    if asked.json:
        return show.as_json(rows)
    for row in rows:
        what = row.get("step") or f"pin {row['name']}"
        show.line(f"{what}: {row['files']} files, {show.size(row['bytes'])}, fingerprint {row['fingerprint'][:12]}")
    return None if rows else show.line("nothing stands yet; gristmill build")


def train(asked: Asked, pin: str, steps: int | None, again: bool) -> None:
    from flows.train import train_or_find

    guard()
    with show.shown(quiet=asked.json):
        run, new = train_or_find(asked.root, pin, steps, again)
    if asked.json:
        return show.as_json(run)
    return show.run(run, new)


def fetch(asked: Asked, pin: str, documents: bool) -> None:
    from flows.against import fetch_documents
    from flows.fetch import fetch as lay

    folder = fetch_documents(asked.root, pin) if documents else lay(asked.root, pin)
    what = "documents" if documents else "pin"
    show.as_json({what: folder}) if asked.json else show.line(
        f"{what} {folder.relative_to(asked.root)} lies there, verified"
    )


def inspect(asked: Asked, pin: str, batches: int, samples: int, picture: Path | None) -> None:
    from flows.inspection import inspect as look
    from tasks.errors import InvariantError

    found = look(asked.root, pin, batches, samples, picture and asked.root / picture)
    if asked.json:
        show.as_json(found)
    else:
        for title, part in (
            ("batches", found.batches),
            ("documents of train, were each a row of its own", found.documents),
            ("vocabulary", found.vocabulary),
        ):
            show.line(f"[bold]{title}[/]")
            for text in part.lines():
                show.line(escape(text))
        show.line(f"picture {found.picture}")
    if found.faults:
        raise InvariantError(f"pin {pin}: {found.faults} faults in what it would feed", "do not train on it")


def trace(asked: Asked, pin: str, step: int) -> None:
    """The documents of a training step, by train.batch_size of params.yaml; the first step is 1."""
    from audit.trace import trace as traced
    from training.pin import open_pin

    project = Project(asked.root)
    size = int(project.section("train")["batch_size"])
    found = traced(project, open_pin(pin, asked.root), range((step - 1) * size, step * size))
    if asked.json:
        return show.as_json(found)
    rows = [
        (one.position, f"{one.shard}:{one.sequence}", document.id[:12], f"{document.file}:{document.record}",
         f"{document.ids[0]}-{document.ids[1]} of {document.of}")
        for one in found for document in one.documents
    ]  # fmt: skip
    return show.table(f"Step {step} of {size} sequences", ("position", "sequence", "document", "record", "ids"), rows)


def what_if(asked: Asked, limits: list[str]) -> None:
    from audit.what_if import what_if as answer_to

    if not limits:
        return _rules(asked)
    if all(limit.startswith("dedup.") for limit in limits):
        return _what_if_dedup(asked, limits)
    if all(limit.startswith("pack.") for limit in limits):
        from flows.packing_page import packing

        return packing(Project(asked.root), limits, asked.json)

    answer = answer_to(Project(asked.root), limits)
    if asked.json:
        return show.as_json(answer)
    rows = [
        (move.source, move.language, f"{move.before} > {move.after}", f"{move.documents:,}", f"{move.characters:,}")
        for move in answer.moves
    ]
    columns = ("source", "language", "verdict", "documents", "characters")
    show.table("; ".join(answer.changed), columns, rows, right=("documents", "characters"))
    for one in answer.examples:
        place = f"{one.part} row {one.row}, {one.before} > {one.after}, {one.rule} {one.value:g} (limit {one.limit:g})"
        show.line(f"{escape(place)}: {escape(' '.join(one.text.split()))}")
    moved = sum(move.documents for move in answer.moves)
    return show.line(f"{moved:,} of {answer.documents:,} documents would change sides; nothing was built")


def _rules(asked: Asked) -> None:
    """The rules of filter as they judge: sets and block lists resolved, every limit a number."""
    from tasks.pipeline import STEPS

    rules = Project(asked.root).params(STEPS["filter"]).model_dump(mode="json", exclude_defaults=True)["rules"]
    if asked.json:
        return show.as_json(rules)
    limits = [" ".join(f"{name} {rule[name]:g}" for name in ("min", "max") if name in rule) for rule in rules]
    scopes = ("kinds", "languages", "sources")
    judged = ["; ".join(", ".join(rule[name]) for name in scopes if rule.get(name)) or "all" for rule in rules]
    others = ["; ".join(_exception(item) for item in rule.get("where", ())) for rule in rules]
    rows = [
        (rule["name"], rule["signal"], limit, scope, other)
        for rule, limit, scope, other in zip(rules, limits, judged, others, strict=True)
    ]
    return show.table(f"{len(rows)} rules, in their order", ("rule", "signal", "limit", "of", "but"), rows)


def _exception(item: dict[str, Any]) -> str:
    whom = ", ".join(name for scope in ("kinds", "languages", "sources") for name in item.get(scope) or ())
    limits = "not judged" if item.get("skip") else " ".join(f"{k} {item[k]:g}" for k in ("min", "max") if k in item)
    return f"{whom}: {limits}"


def _what_if_dedup(asked: Asked, limits: list[str]) -> None:
    from audit.what_if_dedup import recall_curve
    from audit.what_if_dedup import what_if as answer_to

    lines = answer_to(Project(asked.root), limits)
    if asked.json:
        return show.as_json(lines)
    rows = [
        (
            line.of_kinds,
            "measured" if line.measured else "estimated",
            one.source,
            f"{one.documents:,}",
            f"{one.removed:,}",
            f"{one.removed / max(1, one.documents):.1%}",
        )
        for line in lines
        for one in line.sources
    ]
    columns = ("threshold", "how", "source", "documents", "removed", "share")
    show.table("the standing thresholds twice, then those asked for", columns, rows, right=columns[3:])
    show.line(recall_curve(Project(asked.root)))
    for line in lines:
        for pair in line.pairs:
            show.line(escape(f"{pair.similarity:.3f}  {pair.part} row {pair.row}: {pair.text}"))
            show.line(escape(f"       {pair.other_part} row {pair.other_row}: {pair.other_text}"))
    return show.line("nothing was built")


def unlock(asked: Asked) -> None:
    from tasks.locks import unlock as forget

    record = forget(Project(asked.root).state)
    if asked.json:
        return show.as_json(record)
    return show.line(f"forgot the lock of pid {record['pid']} on {record['host']}" if record else "no lock is held")


def export(asked: Asked, pin: str, form: str, folder: Path, kind: str, reasons: bool) -> None:
    from flows.export import export as make

    made = make(asked.root, pin, form, folder, kind, reasons)
    if asked.json:
        return show.as_json(made)
    rows = "documents" if form == "documents" else "sequences"
    return show.line(f"{folder}: {made.rows:,} {rows} in {made.files} files")


def train_tokenizer(asked: Asked, name: str) -> None:
    _tell_card(asked, run_train_tokenizer(asked, name))


def adopt_tokenizer(asked: Asked, name: str, model: Path, roles: list[str], control: list[str], pattern: str) -> None:
    from flows.tokenizer import adopt_tokenizer as make

    _tell_card(asked, make(asked.root, name, model, roles, control, pattern))


def tokenizer_report(asked: Asked) -> None:
    from flows.tokens_page import show_report, tokens_report

    report = tokens_report(Project(asked.root))
    return show.as_json(report) if asked.json else show_report(report)


def _tell_card(asked: Asked, card: dict[str, Any]) -> None:
    if asked.json:
        return show.as_json(card)
    return show.line(
        f"tokenizers/{card['name']}: {card['vocab_size']:,} pieces, sha256 {card['sha256'][:12]}; commit it to git"
    )


def run_train_tokenizer(asked: Asked, name: str) -> dict[str, Any]:
    """The tokenizer's card, with a spinner while it is made."""
    from flows.tokenizer import train_tokenizer as make

    with show.waiting(f"training tokenizer {name}", quiet=asked.json):
        return make(asked.root, name)
