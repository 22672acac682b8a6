"""Releases and pins on a corpus of cards: DVC and git are real, the nine artifacts are small files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from flows import receipt, release, releases
from flows.against import fetch_documents
from flows.fetch import fetch
from flows.pins import clone, lay_pin
from flows.release import Released
from flows.versioning import DvcError, GitError, dvc, git
from tasks.artifacts.canonical import file_digest, pretty
from tasks.artifacts.manifest import Entry, Manifest
from tasks.errors import GristmillError, IntegrityError, ParamsError
from tasks.pipeline import STEPS

HOUSE = Path(__file__).parent.parent
STAGES = [{"start": 0, "weights": {"a": 1}, "quotas": {"a": 4}}]
MIXTURE = {"tokenizer": {"name": "tiny", "sha256": "0" * 64}, "seed": 1, "period": 4, "stages": STAGES}


def artifact(root: Path, step: str, text: str) -> Manifest:
    """An artifact of one file with a manifest; mix holds a mixture."""
    home = root / "data" / step
    name = "mixture.json" if step == "mix" else "a/train/shard_00000.bin"
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(MIXTURE) if step == "mix" else text)
    facts = {name: {"sha256": file_digest(path), "bytes": path.stat().st_size}}
    entry = Entry("0" * 64, "0" * 64, facts, 1, {"documents_in": 1}, ("a", 0))
    manifest = Manifest(step, {"text": text, "inputs": {}}, {"whole": {"whole": entry}})
    manifest.write(home)
    return manifest


def lay(root: Path, text: str = "one") -> None:
    """Nine artifacts, their reports, and what the stage sources writes."""
    for step in STEPS:
        artifact(root, step, text)
        report = root / "reports" / f"{step}.json"
        report.parent.mkdir(exist_ok=True)
        report.write_text(f"{{}} {text}")
    sources = {"sources": {"a": {"kind": "web", "files": {"a.txt": {"sha256": "0" * 64, "bytes": 3}}}}}
    (root / "data" / "sources.json").write_text(pretty(sources))
    (root / "data" / "code.json").write_text(pretty(dict.fromkeys(STEPS, "0" * 64)))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A corpus of cards under git and DVC, made once."""
    root = tmp_path_factory.mktemp("corpus") / "corpus"
    root.mkdir()
    for name in ("dvc.yaml", ".gitignore", ".dvcignore"):
        shutil.copy(HOUSE / name, root / name)
    (root / ".dvc").mkdir()
    for name in (".dvc/config", ".dvc/.gitignore"):
        shutil.copy(HOUSE / name, root / name)
    sections = {step: {"value": 1} for step in STEPS} | {"mix": {"seed": 1, "stages": MIXTURE["stages"]}}
    (root / "params.yaml").write_text(yaml.safe_dump(sections))
    for step in STEPS:
        (root / "expectations").mkdir(exist_ok=True)
        (root / "expectations" / f"{step}.json").write_text("{}")
    git(root, "init", "-q")
    git(root, "config", "user.name", "Miller")
    git(root, "config", "user.email", "miller@example.org")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "The recipe")
    lay(root)
    return root


@pytest.fixture
def corpus(template, tmp_path, monkeypatch):
    root = tmp_path / "corpus"
    shutil.copytree(template, root)
    up_to_date = [{"step": step, "up_to_date": True, "why": []} for step in STEPS]
    monkeypatch.setattr(release, "statuses", lambda project: up_to_date)
    return root


def test_a_release_is_one_commit_a_tag_the_remote_and_a_pin(corpus):
    recipe = git(corpus, "rev-parse", "HEAD")
    made = release.release(corpus, "corpus-1")
    record = releases.read(corpus, "corpus-1")
    assert made == Released("corpus-1", record["fingerprint"], git(corpus, "rev-parse", "HEAD"), made.pin, True)
    assert git(corpus, "rev-parse", "HEAD~1") == recipe == record["git"]["revision"]
    assert git(corpus, "rev-parse", "corpus-1") == made.revision
    touched = git(corpus, "show", "--name-only", "--format=", "HEAD").split("\n")
    assert {path.split("/")[0] for path in touched} == {"dvc.lock", "reports", "releases"}
    assert git(corpus, "status", "--porcelain") == ""
    _says_what_it_was_made_from(corpus, record)
    _pin_is_whole_and_read_only(corpus, made.pin, record)
    _again_changes_nothing(corpus, made)
    _comes_back_from_the_cache_and_the_remote(corpus, record)


