"""Hold an artifact against its suite: the only module that imports great_expectations.

In go a step, its staged artifact, the suite's file and the folder for Data Docs; out comes a Validation.
Great Expectations judges two tables (tasks.profile), tasks.findings says what its answers mean. It is
imported on the first call only (3.2 s of CPU), with its analytics off, its bars, logs and warnings kept to
itself. Nothing is raised for data, only for a faulty suite.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tasks.data_docs import escaped, write_page
from tasks.errors import ParamsError
from tasks.findings import EXAMPLES, Finding, Subject, judge
from tasks.profile import Sample, profile_table, sample_rows, unknown_signals, with_visible
from tasks.step import Artifact, Step
from tasks.suites import Expected, Suite, digest_of, load, name_of

OPT_OUTS = {"GX_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
COUNTS = {"result_format": "BASIC", "partial_unexpected_count": max(EXAMPLES.values())}
PLACES = {**COUNTS, "result_format": "SUMMARY"}
"""How much Great Expectations says of an expectation: counts and examples of all, and the rows of what is broken, which
take half of its time to look for where there are none."""


@dataclass(frozen=True)
class Validation:
    """failures, warnings: a sentence each: expectation, column, limit, what was seen, examples, why, the
    mend.

    tested: profile and rows (rows looked at), rows_total (rows there are), sampled (whether those differ),
        expectations (how many were held against them).
    """

    success: bool
    failures: list[str]
    warnings: list[str]
    tested: dict[str, Any] = field(default_factory=dict)


def validate(step: Step, artifact: Artifact, suite_file: Path, docs: Path | None) -> Validation:
    """Hold `artifact` against the suite in `suite_file`; with `docs`, write Data Docs to
    docs/<step>/<table>.html.

    Raises ParamsError for a suite that is absent, unreadable, or names an expectation, an argument or a
    condition that Great Expectations or pandas does not know.
    """
    suite = load(suite_file)
    sample = sample_rows(step, artifact)
    name = name_of(suite_file)
    with _quiet():
        subjects = _subjects(step, artifact, suite, sample)
        findings = [Finding(True, text) for text in unknown_signals(artifact.params, sample.rows.column_names)]
        for subject in subjects:
            findings += _examine(step.name, subject, name, docs)
    failures = [f"{name}: {item.sentence}; correct the data or loosen {name}" for item in findings if item.critical]
    notes = [f"{name}: {item.sentence}" for item in findings if not item.critical]
    return Validation(not failures, failures, notes, _tested(subjects, sample))


def suite_digest(path: Path) -> str:
    """64 hex over what the suite in `path` says; raises ParamsError where it is absent or no JSON."""
    return digest_of(path)


def _tested(subjects: Sequence[Subject], sample: Sample) -> dict[str, Any]:
    return {
        "profile": subjects[0].table.num_rows,
        "rows": sample.rows.num_rows,
        "rows_total": sample.total,
        "sampled": sample.rows.num_rows < sample.total,
        "expectations": sum(len(subject.expected) for subject in subjects),
    }


def _subjects(step: Step, artifact: Artifact, suite: Suite, sample: Sample) -> list[Subject]:
    """The two tables with the columns that the suite asks for, and names for their rows."""
    table = profile_table(step, artifact, suite)
    totals = {name: table[name][0].as_py() for name in table.column_names[2:]}
    members = [f"{row['dimension']} {row['member']}" for row in table.select(["dimension", "member"]).to_pylist()]
    profile = with_visible(table, suite.visible("profile"))
    rows = with_visible(sample.rows, suite.visible("rows"))
    seen, there = sample.rows.num_rows, sample.total
    scope = f" (a sample of {seen} of {there} rows)" if seen < there else ""
    return [
        Subject("profile", profile, members.__getitem__, suite, totals),
        Subject("rows", rows, lambda n: f"{sample.units[n]} row {sample.numbers[n]}", suite, totals, scope),
    ]


def _examine(step: str, subject: Subject, suite: str, docs: Path | None) -> Iterator[Finding]:
    """Every finding about one table, in the suite's order; its page of Data Docs on the way."""
    if not subject.table.num_rows:
        yield Finding(True, f"{subject.name} has no rows: {len(subject.expected)} expectations tested nothing")
        return
    _try_conditions(subject, suite)
    known = {number: item for number, item in enumerate(subject.expected) if not subject.absent(item)}
    result = _run(f"{step}/{subject.name}{subject.scope}", subject.frame, known, suite)
    answers = {_number(item): item for item in result.results}
    for number, item in enumerate(subject.expected):
        for finding in judge(item, answers.get(number), subject):
            sentence = f"{subject.name}[{number}]{subject.scope} {finding.sentence}"
            yield Finding(finding.critical, sentence)
    if docs is not None:
        held = bool(result.success) and len(known) == len(subject.expected)
        write_page(docs, step, subject.name, _page(result), held)


