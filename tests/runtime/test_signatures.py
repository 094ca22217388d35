"""The signatures of `germane.start` and `germane.lifespan`, which show every setting to people and tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import germane
from germane.errors import SettingsError, UsageError
from germane.process import current_runtime
from germane.settings import Settings, SettingsArguments, load_settings

OWN = {"settings", "redact", "on_alert", "tracer_provider"}


@pytest.mark.parametrize(("function", "own"), [(germane.start, OWN), (germane.lifespan, OWN | {"app"})])
def test_inspect_shows_every_setting_of_start(function: Callable[..., Any], own: set[str]) -> None:
    """`inspect.signature` lists all fields of `Settings` as keywords, and no `**` argument."""
    parameters = inspect.signature(function).parameters

    assert parameters.keys() == Settings.model_fields.keys() | own
    assert {parameters[name].kind for name in Settings.model_fields} == {inspect.Parameter.KEYWORD_ONLY}


def test_type_checkers_see_every_setting_of_start() -> None:
    """The arguments that type checkers accept are the fields of `Settings`."""
    assert get_type_hints(SettingsArguments).keys() == Settings.model_fields.keys()


def test_stop_has_explicit_parameters_in_its_signature() -> None:
    """`stop` accepts a timeout and a drain timeout, and nothing else."""
    assert list(inspect.signature(germane.stop).parameters) == ["timeout", "drain_timeout"]


def test_start_accepts_a_settings_object(database: str) -> None:
    """Complete settings are used unchanged."""
    settings = load_settings(database=database, role="capture", service="shop")

    germane.start(settings)

    runtime = current_runtime()
    assert runtime is not None
    assert runtime.settings is settings


def test_a_settings_object_cannot_be_combined_with_individual_settings(database: str) -> None:
    """Passing both is an error that names the individual settings, and nothing starts."""
    settings = load_settings(database=database, role="capture")

    with pytest.raises(UsageError, match="not both: sample_rate, service"):
        germane.start(settings, sample_rate=0.5, service="shop")
    assert current_runtime() is None


def test_invalid_settings_raise_an_error_at_the_start(database: str) -> None:
    """An invalid value and an unknown name both raise `SettingsError`, and nothing starts."""
    with pytest.raises(SettingsError, match="sample_rate"):
        germane.start(database=database, sample_rate=2.0)
    with pytest.raises(SettingsError, match="smaple_rate"):
        germane.start(database=database, smaple_rate=0.5)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="must be a Settings object"):
        germane.start({"database": database})  # type: ignore[arg-type]
    assert current_runtime() is None
