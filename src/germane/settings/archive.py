"""The settings of the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from germane.settings.types import NestedSettings


def parse_archive_location(text: str) -> str:
    """Return the absolute path of a folder, or an ``s3://`` URL without a slash at the end.

    Raises:
        ValueError: The URL has no bucket, contains credentials or options, or its scheme is unsupported.
    """
    if "://" not in text:
        return str(Path(text).expanduser().absolute())
    url = urlsplit(text)
    if url.scheme != "s3" or not url.netloc or "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            "must be a folder or s3://BUCKET/PREFIX; credentials and the endpoint are read from AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
        )
    return text.rstrip("/")


class Archive(NestedSettings):
    """The archive, to which days are moved from the database. Requires the `archive` extra."""

    location: Annotated[str, Field(min_length=1), AfterValidator(parse_archive_location)]
    """Folder, or `s3://BUCKET/PREFIX`. For S3, credentials, region and endpoint are read from the environment
    variables of the AWS tools, such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`."""
    after_days: float = Field(default=35, gt=0, le=36_500)
    """Days after which a day is moved to the archive. Must be less than `retention.score_days`."""
    text: bool = False
    """Whether to archive questions, answers, contexts, explanations and comments that have not been erased by then.
    `retention.text_days` does not apply to text in the archive."""
