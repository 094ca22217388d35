"""Settings of alert rules: defaults, overrides and validation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import each

from germane.errors import SettingsError
from germane.settings import Drop, MeanThreshold, NoData, load_settings

pytestmark = pytest.mark.usefixtures("bare")


def active_types(**arguments: Any) -> list[str]:
    return [rule.type for rule in load_settings(**arguments).active_rules]


def test_five_rules_are_active_by_default() -> None:
    """Without configuration, germane alerts on drops, missing scores, scorer errors and an exhausted budget."""
    assert active_types() == ["drop", "no_data", "scorer_error", "budget_exhausted", "judge_drift"]


def test_a_configured_rule_replaces_the_default_of_its_type() -> None:
    """A default rule can be changed or turned off."""
    settings = load_settings(rules=[{"type": "drop", "min_drop": 0.1}, {"type": "no_data", "enabled": False}])

    assert [rule.type for rule in settings.active_rules] == ["scorer_error", "budget_exhausted", "judge_drift", "drop"]
    assert settings.active_rules[-1] == Drop(min_drop=0.1)


def test_the_default_rule_type_is_a_mean_threshold() -> None:
    """The shortest rule is a threshold, which is added to the default rules."""
    settings = load_settings(rules=[{"threshold": 0.6}])

    assert settings.rules == (MeanThreshold(threshold=0.6),)
    assert settings.rules[0].window == 86_400
    assert [rule.type for rule in settings.active_rules][-1] == "mean_threshold"


def test_rules_can_be_given_as_objects() -> None:
    """In Python, rules are instances or dictionaries."""
    assert load_settings(rules=[MeanThreshold(threshold=0.6), NoData(at_least=60)]).rules == (
        MeanThreshold(threshold=0.6),
        NoData(at_least=60),
    )


@each(
    ("rules", "message"),
    [
        ([{"type": "flor", "threshold": 0.6}], "type must be one of drop, mean_threshold, low_score_rate"),
        ([{"type": 3}], "type must be one of drop, mean_threshold, low_score_rate"),
        ([3], "type must be one of drop, mean_threshold, low_score_rate"),
        ([{"type": "drop", "min_dropp": 0.1}], "unknown setting 'rules.0.min_dropp'; did you mean 'min_drop'?"),
        ([{"type": "drop", "pendin": 0.1}], "unknown setting 'rules.0.pendin'"),
        ([{"threshold": 0.6, "route": "ask"}], "unknown setting 'rules.0.route'; did you mean 'routes'?"),
        ([{"threshold": 0.6, "fore": 60}], "unknown setting 'rules.0.fore'; did you mean 'for'?"),
        ([{"type": "low_score_rate"}], "setting rules.0.threshold: Field required"),
        ([{"threshold": 0.6, "for": -1}], "setting rules.0.for = -1: "),
        ([{"type": "drop", "min_drop": 1}], "setting rules.0.min_drop = 1: Input should be less than 1"),
        ([{"threshold": 0.6, "name": "a\x1b[31m"}], "setting rules.0.name = 'a\\x1b[31m': "),
        ([{"threshold": 0.6, "name": "a" * 101}], "String should have at most 100 characters"),
    ],
)
def test_an_invalid_rule_is_reported_with_the_fix(rules: Any, message: str) -> None:
    """The message names the rule and the field."""
    with pytest.raises(SettingsError) as raised:
        load_settings(rules=rules)
    assert message in str(raised.value)


@each(
    "rules",
    [
        [MeanThreshold(threshold=0.5), MeanThreshold(threshold=0.6)],
        [MeanThreshold(threshold=0.5), MeanThreshold(threshold=0.6, routes=("ask",))],
        [MeanThreshold(threshold=0.5, routes=("as*",)), MeanThreshold(threshold=0.6, routes=("ask", "search"))],
        [
            MeanThreshold(threshold=0.5, name="a", routes=("ask",)),
            MeanThreshold(threshold=0.6, name="a", routes=("ask",)),
        ],
        [MeanThreshold(threshold=0.5, name="drop")],
        [Drop(routes=("ask",)), Drop(routes=("search",))],  # one alert and one detector per service and scorer
        [NoData(routes=("ask",)), NoData(routes=("search",))],
    ],
)
def test_rules_with_the_same_name_that_watch_the_same_scores_are_rejected(rules: Any) -> None:
    """Two rules with the same name on the same route would fire and resolve the same alert in turn."""
    with pytest.raises(SettingsError, match="give them different names"):
        load_settings(rules=rules)


def test_rules_with_the_same_name_can_watch_different_routes_or_scorers() -> None:
    """The default name is enough as long as the rules do not overlap."""
    rules = [
        MeanThreshold(threshold=0.5, routes=("a",)),
        MeanThreshold(threshold=0.5, routes=("b*",)),
        MeanThreshold(threshold=0.5, scorer="other"),
    ]
    assert load_settings(rules=rules).rules == tuple(rules)
