"""Kinds of values: secrets, addresses, lists."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from germane.exchange import Status


def _read_secret(value: Any) -> Any:
    """Follow ``env:NAME`` and ``file:/path``, so that the secret itself need not stand in a file of settings.

    White space around it is taken off: files and secret stores like to end with a new line.
    """
    return _followed(value).strip() if isinstance(value, str) else value


def _followed(value: str) -> str:
    if value.startswith("env:"):
        name = value.removeprefix("env:")
        if name not in os.environ:
            raise ValueError(f"the environment variable {name} is not set")
        return os.environ[name]
    if value.startswith("file:"):
        path = Path(value.removeprefix("file:"))
        if not path.is_file():
            raise ValueError(f"the file {path} does not exist")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the file {path} cannot be read ({type(error).__name__})") from None
    return value


def _is_key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value()
    if not (key and key.isascii() and key.isprintable()):
        raise ValueError("must be one line of ASCII characters: it goes into the header of each request")
    return value


def _is_http(value: SecretStr) -> SecretStr:
    try:
        parts = urlsplit(value.get_secret_value())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address; its text may quote a password
        usable = False
    if not usable:
        raise ValueError("must start with http:// or https://, and name a host")
    return value


def _is_database(value: str) -> str:
    if not value.startswith(("sqlite:", "postgresql:", "postgresql+psycopg:")):
        raise ValueError("must be an SQLAlchemy URL of SQLite or PostgreSQL, such as sqlite:///germane.db")
    return value


def _split(value: Any) -> Any:
    """Read ``a,b`` as a list: environment variables are text."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Secret = Annotated[SecretStr, BeforeValidator(_read_secret)]
Key = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_is_key)]
DatabaseAddress = Annotated[str, BeforeValidator(_read_secret), AfterValidator(_is_database)]
WebAddress = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_is_http)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Statuses = Annotated[tuple[Status, ...], NoDecode, BeforeValidator(_split)]
