"""Chart events, sampling descriptions, and generated questions for bad answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.cases import each

from germane.alert import Alert, ScoreLevel, ScoreShift
from germane.annotation import Marker
from germane.insights.situation import affected_routes, alert_concerns_route, chart_markers
from germane.insights.worker import describe_sampling
from germane.insights.worst_answers import reads_like
from germane.score import Score
from germane.settings import Budget, load_settings
from germane.storage import Coverage

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def make_alert(route: str | None = None, shifts: tuple[ScoreShift, ...] = (), service: str = "handbook") -> Alert:
    """Return an alert that started an hour before it fired."""
    labels = {"service": service, **({} if route is None else {"route": route})}
    return Alert(
        id="a1",
        key="k",
        rule="drop",
        type="drop",
        labels=labels,
        state="firing",
        shifts=shifts,
        onset=NOW - timedelta(hours=1),
        starts_at=NOW,
        evaluated_at=NOW,
    )


def route_shift(route: str, *, supported: bool) -> ScoreShift:
    """Return the change in a route's mean."""
    levels = {"before": ScoreLevel(mean=0.8, n=50), "since": ScoreLevel(mean=0.5, n=50)}
    return ScoreShift(dimension="route", name=route, supported=supported, **levels)


def test_an_alert_is_marked_at_its_start_in_the_chart() -> None:
    """The marker names the route on the service's chart but not on the route's, and links to the alert."""
    deploy = Marker(id="m", name="index v42", service="handbook", at=NOW - timedelta(hours=2))
    ((first, second), (_, own)) = (chart_markers([make_alert("ask")], [deploy], route=route) for route in (None, "ask"))
    assert (first.label, first.kind, first.at) == ("index v42", "deploy", deploy.at)
    assert (second.label, second.kind, second.at) == ("alert: drop on ask", "alert", NOW - timedelta(hours=1))
    assert second.href == "/alerts/a1"
    assert own.label == "alert: drop"


def test_a_service_alert_is_shown_only_on_the_routes_that_dropped() -> None:
    """An alert that names no route applies to all routes, but never to those of another service."""
    fell = make_alert(shifts=(route_shift("ask", supported=True), route_shift("search", supported=False)))
    assert affected_routes(fell) == ["ask"]
    assert [alert_concerns_route(fell, "handbook", one) for one in ("ask", "search")] == [True, False]
    assert alert_concerns_route(make_alert(), "handbook", "search")
    assert not alert_concerns_route(make_alert("ask"), "handbook", "search")
    assert not alert_concerns_route(make_alert("ask"), "shop", "ask")


@each(
    ("rate", "skipped", "words"),
    [
        (1.0, {}, "all sampled"),
        (1.0, {"not_sampled": 20}, "80% sampled"),
        (0.5, {"budget": 3}, "selected by expected information, within a budget"),
        (1.0, {"filtered": 10}, "all sampled, after filters"),
    ],
)
def test_the_sampling_description_is_based_on_counted_decisions(
    rate: float, skipped: dict[str, int], words: str
) -> None:
    """Workers may have different settings from the process that serves the page."""
    seen = Coverage(service="s", route="r", scorer="x", seen=100, scored=100 - sum(skipped.values()), skipped=skipped)
    assert describe_sampling(load_settings(database="sqlite://", sample_rate=rate), seen) == words


def test_the_sampling_description_is_based_on_the_settings_without_counts() -> None:
    """Before the first answer, the settings of this process apply."""
    assert describe_sampling(load_settings(database="sqlite://", sample_rate=0.25)) == "25% sampled"
    budget = load_settings(database="sqlite://", budget=Budget(requests_per_day=100))
    assert describe_sampling(budget) == "selected by expected information, within the budget: 100 requests per day"


def test_a_bad_answer_is_shown_with_its_least_similar_generated_question() -> None:
    """Without generated questions, the explanation of the score is shown."""
    questions = [{"text": "near", "similarity": 0.9}, {"text": "far", "similarity": 0.1}, {"text": "none"}, "torn"]
    assert reads_like(Score(scorer="s", value=0.5, details={"questions": questions})) == "far"
    assert reads_like(Score(scorer="s", value=0.5, details={"questions": "torn"}, explanation="why")) == "why"


def test_a_refusal_is_shown_without_a_generated_question() -> None:
    """This holds even if an old row contains generated questions."""
    details = {"questions": [{"text": "far", "similarity": 0.1}]}
    assert reads_like(Score(scorer="s", value=0.0, label="noncommittal", details=details)) is None
