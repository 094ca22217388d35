"""Compiled templates, kept where Python keeps compiled modules: reading them takes a tenth of the time and memory."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from jinja2.bccache import Bucket, FileSystemBytecodeCache

_FOLDER: Final = Path(__file__).parent / "__pycache__"


class Compiled(FileSystemBytecodeCache):
    """As Python does with modules: of each template by its text, and where nothing can be written without it."""

    def __init__(self) -> None:
        super().__init__(str(_FOLDER), "template-%s.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep one."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                _FOLDER.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)
