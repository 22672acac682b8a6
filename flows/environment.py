"""The process's environment, settled before Prefect, DVC or Great Expectations is imported.

In: os.environ. Out: os.environ with every analytics switch off, and on demand Prefect's home inside the
project and this interpreter's folder first on PATH. What somebody has set already is kept, but for the
switches. It imports nothing of ours and starts nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SWITCHES = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
}
# The embedded server took 65 s to start on a machine at load 10; Prefect's own limit is 20.
STARTUP_SECONDS = "240"


def opt_out() -> None:
    """Turn off what would call home, and give Prefect's embedded server time to start.

    Done on importing flows.
    """
    os.environ.update(SWITCHES)
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", STARTUP_SECONDS)


def settle(root: Path, *, quiet: bool = False) -> None:
    """Prepare for commands on the project at `root`: call it before anything imports Prefect.

    quiet: Prefect's log stays out of the terminal (its API has it all the same), as our errors are one line.
    """
    opt_out()
    if "PREFECT_HOME" not in os.environ and "PREFECT_API_URL" not in os.environ:
        os.environ["PREFECT_HOME"] = str(root.resolve() / ".prefect")
    if quiet:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    own_interpreter_first()


def own_interpreter_first() -> None:
    """Let the `python` of a DVC stage be this one, whether or not its environment was activated."""
    folder = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([folder, *(path for path in paths if path != folder)])
