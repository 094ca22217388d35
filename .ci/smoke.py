"""Captures, stores, scores and reports an exchange with the installed package alone. Fails if any step does not work.

python .ci/smoke.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import germane
from germane.testing import FakeJudge


@germane.retrieval
def search(query: str) -> list[str]:
    return [f"{query} Shoes can be returned within thirty days of delivery."]


@germane.observe
def ask(question: str) -> str:
    return search(question)[0]


def main() -> None:
    """Run one exchange through the whole package."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder), FakeJudge() as judge:
        database = f"sqlite:///{Path(folder) / 'germane.db'}"
        germane.start(database=database, service="smoke", base_url=judge.base_url, api_key="none", poll_interval=0.1)
        ask("Can I return these shoes?")
        assert germane.stop(drain_timeout=60), "germane did not stop in time"
        command = [sys.executable, "-m", "germane", "report", "--json", "--database", database]
        report = subprocess.run(command, capture_output=True, text=True, check=False)
        assert report.returncode == 0, report.stderr
        scored = sum(row["scored"] for row in json.loads(report.stdout)["coverage"])
        assert scored == 1, report.stdout
    print(f"germane {germane.__version__} on Python {sys.version.split()[0]}: 1 exchange captured, scored and reported")


if __name__ == "__main__":
    main()
