"""The benchmark of named causes: a small slice of it through a real store."""

from __future__ import annotations

from pathlib import Path

import causes
import pytest


def test_a_slice_of_the_simulated_drops_meets_the_goals(tmp_path: Path) -> None:
    """No group is named without a difference, and the right one where it carries the drop."""
    found = list(causes.run(f"sqlite:///{tmp_path / 'germane.db'}", range(5), 20261129))

    assert [outcome.found for outcome in found] == [outcome.expected for outcome in found]
    assert sum(outcome.expected is not None for outcome in found) == 1


@pytest.mark.slow
def test_more_simulated_drops_meet_the_goals(capsys: pytest.CaptureFixture[str]) -> None:
    """At most 5% of the messages name a group by chance, and at least 90% name the right one."""
    assert causes.main(["--drops", "50"]) == 0
    assert "all goals are met" in capsys.readouterr().out
