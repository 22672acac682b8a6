"""Data Docs can be opened from disk, and validation asks nobody (case 55) and says nothing on the side."""

import os
import subprocess
import sys
from pathlib import Path

from tasks.validate import OPT_OUTS
from tests.fakes import check, expect, lay

HOUSE = Path(__file__).parent.parent


def test_data_docs_are_escaped_and_ask_nobody(tmp_path):
    docs = tmp_path / "docs"
    evil = "<script>alert(1)</script>"
    result = check(
        tmp_path,
        {"rule": [evil, "b"]},
        expect("column_values_to_be_in_set", column="rule", value_set=["b"]),
        docs=docs,
    )
    assert not result.success and evil in result.failures[0]
    page = (docs / "filter" / "rows.html").read_text()
    assert "Great Expectations" in page and "&lt;script&gt;alert(1)" in page
    for name in ("rows", "profile"):
        page = (docs / "filter" / f"{name}.html").read_text()
        assert "<script" not in page and "<link" not in page
        assert 'src="http' not in page and "url('http" not in page
    index = (docs / "index.html").read_text()
    assert "filter/profile: all expectations hold" in index and "filter/rows: expectations are broken" in index


ASKS = """
import sys
from pathlib import Path

def hook(event, arguments):
    address = arguments[1] if event == "socket.connect" else arguments[:1]
    if event in ("socket.connect", "socket.getaddrinfo") and address[0] not in ("127.0.0.1", "::1",
    "localhost"):
        print("asked:", event, address)

sys.addaudithook(hook)
from tests.fakes import check
assert check(Path(sys.argv[1]), {"words": [1]}, docs=Path(sys.argv[1]) / "docs").success
import os
print(os.environ["GX_ANALYTICS_ENABLED"], os.environ["DO_NOT_TRACK"])
"""


def run(*arguments):
    without = {name: value for name, value in os.environ.items() if name not in OPT_OUTS}
    command = [sys.executable, "-W", "error", "-c", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=HOUSE, env=without)


def test_nothing_is_asked_of_the_network_from_the_import_on(tmp_path):
    done = run(ASKS, tmp_path)
    assert (done.stdout, done.stderr) == ("false 1\n", "")


def test_great_expectations_is_imported_only_to_validate(tmp_path):
    code = (
        "import sys, tasks.validate; from pathlib import Path\n"
        "tasks.validate.suite_digest(Path(sys.argv[1]))\n"
        "print(sorted({'great_expectations', 'pandas'} & set(sys.modules)))"
    )
    assert run(code, lay(tmp_path)).stdout == "[]\n"


def test_it_is_silent(tmp_path, capfd, caplog):
    check(
        tmp_path,
        {"words": [1]},
        expect("column_distinct_values_to_be_in_set", column="words", value_set=[2]),
        docs=tmp_path / "docs",
    )
    assert capfd.readouterr() == ("", "") and caplog.records == []
