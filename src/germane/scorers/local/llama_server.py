"""The embedded judge's own process. Run as a file, alone: it imports nothing of germane.

The first line of standard input says what to serve. The first line of standard output is the address, or why there is
none. The process ends when its standard input closes: by its parent, or with it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Serve until standard input closes."""
    try:
        server = _start(json.loads(sys.stdin.readline()))
    except (ImportError, RuntimeError) as error:  # a library of the system is missing, or the weights are none
        _tell(" ".join(str(error).split()))
        return
    _tell(server.listening_address)
    sys.stdin.read()
    # Nothing here is worth an orderly end, and a request under way must not delay it.
    os._exit(0)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _start(wanted: dict[str, Any]) -> Any:
    """Return the server, at work in threads of its own."""
    sys.path.append(wanted["packages"])
    import xllamacpp  # type: ignore[import-untyped]  # ships no types

    parameters = xllamacpp.CommonParams()
    parameters.model.path = wanted["weights"]
    parameters.model_alias = {wanted["model"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [wanted["api_key"]]
    parameters.n_parallel = wanted["slots"]
    parameters.n_ctx = wanted["slots"] * wanted["context"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = wanted["threads"]
    parameters.n_threads_http = 4
    parameters.n_gpu_layers = 0
    parameters.cache_ram_mib = 0
    parameters.ui = False
    parameters.fit_params = False
    parameters.endpoint_slots = False
    parameters.verbosity = -1
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
