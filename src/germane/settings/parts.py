"""Settings that have parts of their own."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ByteSize, ConfigDict, Field, model_validator

from germane.settings.kinds import Names, Statuses

DAY = 86_400


def _is_callable_name(value: str) -> str:
    module, _, name = value.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ValueError("must be a module and a function in it, such as myapp.sampling:is_odd")
    return value


FunctionName = Annotated[str, AfterValidator(_is_callable_name)]


class Price(BaseModel):
    """What a model costs."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    input: float = Field(ge=0, allow_inf_nan=False)
    """US dollars for a million tokens that it reads."""
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """US dollars for a million tokens that it writes."""


class Budget(BaseModel):
    """What judging may take, of all processes on one database together. Setting one picks what tells most."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    calls_per_hour: int | None = Field(default=None, gt=0)
    """Judge requests an hour. What an hour leaves over, the later hours of its day (UTC) may use."""
    calls_per_day: int | None = Field(default=None, gt=0)
    """Judge requests a day (UTC)."""
    tokens_per_hour: int | None = Field(default=None, gt=0)
    """Tokens read and written by the judge an hour, with the same carry-over."""
    tokens_per_day: int | None = Field(default=None, gt=0)
    """Tokens a day."""
    usd_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars an hour, with the same carry-over. It needs a price for the judge: see `prices`."""
    usd_per_day: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars a day."""

    @model_validator(mode="after")
    def _limits_something(self) -> Budget:
        if all(value is None for value in self.model_dump().values()):
            raise ValueError("must name at least one limit, such as calls_per_day")
        return self


class Match(BaseModel):
    """A choice of exchanges: those that fit all that is given."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    routes: Names = ()
    """Patterns of routes, such as `support-*`; one of them must fit."""
    status: Statuses = ()
    """How the handler ended: `ok`, `error`, `cancelled`, `abandoned`; one of them must fit."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Patterns of attributes' values, by name; all must fit."""
    predicate: FunctionName | None = None
    """A function of yours that takes the exchange and says whether it fits, such as `myapp.sampling:is_odd`."""

    _at_least_one: ClassVar[str] = "must name at least one condition, such as routes"

    @model_validator(mode="after")
    def _asks_for_something(self) -> Match:
        if not any(getattr(self, name) not in (None, (), {}) for name in type(self).model_fields):
            raise ValueError(self._at_least_one)
        return self


class Always(Match):
    """A choice of exchanges: those that are scored whatever the draw and the budget's picks say."""

    feedback_below: float | None = Field(default=None, gt=0, le=1)
    """A person gave it a label under this."""


class Retention(BaseModel):
    """How long what was captured is kept: text goes first."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    text_days: float = Field(default=30, gt=0, le=36_500)
    """Days after which questions, answers, contexts and what quotes them are erased."""
    score_days: float = Field(default=400, gt=0, le=36_500)
    """Days after which exchanges, scores and counts are deleted."""
    max_size: ByteSize | None = Field(default=None, gt=0)
    """Size of the database, such as `5GB`, above which the oldest text, then the oldest exchanges go earlier."""
