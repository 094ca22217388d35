"""Settings with fields of their own: prices, budget, filters and retention."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ByteSize, ConfigDict, Field, model_validator

from germane.settings.types import Names, Statuses

DAY = 86_400
"""Seconds."""


def _validate_function_name(value: str) -> str:
    module, _, name = value.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ValueError("must name a module and a function in it, such as myapp.sampling:is_odd")
    return value


FunctionName = Annotated[str, AfterValidator(_validate_function_name)]


class Price(BaseModel):
    """The price of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    input: float = Field(ge=0, allow_inf_nan=False)
    """US dollars per million input tokens."""
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """US dollars per million output tokens."""


class Budget(BaseModel):
    """Limits on judge usage, shared by all processes on one database. With a budget, germane picks the exchanges whose
    scores are worth most, within the limits."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    requests_per_hour: int | None = Field(default=None, gt=0)
    """Judge requests per hour. Requests that an hour does not use carry over to later hours of the same day (UTC)."""
    requests_per_day: int | None = Field(default=None, gt=0)
    """Judge requests per day (UTC)."""
    tokens_per_hour: int | None = Field(default=None, gt=0)
    """Input and output tokens of the judge per hour, with the same carry-over."""
    tokens_per_day: int | None = Field(default=None, gt=0)
    """Input and output tokens of the judge per day (UTC)."""
    usd_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars per hour, with the same carry-over. Requires a price for the judge: see `prices`."""
    usd_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars per day (UTC). Requires a price for the judge: see `prices`."""

    @model_validator(mode="after")
    def _require_a_limit(self) -> Budget:
        if all(value is None for value in self.model_dump().values()):
            raise ValueError("must set at least one limit, such as requests_per_day")
        return self


class ExchangeFilter(BaseModel):
    """A filter on exchanges. An exchange matches if it meets every condition that is set."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    routes: Names = ()
    """Route patterns, such as `support-*`. One of them must match."""
    status: Statuses = ()
    """Handler statuses: `ok`, `error`, `cancelled`, `abandoned`. One of them must match."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Patterns of attribute values, by attribute name. All must match."""
    predicate: FunctionName | None = None
    """A function of yours that takes the exchange and returns whether it matches, such as `myapp.sampling:is_odd`."""

    _no_condition_error: ClassVar[str] = "must set at least one condition, such as routes"

    @model_validator(mode="after")
    def _require_a_condition(self) -> ExchangeFilter:
        if not any(getattr(self, name) not in (None, (), {}) for name in type(self).model_fields):
            raise ValueError(self._no_condition_error)
        return self


class AlwaysScore(ExchangeFilter):
    """A filter on exchanges that are scored whether or not sampling picks them."""

    feedback_below: float | None = Field(default=None, gt=0, le=1)
    """The exchange has a label under this score."""


class Retention(BaseModel):
    """How long captured data is kept. Text is erased before scores are deleted."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    text_days: float = Field(default=30, gt=0, le=36_500)
    """Days after which questions, answers, contexts and quotes from them are erased."""
    score_days: float = Field(default=400, gt=0, le=36_500)
    """Days after which exchanges, scores and counts are deleted."""
    max_size: ByteSize | None = Field(default=None, gt=0)
    """Database size, such as `5GB`, above which the oldest text, and then the oldest exchanges, are deleted early."""
