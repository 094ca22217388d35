"""Where a process listens, as it is given on the command line."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

HERE = "127.0.0.1"


class Address(NamedTuple):
    """A host and a port; port 0 stands for any that is free."""

    host: str
    port: int


class Listening(click.ParamType[Address]):
    """``9464``, ``0.0.0.0:9464`` or ``[::1]:9464``: this machine alone where no host is named."""

    name = "[HOST:]PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        if isinstance(value, Address):
            return value
        host, colon, port = str(value).rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        readable = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65_536
        if not readable or (colon and not bare) or (":" in bare and bare == host):
            self.fail(f"{value!r:.100} is no address such as 9464, 0.0.0.0:9464 or [::1]:9464", param, ctx)
        return Address(bare or HERE, int(port))
