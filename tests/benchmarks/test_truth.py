"""A part of the truth benchmark, with fewer repetitions, wider limits and a fixed seed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from truth import (
    ANSWERS,
    KINDS,
    MIN_COVERAGE,
    NOISES,
    SCORED,
    Line,
    Rows,
    Scored,
    Simulated,
    Source,
    contrasts,
    count_alerts,
    find_changes,
    lines,
)

REPETITIONS = 200
ERROR = (MIN_COVERAGE * (1 - MIN_COVERAGE) / REPETITIONS) ** 0.5
LINE = Line("graded", 0.9, 50, coverage=0.95, bias=0.001, width=0.1, alone=0.22, widened=0.0)
DIFFERENT = Rows(
    y=np.repeat([0.0, 0.5, 1.0, 1.0], 25),
    f=np.concatenate([np.linspace(0.1, 0.5, 50), np.linspace(0.4, 0.9, 50)]),
    routes=np.arange(100) % 2,
)


@pytest.mark.parametrize(
    "source", [*(Simulated(kind, 0.6) for kind in KINDS), Simulated(KINDS[1], 0.6, 0.15), DIFFERENT]
)
def test_labels_and_scores_have_the_stated_means_and_correlation(source: Source) -> None:
    """The means of routes are known, too. The correlation is lower than stated by the effect of the biases."""
    random = np.random.default_rng(1)
    windows = [source.window(random) for _ in range(10)]
    y, f, routes = (np.concatenate([getattr(window, name) for window in windows]) for name in ("y", "f", "routes"))

    means = [y.mean(), y[routes == 0].mean(), y[routes == 1].mean()]
    assert means == pytest.approx(source.truths, abs=0.012)
    if isinstance(source, Simulated):
        assert np.corrcoef(y, f)[0, 1] == pytest.approx(0.6, abs=0.05)


def test_labels_have_nearly_equal_weights() -> None:
    """Each answer of a window has the same chance of a label, although suspicious ones are scored more often."""
    random = np.random.default_rng(2)
    window = Simulated(KINDS[0], 0.6).window(random)
    scored = Scored.of(window, random)
    at, v = scored.draw(100, random)

    assert len(scored.y) == SCORED
    assert scored.w.sum() == pytest.approx(ANSWERS, rel=0.05)
    assert scored.f.mean() < window.f.mean() - 0.005
    assert len(set(at.tolist())) == 100
    assert v.std() / v.mean() < 0.05 < scored.w.std() / scored.w.mean()


def test_lines_that_miss_a_goal_are_marked() -> None:
    """Rare bad answers may have a bias, and widened intervals may be long."""
    assert LINE.missed == []
    assert replace(LINE, coverage=0.92).missed == ["coverage"]
    assert replace(LINE, coverage=0.92, n=30).missed == []
    assert replace(LINE, bias=-0.006).missed == ["bias"]
    assert replace(LINE, bias=-0.006, source="5% bad").missed == []
    assert replace(LINE, width=0.12).missed == ["width"]
    assert replace(LINE, width=0.12, widened=0.2).missed == replace(LINE, width=0.12, correlation=0.6).missed == []
    assert replace(LINE, width=0.24, widened=0.2).missed == ["width"]
    assert str(replace(LINE, bias=-0.006)).endswith("bias")


def test_rows_are_scored_with_the_embedded_embedder(tmp_path: Path) -> None:
    """A relevant answer has a higher score, and other data sets than CLAPnq are the second route."""
    rows = [
        {"question": "Where is Paris?", "answer": "Paris is in France.", "label": 1, "source": "CLAPnq/dev"},
        {"question": "Where is Paris?", "answer": "Bread needs yeast.", "label": 0, "source": "SelQA/test"},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    assert Rows.read(tmp_path / "rows.jsonl").correlation == pytest.approx(1)
    assert list(Rows.read(tmp_path / "rows.jsonl").truths) == [0.5, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "correlation"),
    [*((Simulated(kind, r), r) for kind in KINDS for r in (0.3, 0.9)), (DIFFERENT, DIFFERENT.correlation)],
)
def test_intervals_reach_their_nominal_coverage(source: Source, correlation: float) -> None:
    """The coverage is at most three standard errors below the goal, and no interval is longer than without scores."""
    table = list(lines(source, correlation, REPETITIONS, [3]))

    assert [line.n for line in table] == [30, 50, 100, 200]
    assert all(line.coverage > MIN_COVERAGE - 3 * ERROR for line in table[1:])
    assert all(abs(line.bias) < 0.012 for line in table[1:])
    assert [line for line in table if "width" in line.missed] == []


@pytest.mark.slow
def test_other_uses_of_labels_miss_the_truth() -> None:
    """The coverage falls if weights are left out, or if labels are carried over to another window or route."""
    table = {(name, case): coverage for name, case, coverage, _ in contrasts(REPETITIONS, 4)}
    of = {
        name: {case.split()[0]: value for (other, case), value in table.items() if other == name} for name, _ in table
    }

    assert min(of["germane"].values()) > MIN_COVERAGE - 3 * ERROR
    assert of["labels drawn uniformly among scored answers, no weights"]["200"] < 0.8
    assert max(of["all labels, for the second route"].values()) < 0.8
    assert max(of["the judge's mean"].values()) < 0.1
    assert table["labels from before a fall of 0.15", "100 labels, r = 0.75"] < 0.6
    assert of["a look after every 5 labels"]["20"] < 0.88


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_a_stable_judge_raises_no_alert_and_a_changed_one_does(noise: object) -> None:
    """In two quiet years, there is no alert. A change by 0.08 is found in ten days, and its interval is right."""
    assert isinstance(noise, type(NOISES[0]))
    found = find_changes(noise, -0.08, 60, 5)

    assert count_alerts(noise, 2, 6) == 0
    assert found.in_time == 1
    assert min(found.silent, found.reported) > (0.6 if noise.daily else 0.85)
