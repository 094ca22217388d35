"""Records are created quickly, and cannot be changed afterwards."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.records import fast_constructor

REQUIRED: dict[str, Any] = {
    "id": "1", "trace_id": "2", "span_id": "3", "service": "shop", "route": "ask", "question": "Q?", "answer": "A.",
    "started_at": datetime(2026, 3, 2, tzinfo=UTC),
}  # fmt: skip


@pytest.mark.parametrize("more", [{}, {"attributes": {"tenant": "a"}, "model": "m", "sampling_key": 0.5}])
def test_a_fast_constructor_creates_the_same_frozen_record(more: dict[str, Any]) -> None:
    """The time to create an exchange is part of each handler's response time."""
    created, expected = fast_constructor(Exchange)(**REQUIRED, **more), Exchange(**REQUIRED, **more)

    assert type(created) is Exchange
    assert created == expected
    assert repr(created) == repr(expected)
    assert pickle.loads(pickle.dumps(created)) == replace(created) == expected
    with pytest.raises(FrozenInstanceError):
        created.answer = "B."  # type: ignore[misc]  # frozen
    with pytest.raises(FrozenInstanceError):
        del created.answer


def test_a_fast_constructor_checks_the_names_of_fields() -> None:
    """A misspelled or missing field is an error, as it is for the class."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'title'"):
        fast_constructor(Exchange)(**REQUIRED, title="")
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'id'"):
        fast_constructor(Exchange)(**{name: value for name, value in REQUIRED.items() if name != "id"})


def test_instances_of_a_fast_constructor_do_not_share_their_defaults() -> None:
    """An attribute of one exchange does not show up in another one."""
    first, second = (fast_constructor(Exchange)(**REQUIRED) for _ in range(2))

    assert first.attributes is not second.attributes


def test_a_fast_constructor_needs_a_class_without_checks() -> None:
    """It would skip them."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Checked:
        def __post_init__(self) -> None:
            raise ValueError

    with pytest.raises(TypeError, match=r"Checked\.__post_init__ would not be called"):
        fast_constructor(Checked)


def test_a_fast_constructor_assigns_fields_directly() -> None:
    """Otherwise it would take as long as the class."""
    constructor: Any = fast_constructor(Exchange)

    assert not any("setattr" in name for name in constructor.__init__.__code__.co_names)
