"""Resolves the newest version of popular RAG packages together with germane, without installing anything.

python .ci/resolve.py [PACKAGE ...]        (needs uv and the network)

A package counts as compatible if the newest version that resolves alone, and not an older one, resolves in one
environment with germane. It may be older than the newest release, if that needs something that is not released yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "langchain", "langchain-openai", "langgraph", "llama-index", "llama-index-llms-openai", "haystack-ai", "crewai",
    "dspy", "autogen-agentchat", "semantic-kernel", "pydantic-ai", "openai-agents", "ragas", "deepeval",
    "arize-phoenix", "langfuse", "traceloop-sdk", "openinference-instrumentation-langchain", "mlflow", "logfire",
    "opentelemetry-distro", "litellm", "chromadb", "qdrant-client",
)  # fmt: skip


def compile_requirements(*requirements: str) -> tuple[dict[str, str], str]:
    """Return the resolved versions by package, and uv's error; one of them is empty."""
    done = subprocess.run(
        ["uv", "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--python-version", "3.12"],
        input="\n".join(requirements), capture_output=True, text=True, check=False,
    )  # fmt: skip
    versions = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", done.stdout, re.MULTILINE))
    return versions, done.stderr if done.returncode else ""


def main() -> None:
    """Print one line per package; exit with 1 if any of these versions does not resolve together with germane."""
    failed = 0
    for package in sys.argv[1:] or PACKAGES:
        alone, error = compile_requirements(package)
        if error:
            print(f"{package:42} {'-':14} not resolved alone: {error.strip().splitlines()[0][:120]}")
            continue
        newest = alone[package]
        together, error = compile_requirements(f"germane @ {ROOT.as_uri()}", f"{package}=={newest}")
        failed += bool(error)
        what = f"openai {together.get('openai')}" if together else f"CONFLICT {' '.join(error.split())[:300]}"
        print(f"{package:42} {newest:14} {what}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
