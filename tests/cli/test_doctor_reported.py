"""``germane doctor`` and the settings that running processes report."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.cli.conftest import Call

from germane.cli.commands.doctor.finding import Finding, print_findings
from germane.settings import Settings, load_settings
from germane.storage import TrackingStore, WorkerHeartbeat

LEASE = timedelta(minutes=1)
SECRET = "hunter2-hunter2-hunter2"


def report(store: TrackingStore, **changes: Any) -> None:
    """Send a heartbeat of a process whose code contains a judge's key and URL."""
    settings = load_settings(
        service="shop",
        judge="orca-2",
        api_key=f"sk-{SECRET}",
        base_url=f"https://me:{SECRET}@models.example.com/{SECRET}/v1?key={SECRET}",
        sample_rate=0.25,
        capture="none",
        scorer_options={"mine": {"password": SECRET}},
        dashboard_token=SECRET,
        receiver_token=SECRET,
    )
    process = WorkerHeartbeat(
        id="shop-1", host="web-1", pid=12, service="shop", version="0.1.0", scorers={"answer_relevancy": "f1"},
        settings=settings.shared(),
    )  # fmt: skip
    store.workers.heartbeat(replace(process, **changes), [], lease=LEASE)


def findings(call: Call, subject: str) -> dict[str, Any]:
    """Return the finding about a subject."""
    found = json.loads(call("doctor", "--json").out)["findings"]
    (finding,) = [each for each in found if each["subject"] == subject]
    return dict(finding)


def test_doctor_knows_the_settings_that_are_given_in_code(call: Call, store: TrackingStore) -> None:
    """They are named with their process, and the judge is not reported as missing."""
    report(store)

    settings, judge = findings(call, "settings"), findings(call, "judge")

    assert settings["message"].startswith(
        "service 'shop', sample rate 0.25; as reported by shop on web-1 (process 12): "
    )
    assert "judge = 'orca-2'" in settings["message"]
    assert "server = 'models.example.com'" in settings["message"]
    assert (judge["level"], judge["message"]) == (
        "ok",
        "orca-2 is configured in the code or environment of shop on web-1 (process 12), which reports no problem",
    )
    assert findings(call, "scorers")["message"] == "answer_relevancy"


def test_doctor_names_the_problem_of_the_judge_that_is_given_in_code(call: Call, store: TrackingStore) -> None:
    """The process reports it, and the fix is that of the reason."""
    report(store, problem="judge_rejected: HTTP 401: Incorrect API key")

    judge = findings(call, "judge")

    assert judge["level"] == "error"
    assert judge["message"].endswith("(process 12): judge_rejected: HTTP 401: Incorrect API key")
    assert "set OPENAI_API_KEY to a valid key" in judge["fix"]


def test_processes_never_report_secrets(call: Call, store: TrackingStore) -> None:
    """Neither the database nor the output of the command contains a key, a token, a password or a secret path."""
    report(store)

    assert SECRET not in json.dumps([dict(each.settings or {}) for each in store.workers.list_workers()])
    assert SECRET not in call("doctor").out


def test_equal_settings_are_not_mentioned(call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command and the process read the same file or environment."""
    store.workers.heartbeat(
        WorkerHeartbeat(
            id="1", host="a", pid=1, service=load_settings().service, version="1", settings=load_settings().shared()
        ),
        [],
        lease=LEASE,
    )

    assert "reported by" not in findings(call, "settings")["message"]


def test_no_shared_setting_can_hold_a_secret() -> None:
    """The types of the reported settings contain neither a secret nor a URL."""
    from germane.settings.settings import SHARED

    for name in SHARED:
        annotation = str(Settings.model_fields[name].annotation)
        assert "Secret" not in annotation, name
        assert "URL" not in annotation, name


def test_the_process_of_the_same_service_is_preferred(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another service on the database may have sent the latest heartbeat."""
    monkeypatch.setenv("GERMANE_SERVICE", "shop")
    report(store)
    report(store, id="help-1", service="help", pid=99)

    assert "as reported by shop on web-1 (process 12)" in findings(call, "settings")["message"]


def test_the_settings_of_another_service_are_not_taken_for_those_of_this_one(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has not reported its settings yet says so. One with the default settings has reported them."""
    monkeypatch.setenv("GERMANE_SERVICE", "shop")
    report(store, id="help-1", service="help", pid=99, settings=None)
    assert "reported by" not in findings(call, "settings")["message"]
    report(store, id="help-1", service="help", pid=99)
    report(store, settings=None)

    message = findings(call, "settings")["message"]
    assert message.endswith("; no settings reported by shop on web-1 (process 12)")
    assert "orca-2" not in message

    report(store, settings=load_settings(service="shop").shared())
    assert "reported by" not in findings(call, "settings")["message"]


def test_only_findings_with_the_same_fault_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A handler is not blamed for the fault of another one, even if both have the same fix."""
    faults = ("without question", "without answer", "without question")
    print_findings(
        [Finding(f"handler {number}", "error", fault, "fix", group="handler") for number, fault in enumerate(faults)]
    )

    assert capsys.readouterr().out.splitlines()[::2] == [
        "ERROR    handler 0: without question; the same applies to 2",
        "ERROR    handler 1: without answer",
    ]
