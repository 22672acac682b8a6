"""README.md and docs/: what they name is there, and what is there they name."""

import importlib
import re
import subprocess
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from pydantic import BaseModel

import flows.fetch
import flows.release  # noqa: F401 - brings the errors of DVC and git
from flows.cli import app
from tasks.artifacts.documents import DOCUMENTS, PLACES
from tasks.errors import GristmillError
from tasks.pipeline import STEPS
from training.params import TrainParams

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/data.md", "docs/decisions.md")
INHERITED = {("ingest", "rejects"): PLACES.names, ("normalize", "text"): DOCUMENTS.names}
OTHER_PROGRAMS = {"dvc", "prefect", "python"}
ELSEWHERE = ("/wo" + "rk/", "/tmp/" + "clone", "/tmp/" + "docs", "cla" + "ude", "anthro" + "pic")


def layout(step):
    """The section of docs/data.md on the step's files; that on its params stands before it."""
    return section_after("## Parquet files", step)


def section_after(start, title):
    """The text below the heading `title` (a pattern), the first one after `start`, up to the next heading."""
    found = re.search(rf"^### {title}\n", DATA[DATA.index(start) :], re.MULTILINE)
    assert found, f"docs/data.md has no section {title}"
    return re.split(r"^##+ ", DATA[DATA.index(start) + found.end() :], maxsplit=1, flags=re.MULTILINE)[0]


def table(text):
    """The first table of `text`: rows of cells without the head."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert rows and lines, text[:80]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines.group().splitlines()[2:]]


def schemas():
    for step in STEPS.values():
        for folder in step.folders:
            module = importlib.import_module(folder.function.partition(":")[0])
            for name in (folder.name, *folder.also):
                schema = getattr(module, "SCHEMAS", {}).get(name, getattr(module, "SCHEMA", None))
                if schema is not None:
                    yield pytest.param(step.name, name, schema, id=f"{step.name}/{name}")


def spelled(field: pa.Field) -> str:
    plain = re.sub(r"<(?:item|element): (\w+)(?: not null)?", r"<\1", str(field.type))
    return plain + ("?" if field.nullable else "")


@pytest.mark.parametrize(("step", "folder", "schema"), list(schemas()))
def test_every_column_stands_in_data_md_with_its_type(step, folder, schema):
    text = layout(step)
    assert f"`{folder}/" in text, f"docs/data.md does not say what data/{step}/{folder} is"
    below = text[text.index(f"`{folder}/") :]
    inherited = INHERITED.get((step, folder), [])
    if step == "dedup" and folder == "cuts":
        return
    told = [(name.strip("`"), kind) for name, kind, *_ in table(below)]
    assert told == [(field.name, spelled(field)) for field in schema if field.name not in inherited]


def models(model):
    """The fields of a params class and of the classes its fields hold, as (name, role or None)."""
    for name, info in model.model_fields.items():
        yield name, (info.json_schema_extra or {}).get("role")
        for inner in held(info.annotation):
            yield from ((other, None) for other, _ in models(inner))


def held(annotation):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from held(argument)


@pytest.mark.parametrize("step", [name for name in STEPS if name != "shard"])
def test_every_parameter_stands_in_data_md_with_its_role(step):
    text = section_after("## params.yaml", rf"{step} \(.*\)")
    roles = {name.strip("`"): row[1] for row in table(text) for name in row[0].split(", ")}
    own = {name for name, _ in models(STEPS[step].params)}
    assert {name for name in own if f"`{name}`" not in text} == set()
    top = {name: (info.json_schema_extra or {}).get("role") for name, info in STEPS[step].params.model_fields.items()}
    assert roles == top


def test_every_parameter_of_training_stands_in_data_md():
    text = section_after("## params.yaml", r"train \(.*\) and run")
    assert {name for name in TrainParams.__dataclass_fields__ if f"`{name}`" not in text} == set()
    assert "`run.workers`" in text


def commands():
    """Every command of the program as people type it."""
    for command in app.registered_commands:
        yield f"gristmill {command.name or command.callback.__name__}"
    for group in app.registered_groups:
        for command in group.typer_instance.registered_commands:
            yield f"gristmill {group.name} {command.name or command.callback.__name__}"


@pytest.mark.parametrize("command", list(commands()))
def test_every_command_stands_in_the_readme(command):
    assert f"`{command}" in README


def typed():
    """The commands of README's console blocks."""
    for block in re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))


@pytest.mark.parametrize("line", sorted(set(typed())))
def test_every_command_that_the_readme_shows_is_there(line):
    program, *words = line.split()
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), line
    elif program == "gristmill":
        assert any(line.startswith(command) for command in commands()), line
    else:
        assert program in OTHER_PROGRAMS, line


def test_the_readme_begins_with_what_it_is_and_the_first_command():
    lines = README.splitlines()
    assert "$ make demo" in lines[:20]
    assert len(lines) < 250
    assert re.search(r"^Content digest of `samples/`: `[0-9a-f]{64}`$", README, re.MULTILINE)


def errors(kind=GristmillError):
    yield kind
    for below in kind.__subclasses__():
        yield from errors(below)


def test_the_readme_explains_every_exit_status():
    told = {int(number) for number in re.findall(r"\| (\d+) \|", README)}
    assert {kind.code for kind in errors() if kind.__module__.startswith(("tasks.", "flows."))} | {0, 130} == told


def anchors(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    plain = (re.sub(r"&lt;|&gt;", "", head).lower() for head in heads)
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        other = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert other.is_file(), f"{page}: {target}"
        assert not anchor or anchor in anchors(other.relative_to(ROOT)), f"{page}: {target}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/data.md"])
def test_files_that_the_docs_name_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\b((?:flows|tasks|training|tests)/[a-z_/]+\.py)\b", text))
    assert {path for path in named if not (ROOT / path).is_file()} == set()


def test_the_script_that_traces_a_token_names_what_is_there():
    script = re.search(r"^```python\n(.*?)^```", DATA, re.MULTILINE | re.DOTALL).group(1)
    compile(script, "trace.py", "exec")
    imports = "\n".join(line for line in script.splitlines() if re.match(r"from |import ", line))
    exec(imports, {})


def test_no_file_names_the_machine_it_was_written_on():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout, so there is no list of the repository's files")
    found = []
    for name in listed.stdout.split("\n")[:-1]:
        if (ROOT / name).is_file():
            text = (ROOT / name).read_bytes().decode("utf-8", "replace").lower()
            found += [f"{name}: {word}" for word in ELSEWHERE if word in text]
    assert found == []