def _try_conditions(subject: Subject, suite: str) -> None:
    try:
        _ = subject.where
    except Exception as error:
        raise ParamsError(f"{suite}: a row_condition of {subject.name}: {error}", "correct it") from error


def _run(name: str, frame: Any, expected: Mapping[int, Expected], suite: str) -> Any:
    """The validation result of Great Expectations on one frame, every expectation numbered in its meta."""
    gx = _import_gx()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("gristmill").add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": frame})
    with _written_once():
        result = batch.validate(_suite(name, expected, suite), result_format=COUNTS)
        broken = {_number(item): place for place, item in enumerate(result.results) if not item.success}
        if broken:
            again = _suite(name, {number: expected[number] for number in broken}, suite)
            for item in batch.validate(again, result_format=PLACES).results:
                result.results[broken[_number(item)]] = item
    return result


def _suite(name: str, expected: Mapping[int, Expected], suite: str) -> Any:
    """Built one by one, since a suite leaves out an expectation that it does not know and only logs it."""
    expectations = _import_gx().ExpectationSuite(name=name)
    expectations.expectations += [_expectation(number, item, suite) for number, item in expected.items()]
    return expectations


def _number(answer: Any) -> int:
    number: int = answer.expectation_config.meta["number"]
    return number


def _expectation(number: int, item: Expected, suite: str) -> Any:
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    meta = {"number": number, "why": item.meta.why}
    try:
        return ExpectationConfiguration(
            type=item.type, kwargs=dict(item.kwargs), meta=meta, severity=item.severity
        ).to_domain_obj()
    except Exception as error:
        fault = " ".join(str(error).split())
        raise ParamsError(f"{suite}: {item.type}: {fault}", "correct its type or its kwargs") from error


def _page(result: Any) -> str:
    """The Data Docs page of a result, its values escaped first: the templates show them as HTML."""
    from great_expectations.render.renderer import ValidationResultsPageRenderer

    for item in result.results:
        item.result = escaped(item.result)
        item.exception_info = escaped(item.exception_info)
    return str(_view().render(ValidationResultsPageRenderer().render(result)))


@cache
def _view() -> Any:
    """One for all pages: each has templates of its own, which it compiles (half of what a page costs)."""
    from great_expectations.render.view import DefaultJinjaPageView

    return DefaultJinjaPageView()


@contextmanager
def _written_once() -> Iterator[None]:
    """Have each expectation write itself out as a configuration once.

    Great Expectations 1.24.1 does so for every key that it looks up, some seventy times for an expectation, which was
    half of what a suite cost. While a table is tested expectations do not change; a test holds the results against
    those without this.
    """
    from great_expectations.expectations.expectation import Expectation

    own, written = Expectation.configuration, dict[int, tuple[Any, Any]]()

    def configuration(expectation: Any) -> Any:
        found = written.get(id(expectation))
        if found is None:  # the expectation is kept, so that its id names nothing else
            found = written[id(expectation)] = (expectation, own.fget(expectation))
        return found[1]

    Expectation.configuration = property(configuration)
    try:
        yield
    finally:
        Expectation.configuration = own


def _import_gx() -> ModuleType:
    os.environ.update(OPT_OUTS)
    import great_expectations

    return great_expectations  # type: ignore[no-any-return]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the warnings and logs of Great Expectations, and of what it imports, to themselves."""
    logger, nowhere = logging.getLogger("great_expectations"), logging.NullHandler()
    before = logger.propagate
    logger.propagate = False
    logger.addHandler(nowhere)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.propagate = before
        logger.removeHandler(nowhere)