def _says_what_it_was_made_from(corpus: Path, record: dict) -> None:
    lock = yaml.safe_load((corpus / "dvc.lock").read_text())
    for step in STEPS:
        assert record["steps"][step]["dvc"] == lock["stages"][step]["outs"][0]["md5"]
        assert record["steps"][step]["counts"] == {"whole": {"documents_in": 1}}
    assert record["raw"]["bytes"] == 3 and len(record["raw"]["digest"]) == len(record["rules"]) == 64
    assert record["tokenizer"] == MIXTURE["tokenizer"]
    assert record["pack"] == record["shard"] == {"value": 1}
    assert {"python", "pyarrow", "dvc"} <= set(record["versions"])
    assert str(corpus) not in (corpus / "releases" / "corpus-1.json").read_text()


def _pin_is_whole_and_read_only(corpus: Path, pin: Path, record: dict) -> None:
    assert pin == corpus / "pins" / record["fingerprint"]
    shard = pin / "shard/a/train/shard_00000.bin"
    assert shard.read_text() == "one" and shard.stat().st_mode & 0o222 == 0
    assert shard.stat().st_ino != (corpus / "data/shard/a/train/shard_00000.bin").stat().st_ino
    assert json.loads((pin / "pin.json").read_text())["files"] == record["files"]


def _again_changes_nothing(corpus: Path, made: Released) -> None:
    again = release.release(corpus, "corpus-1")
    assert again == Released(made.name, made.fingerprint, made.revision, made.pin, new=False)
    assert git(corpus, "rev-parse", "HEAD") == made.revision
    artifact(corpus, "mix", "two")
    with pytest.raises(GristmillError, match="a name is given once"):
        release.release(corpus, "corpus-1")


def _comes_back_from_the_cache_and_the_remote(corpus: Path, record: dict) -> None:
    for gone in ("data", ".dvc/cache"):
        shutil.rmtree(corpus / gone)
        shutil.rmtree(corpus / "pins")
        pin = fetch(corpus, record["fingerprint"][:8])
        _pin_matches(pin, record)
    shutil.rmtree(corpus / ".gristmill" / "remote")
    shutil.rmtree(corpus / "pins")
    with pytest.raises(GristmillError, match="neither in DVC's cache nor on its remote; name a remote"):
        fetch(corpus, "corpus-1")
    assert not (corpus / "pins" / record["fingerprint"]).exists()


def _pin_matches(pin: Path, record: dict) -> None:
    for path, facts in record["files"].items():
        assert file_digest(pin / path) == facts["sha256"]


def test_changes_of_others_are_named_and_refused(corpus):
    (corpus / "params.yaml").write_text((corpus / "params.yaml").read_text() + "# edited\n")
    (corpus / "new.txt").write_text("x")
    with pytest.raises(GitError, match=r"new.txt, params.yaml; commit them"):
        release.release(corpus, "corpus-1")
    assert not (corpus / "releases").exists() and not (corpus / "dvc.lock").exists()


