"""Rules in the settings: what is on by default, what takes its place, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from germane.errors import SettingsError
from germane.settings import Drop, Floor, NoData, load

pytestmark = pytest.mark.usefixtures("bare")


def kinds(**arguments: Any) -> list[str]:
    return [rule.kind for rule in load(**arguments).watched]


def test_four_rules_are_on_without_being_configured() -> None:
    """Who configures nothing hears of drops, missing scores, a broken judge and a spent budget."""
    assert kinds() == ["drop", "no_data", "scorer_error", "budget_exhausted"]


def test_a_configured_rule_takes_the_place_of_the_default_of_its_kind() -> None:
    """What is configured counts; what is switched off is off."""
    settings = load(rules=[{"kind": "drop", "min_drop": 0.1}, {"kind": "no_data", "enabled": False}])

    assert [rule.kind for rule in settings.watched] == ["scorer_error", "budget_exhausted", "drop"]
    assert settings.watched[-1] == Drop(min_drop=0.1)


def test_a_rule_without_a_kind_is_a_floor() -> None:
    """As short as it was before there were other kinds; beside those that are on by default."""
    settings = load(rules=[{"threshold": 0.6}])

    assert settings.rules == (Floor(threshold=0.6),)
    assert settings.rules[0].window == 86_400
    assert [rule.kind for rule in settings.watched][-1] == "floor"


def test_rules_may_be_given_as_objects() -> None:
    """From Python the classes do as well as dictionaries."""
    assert load(rules=[Floor(threshold=0.6), NoData(at_least=60)]).rules == (Floor(threshold=0.6), NoData(at_least=60))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([{"kind": "flor", "threshold": 0.6}], "kind must be one of drop, floor, low_rate"),
        ([{"kind": 3}], "kind must be one of drop, floor, low_rate"),
        ([3], "kind must be one of drop, floor, low_rate"),
        ([{"kind": "drop", "min_dropp": 0.1}], "there is no setting 'rules.0.min_dropp'; did you mean 'min_drop'?"),
        ([{"kind": "drop", "pendin": 0.1}], "there is no setting 'rules.0.pendin'"),
        ([{"threshold": 0.6, "route": "ask"}], "there is no setting 'rules.0.route'; did you mean 'routes'?"),
        ([{"threshold": 0.6, "fore": 60}], "there is no setting 'rules.0.fore'; did you mean 'for'?"),
        ([{"kind": "low_rate"}], "setting rules.0.threshold: Field required"),
        ([{"threshold": 0.6, "for": -1}], "setting rules.0.for = -1: "),
        ([{"kind": "drop", "min_drop": 1}], "setting rules.0.min_drop = 1: Input should be less than 1"),
        ([{"threshold": 0.6, "name": "a\x1b[31m"}], "setting rules.0.name = 'a\\x1b[31m': "),
        ([{"threshold": 0.6, "name": "a" * 101}], "String should have at most 100 characters"),
    ],
)
def test_a_wrong_rule_is_refused_with_the_fix(rules: Any, said: str) -> None:
    """Who reads it knows which part of which rule to mend; the kind that nobody wrote is not in its path."""
    with pytest.raises(SettingsError) as raised:
        load(rules=rules)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "rules",
    [
        [Floor(threshold=0.5), Floor(threshold=0.6)],
        [Floor(threshold=0.5), Floor(threshold=0.6, routes=("ask",))],
        [Floor(threshold=0.5, routes=("as*",)), Floor(threshold=0.6, routes=("ask", "search"))],
        [Floor(threshold=0.5, name="a", routes=("ask",)), Floor(threshold=0.6, name="a", routes=("ask",))],
        [Floor(threshold=0.5, name="drop")],
        [Drop(routes=("ask",)), Drop(routes=("search",))],  # one alert and one detector for a service and scorer
        [NoData(routes=("ask",)), NoData(routes=("search",))],
    ],
)
def test_rules_that_would_contradict_one_another_are_refused(rules: Any) -> None:
    """Two rules of one name on the same route would fire and resolve one alert in turn: that is said at the start."""
    with pytest.raises(SettingsError, match="name them apart"):
        load(rules=rules)


def test_rules_of_one_name_may_watch_different_things() -> None:
    """The default name does for rules on different routes or scorers."""
    rules = [
        Floor(threshold=0.5, routes=("a",)),
        Floor(threshold=0.5, routes=("b*",)),
        Floor(threshold=0.5, scorer="other"),
    ]
    assert load(rules=rules).rules == tuple(rules)
