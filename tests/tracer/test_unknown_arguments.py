"""Unknown keyword arguments of the public decorators and functions."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.errors import GermaneError

EXPLAINED = tuple(
    name
    for name, value in ((name, getattr(germane, name)) for name in germane.__all__)
    if callable(value) and not isinstance(value, type) and name != "recognizer"
)
"""All public functions except ``recognizer``, whose only argument is positional."""


@pytest.mark.parametrize("name", EXPLAINED)
def test_an_unknown_argument_is_an_error_that_names_it(name: str, bare: Path) -> None:
    """Every public function raises germane's own error, which is a TypeError or ValueError too."""
    function: Any = getattr(germane, name)
    if inspect.iscoroutinefunction(function) or name in {"evaluate", "evaluate_to_parquet", "lifespan"}:
        pytest.skip("takes all settings as arguments, like start()")

    with pytest.raises(GermaneError, match="tenant"):
        function(tenant="acme")


def test_the_error_of_observe_names_both_ways_to_record_a_value() -> None:
    """The name of a column, such as prompt_version, is no argument of the decorator."""
    decorate: Any = germane.observe
    with pytest.raises(TypeError) as error:
        decorate(prompt_version="7")

    assert "observe() has no argument 'prompt_version'" in str(error.value)
    assert "attributes={'prompt_version': selector}" in str(error.value)
    assert "germane.set_attribute('prompt_version', value)" in str(error.value)


def test_the_error_of_mark_and_of_a_misspelled_name_suggest_the_argument() -> None:
    """A function with attributes records the value there. A similar name is suggested first."""
    mark: Any = germane.mark
    decorate: Any = germane.observe
    feedback: Any = germane.feedback
    with pytest.raises(TypeError, match=r"record it with attributes=\{'version': value\}"):
        mark("deploy", version="42")
    with pytest.raises(TypeError, match="did you mean 'attributes'"):
        decorate(attribute={})
    with pytest.raises(TypeError, match="it has these: exchange_id, score, comment, user"):
        feedback("1", 1.0, reason="good")


def test_signatures_stay_visible() -> None:
    """Editors, help() and documentation tools show the arguments."""
    assert "prompt_version" not in inspect.signature(germane.observe).parameters
    assert "attributes" in inspect.signature(germane.observe).parameters
    assert germane.feedback.__doc__
