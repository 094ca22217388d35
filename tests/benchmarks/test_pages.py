"""The pages benchmark on a small data set, without checking times."""

from __future__ import annotations

import re
import sys

import pytest
from pages import PAGES, PAGES_OF_WINDOW, SIZE_GOAL, WINDOWS, main

pytestmark = pytest.mark.slow


def test_the_benchmark_requests_and_measures_every_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each page has lines with its latency and size. No page is too large or sends requests to other hosts."""
    asked = ["--scores", "2000", "--days", "1", "--runs", "1", "--starts", "1", "--database", "sqlite"]
    monkeypatch.setattr(sys, "argv", ["pages.py", *asked])

    code = main()

    printed = capsys.readouterr().out
    sizes = [float(one) for one in re.findall(r": size of \S+\s+(\S+) kB", printed)]
    assert code in {0, 1}
    for window in WINDOWS:
        for share in ("p50", "p95 .* at most 100"):
            assert len(re.findall(rf"million: /\S* {window}, {share}", printed)) == len(PAGES_OF_WINDOW)
    assert len(re.findall(r"million: /[^ ,]*, p95 .* at most 100", printed)) == len(PAGES) - len(PAGES_OF_WINDOW)
    assert len(sizes) == 3 * len(PAGES)  # with many routes, with many scores, and with twenty routes
    assert max(sizes) <= SIZE_GOAL
    assert min(sizes) > 1
    assert "missed: " in printed or "all goals are met" in printed
    if "requests to other hosts" in printed:
        assert re.search(r"requests to other hosts, of \d+ +0 ", printed)
