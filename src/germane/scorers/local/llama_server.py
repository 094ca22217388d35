"""The embedded judge's server process. It runs as a script and does not import germane.

The first line of standard input is the configuration. The first line of standard output is the server's address or an
error message. The process exits when its standard input closes, which happens when the parent process closes it or
dies.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Run the server until standard input closes."""
    try:
        server = start_server(json.loads(sys.stdin.readline()))
        line = server.listening_address
    except (ImportError, RuntimeError) as error:  # a system library is missing, or the weights are invalid
        server, line = None, " ".join(str(error).split())
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    if server is None:
        return
    sys.stdin.read()
    # No cleanup is needed, and an in-flight request must not delay the exit.
    os._exit(0)


def start_server(config: dict[str, Any]) -> Any:
    """Start the server, which runs in its own threads, and return it."""
    sys.path.append(config["packages"])
    import xllamacpp  # type: ignore[import-untyped]  # ships no types

    parameters = xllamacpp.CommonParams()
    parameters.model.path = config["weights"]
    parameters.model_alias = {config["model"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [config["api_key"]]
    parameters.n_parallel = config["slots"]
    parameters.n_ctx = config["slots"] * config["context"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = config["threads"]
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