def test_no_identity_no_remote_and_a_taken_tag_are_refused_before_anything(corpus, monkeypatch):
    git(corpus, "tag", "taken")
    with pytest.raises(GitError, match="tag taken is taken"):
        release.release(corpus, "taken")
    (corpus / ".dvc" / "config").write_text("[core]\n    analytics = false\n")
    git(corpus, "commit", "-q", "-a", "-m", "No remote")
    with pytest.raises(DvcError, match=r"no DVC remote.*dvc remote add"):
        release.release(corpus, "corpus-1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    git(corpus, "config", "--remove-section", "user")
    with pytest.raises(GitError, match=r"no identity.*git config user.name"):
        release.release(corpus, "corpus-1")
    assert not (corpus / "releases").exists()


def test_what_is_not_up_to_date_or_damaged_is_not_released(corpus, monkeypatch):
    (corpus / "data/shard/a/train/shard_00000.bin").write_text("two")
    with pytest.raises(IntegrityError, match=r"data/shard/a/train/shard_00000.bin: expected \w{64}, found \w{64}"):
        release.release(corpus, "corpus-1")
    stale = [{"step": "filter", "up_to_date": False, "why": ["min of too_short changed"]}]
    monkeypatch.setattr(release, "statuses", lambda project: stale)
    with pytest.raises(GristmillError, match=r"filter is not up to date: min of too_short changed; build first"):
        release.release(corpus, "corpus-1")


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x.lock", "a..b", "x" * 101])
def test_a_name_that_git_or_a_disk_would_refuse(tmp_path, name):
    with pytest.raises(ParamsError, match="cannot name a release"):
        releases.check_name(name)


def test_resolving_names_prefixes_and_neither(tmp_path):
    for name, fingerprint in (("one", "aaaaaa1"), ("two", "aaaaaa2"), ("three", "bbbbbb3")):
        path = releases.path_of(tmp_path, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(pretty({"name": name, "fingerprint": fingerprint, "created": f"2026-{len(name)}"}))
    assert releases.resolve(tmp_path, "two")["fingerprint"] == "aaaaaa2"
    assert releases.resolve(tmp_path, "bbbbbb")["name"] == "three"
    assert releases.newest(tmp_path)["name"] == "three"
    with pytest.raises(GristmillError, match="means several releases"):
        releases.resolve(tmp_path, "aaaaaa")
    with pytest.raises(GristmillError, match=r"is no release.*\(releases: one, two, three\)"):
        releases.resolve(tmp_path, "four")


def test_weights_may_change_from_the_last_stage_on_only(tmp_path):
    then = {
        "seed": 1,
        "period": 8,
        "stages": [{"start": 0, "weights": {"a": 1}}, {"start": 9, "weights": {"a": 2}}],
    }
    path = releases.path_of(tmp_path, "one")
    path.parent.mkdir()
    path.write_text(pretty({"name": "one", "fingerprint": "0", "created": "2026", "mix": then}))
    releases.refuse_rewritten_past(tmp_path, then)
    releases.refuse_rewritten_past(tmp_path, then | {"stages": [then["stages"][0], {"start": 9, "weights": {"b": 1}}]})
    for changed in (
        {"seed": 2},
        {"stages": then["stages"][1:]},
        {"stages": [then["stages"][0], {"start": 4}]},
        {"stages": [then["stages"][0] | {"leave_out": ["b"]}, then["stages"][1]]},
    ):
        with pytest.raises(ParamsError, match="positions below 9"):
            releases.refuse_rewritten_past(tmp_path, then | changed)
    named = [{"name": "main", "weights": {"a": 1}}, {"start": 9, "weights": {"c": 2}}, {"start": 20, "weights": {}}]
    releases.refuse_rewritten_past(tmp_path, then | {"stages": named})


def test_stages_that_move_with_the_corpus_are_refused_once_they_were_released(tmp_path):
    order = {"seed": 1, "period": 8, "stages": [{"start": 0, "quotas": {"a": 8}}, {"start": 9, "quotas": {"a": 8}}]}
    mix = {"seed": 1, "period": 8, "stages": [{"weights": {"a": 1}, "epochs": 1}, {"weights": {"a": 1}}]}
    path = releases.path_of(tmp_path, "one")
    path.parent.mkdir()
    path.write_text(pretty({"name": "one", "fingerprint": "0", "created": "2026", "mix": mix, "order": order}))
    releases.refuse_rewritten_past(tmp_path, mix)
    releases.refuse_moved_past(tmp_path, order)
    releases.refuse_moved_past(tmp_path, order | {"stages": [*order["stages"], {"start": 30, "quotas": {"a": 8}}]})
    grown = [order["stages"][0], {"start": 12, "quotas": {"a": 8}}]
    with pytest.raises(ParamsError, match="positions below 9, the last stage of release one") as refused:
        releases.refuse_moved_past(tmp_path, order | {"stages": grown})
    assert "start: 9, weights: {'a': 8}" in str(refused.value.mend)
    with pytest.raises(ParamsError, match="positions below 9"):
        releases.refuse_rewritten_past(tmp_path, mix | {"stages": [{"weights": {"a": 1}, "epochs": 2}, *mix["stages"]]})


def test_a_pin_is_laid_whole_or_not_at_all(tmp_path):
    good = tmp_path / "good"
    good.write_text("one")
    files = {"shard/x.bin": {"sha256": file_digest(good), "bytes": 3}}
    pin = lay_pin(tmp_path, "f" * 64, None, files, lambda path, target: clone(good, target))
    (pin / "shard/x.bin").chmod(0o644)
    (pin / "shard/x.bin").write_text("two")
    laid = lay_pin(tmp_path, "f" * 64, None, files, lambda path, target: clone(good, target))
    assert laid == pin and (pin / "shard/x.bin").read_text() == "one"
    with pytest.raises(IntegrityError, match=r"shard/x.bin: expected \w{64}, found \w{64}"):
        lay_pin(tmp_path, "e" * 64, None, files, lambda path, target: target.write_text("three"))
    assert sorted(path.name for path in (tmp_path / "pins").iterdir()) == ["f" * 64]


def test_a_busy_dvc_is_waited_for(tmp_path, monkeypatch):
    from flows import versioning

    said = iter([(255, "ERROR: 'x' is busy, it is being blocked by:\n"), (0, "done")])

    def run(root, words):
        code, text = next(said)
        return subprocess.CompletedProcess(words, code, text, "")

    monkeypatch.setattr(versioning, "_run", run)
    monkeypatch.setattr(versioning, "BUSY_SECONDS", 0)
    assert dvc(tmp_path, "status") == "done"


def test_the_receipt_needs_all_nine(corpus):
    from tasks.project import Project

    shutil.rmtree(corpus / "data" / "pack")
    with pytest.raises(GristmillError, match="data/pack does not stand"):
        receipt.receipt(Project(corpus), "corpus-1")


def with_folders(root: Path, step: str, *folders: str) -> None:
    """An artifact of a file in each of the folders that dedup.against asks for."""
    entries = {}
    for folder in folders:
        path = root / "data" / step / folder / "a-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{step} {folder}")
        facts = {f"{folder}/a-0.parquet": {"sha256": file_digest(path), "bytes": path.stat().st_size}}
        entries[folder] = {"a-0": Entry("0" * 64, "0" * 64, facts, 1, {}, ("a", 0))}
    shutil.rmtree(root / "data" / step / "a")
    Manifest(step, {"text": "documents", "inputs": {}}, entries).write(root / "data" / step)


def test_the_documents_of_a_release_come_from_data_the_cache_and_the_remote(corpus):
    with_folders(corpus, "normalize", "text", "places")
    with_folders(corpus, "dedup", "sketches", "verdicts", "pairs")
    release.release(corpus, "corpus-1")
    wanted = ["dedup/sketches", "dedup/verdicts", "normalize/text"]
    for gone in ("nothing", "data", ".dvc/cache"):
        shutil.rmtree(corpus / gone, ignore_errors=True)
        shutil.rmtree(corpus / "against", ignore_errors=True)
        home = fetch_documents(corpus, "corpus-1")
        assert home == corpus / "against" / "corpus-1"
        found = sorted(path for path in home.rglob("*.parquet"))
        assert [path.parent.relative_to(home).as_posix() for path in found] == wanted
        assert all(path.stat().st_mode & 0o222 == 0 for path in found)
        assert found[0].read_text() == "dedup sketches"
    assert git(corpus, "status", "--porcelain") == "", "against/ is in no version control"
