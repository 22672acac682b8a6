"""A copy of the repository as a corpus of its own, for tests that must not touch the real one; no test of its own."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORPUS = ("params.yaml", "dvc.yaml", ".dvc", ".dvcignore", "expectations", "samples", "tokenizers")


def copy_repository(root: Path) -> Path:
    """Lay what makes the repository a corpus below `root`, with git and DVC, and no data; returns `root`."""
    for name in CORPUS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("cache", "tmp", "*.local"))
        else:
            shutil.copy2(ROOT / name, root / name)
    (root / ".gitignore").write_text("/data\n/.gristmill\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    return root
