"""Hold an artifact against its suite: the only module that imports great_expectations.

In go a step, its staged artifact, the suite's file and the folder for Data Docs; out comes a Validation. There are two
tables: `profile` (tasks.profile) and `rows`, which is gone through part by part and of which no more is held than one.
What an expectation has to know of a table (how many rows, nulls, broken ones, which) is counted by tasks.tallies, over
every row; Great Expectations takes these for its metrics and judges. It counts itself, in a frame of all rows or of a
sample, where an expectation is of a form that tasks.tallies does not know. tasks.findings says what its answers mean.
It is imported on the first call only (3.2 s of CPU), with its analytics off, its bars, logs and warnings kept to
itself. Nothing is raised for data, only for a faulty suite.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tasks.data_docs import escaped, write_page
from tasks.errors import ParamsError
from tasks.findings import EXAMPLES, Finding, judge
from tasks.profile import unknown_signals
from tasks.step import Artifact, Step
from tasks.suites import Expected, digest_of, load, name_of
from tasks.tables_tested import Table, profile_of, rows_of, uncounted
from tasks.tallies import Tally

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


def validate(step: Step, artifact: Artifact, suite_file: Path, docs: Path | None, hands: int = 1) -> Validation:
    """Hold `artifact` against the suite in `suite_file`; with `docs`, write Data Docs to docs/<step>/<table>.html.
    hands: threads that may read parts at once.

    Raises ParamsError for a suite that is absent, unreadable, or names an expectation, an argument or a
    condition that Great Expectations or pandas does not know.
    """
    suite, name = load(suite_file), name_of(suite_file)
    with _quiet():
        profile = profile_of(step, artifact, suite, name)
        tables = [profile, rows_of(step, artifact, suite, profile.subject.totals, name, hands)]
        findings = [Finding(True, text) for text in unknown_signals(artifact.params, tables[1].subject.columns)]
        for table in tables:
            findings += _examine(step.name, table, name, docs)
    failures = [f"{name}: {item.sentence}; correct the data or loosen {name}" for item in findings if item.critical]
    notes = [f"{name}: {item.sentence}" for item in findings if not item.critical]
    return Validation(not failures, failures, notes, _tested(*tables))


def suite_digest(path: Path) -> str:
    """64 hex over what the suite in `path` says; raises ParamsError where it is absent or no JSON."""
    return digest_of(path)


def _tested(profile: Table, rows: Table) -> dict[str, Any]:
    sampled = bool(rows.subject.scope)
    return {
        "profile": profile.subject.rows,
        "rows": rows.frame.num_rows if sampled else rows.subject.rows,
        "rows_total": rows.subject.rows,
        "sampled": sampled,
        "expectations": sum(len(table.subject.expected) for table in (profile, rows)),
    }


def _examine(step: str, table: Table, suite: str, docs: Path | None) -> Iterator[Finding]:
    """Every finding about one table, in the suite's order; its page of Data Docs on the way."""
    subject = table.subject
    if not subject.rows:
        yield Finding(True, f"{subject.name} has no rows: {len(subject.expected)} expectations tested nothing")
        return
    answers = _answers(f"{step}/{subject.name}", table, suite)
    for number in range(len(subject.expected)):
        scope = "" if subject.tallies[number].counted else subject.scope
        for finding in judge(number, answers.get(number), subject):
            yield Finding(finding.critical, f"{subject.name}[{number}]{scope} {finding.sentence}")
    if docs is not None:
        result = _together(f"{step}/{subject.name}{subject.scope}", answers)
        held = bool(result.success) and len(answers) == len(subject.expected)
        write_page(docs, step, subject.name, _page(result), held)


def _answers(name: str, table: Table, suite: str) -> dict[int, Any]:
    """What Great Expectations says of each expectation whose columns are there, by its number."""
    subject = table.subject
    known = {number: item for number, item in enumerate(subject.expected) if not subject.absent(item)}
    foreign = {number: known[number] for number in uncounted(subject)}
    _import_gx()
    with _written_once():
        said = {
            number: _of_counts(_expectation(number, item, suite), subject.tallies[number])
            for number, item in known.items()
            if number not in foreign
        }
    if foreign:
        for answer in _run(name, table.frame.to_pandas(), foreign, suite).results:
            places = (answer.result or {}).get("partial_unexpected_index_list")
            if places:
                answer.result["partial_unexpected_index_list"] = [table.places[place] for place in places]
            said[_number(answer)] = answer
    return {number: said[number] for number in known if number in said}


def _of_counts(expectation: Any, tally: Tally) -> Any:
    """What Great Expectations says of an expectation where its metrics are these.

    An expectation judges in `_validate`, as those of other people do, which it calls itself once it has looked for the
    metrics in a graph (1.24.1): four fifths of what a suite cost.
    """
    from great_expectations.expectations.expectation_configuration import parse_result_format

    metrics = _metrics(getattr(expectation, "map_metric", None), tally)
    for form in (COUNTS, PLACES):
        said = expectation._validate(metrics, {"result_format": parse_result_format(form)})
        if said["success"]:
            break
    return expectation._build_evr(said)


def _metrics(of_rows: str | None, tally: Tally) -> dict[str, Any]:
    """What was counted, as Great Expectations names it. of_rows: the metric of an expectation about single rows."""
    return {
        f"{of_rows}.unexpected_count": tally.broken,
        f"{of_rows}.unexpected_values": tally.values,
        f"{of_rows}.unexpected_index_list": tally.places,
        f"{of_rows}.filtered_row_count": tally.rows - tally.absent,
        "column_values.nonnull.unexpected_count": tally.nulls,
        "column.distinct_values.count": len(tally.distinct),
        "table.row_count": tally.rows,
    }


def _together(name: str, answers: Mapping[int, Any]) -> Any:
    """One result of all answers, as Great Expectations lays it for a page."""
    from great_expectations import __version__
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult

    results = list(answers.values())
    held = sum(bool(item.success) for item in results)
    statistics = {
        "evaluated_expectations": len(results),
        "successful_expectations": held,
        "unsuccessful_expectations": len(results) - held,
        "success_percent": held / len(results) * 100 if results else None,
    }
    meta = {"great_expectations_version": __version__}
    return ExpectationSuiteValidationResult(held == len(results), results, name, statistics=statistics, meta=meta)


def _run(name: str, frame: Any, expected: Mapping[int, Expected], suite: str) -> Any:
    """What Great Expectations says where it counts in a frame itself, every expectation numbered in its meta."""
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
    """One for all pages: each has templates of its own, which it compiles (half of what a page costs). Nor does it look
    at their files again for every row of a page."""
    from great_expectations.render.view import DefaultJinjaPageView

    view = DefaultJinjaPageView()
    view.env.auto_reload = False
    return view


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
