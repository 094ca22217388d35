"""Settings for sinks, with references to their secrets."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from germane.settings.channels import valid_names
from germane.settings.types import NestedSettings, PublicURL, SecretReference


class PhoenixSettings(NestedSettings):
    """Write scores and labels to Phoenix, as annotations of spans."""

    type: Literal["phoenix"]
    url: PublicURL
    """Base URL, such as `http://phoenix:6006`."""
    api_key: SecretReference | None = None
    """The API key, as `env:NAME` or `file:/path`."""


class MLflowSettings(NestedSettings):
    """Write scores and labels to MLflow, as assessments of traces."""

    type: Literal["mlflow"]
    url: PublicURL
    """Base URL of the tracking server, such as `http://mlflow:5000`."""
    user: str | None = None
    """User name for basic authentication. Requires `password`."""
    password: SecretReference | None = None
    """The password, as `env:NAME` or `file:/path`."""
    token: SecretReference | None = None
    """A bearer token, as `env:NAME` or `file:/path`."""

    @model_validator(mode="after")
    def _require_both(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password must be set together")
        return self


class LangfuseSettings(NestedSettings):
    """Write scores and labels to Langfuse, as scores of observations."""

    type: Literal["langfuse"]
    url: PublicURL = "https://cloud.langfuse.com"
    """Base URL. In the US: `https://us.cloud.langfuse.com`."""
    public_key: SecretReference
    """The public key, as `env:NAME` or `file:/path`."""
    secret_key: SecretReference
    """The secret key, as `env:NAME` or `file:/path`."""


class WebhookSinkSettings(NestedSettings):
    """POST scores and labels as JSON, optionally signed."""

    type: Literal["webhook"]
    url: SecretReference
    """The URL, as `env:NAME` or `file:/path`."""
    secret: SecretReference | None = None
    """The signing secret, as `env:NAME` or `file:/path`. If set, requests carry an HMAC-SHA256 signature in the
    `Germane-Signature` header."""


_Sink = PhoenixSettings | MLflowSettings | LangfuseSettings | WebhookSinkSettings
AnySink = Annotated[_Sink, Field(discriminator="type")]
SINK_TYPES: Final[dict[str, type[NestedSettings]]] = {
    get_args(sink.model_fields["type"].annotation)[0]: sink for sink in get_args(_Sink)
}
Sinks = Annotated[
    dict[str, AnySink],
    valid_names("sink"),
    BeforeValidator(lambda value: {} if value is None else value),
]
"""Sinks by name. Passing None as an argument removes the sinks configured in files."""
