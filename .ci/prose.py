"""Checks the prose of code, documents and templates against lists of banned words and phrases.

codespell checks words with banned-words.txt. The patterns below are the banned phrases, each with its replacement.
tests/packaging/test_names.py checks identifiers.

    python .ci/prose.py
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PHRASES = {
    r"\bwho (judges|scores|reads|looks|watches|holds|calls|sends|serves)\b": "name the subject: the judge, the worker",
    r"\bof those that\b": "of the ... that",
    r"\b(is|are|was|were) told\b": "is notified, is reported",
    r"\b(is|are) said (by|of|in)\b": "is set by, is described in",
    r"\b(gone|goes|went) by\b": "passed, follows",
    r"\bin vain\b": "without success",
    r"\bby itself alone\b": "alone",
    r"\bwhat is (usual|normal|known|there)\b": "name the noun: the baseline, the known ...",
    r"\bnobody knows\b": "unknown",
    r"\b(address|name|number|value) that is none\b": "invalid ...",
    r"\b(judge|server|database|model)s? (is|are) away\b": "is unreachable",
    r"\bfell? silent\b": "stopped responding",
    r"\bone another's\b": "each other's",
    r"\bat its root\b": "at the cause",
    r"\bwithin (a|the) room\b": "package",
    r"\b(every|each) room\b": "package",
    r"\bfalse alarms?\b": "false alert",
    r"\bin force\b": "active, in effect",
    r"\btells? apart\b": "distinguish",
    r"\btold apart\b": "distinguished",
    r"\bstands? (in|on|at|for) the (database|page|span|log)\b": "is stored in, is shown on",
    r"\bkeeps? (nobody|nothing) (from)\b": "does not prevent",
    r"\bmuch the same\b": "similar",
    r"\bso many (seconds|days|scores)\b": "name the number",
    r"\bthe one who\b": "the person who",
    r"\bmay stand\b": "is allowed",
}
"""Banned phrases, as regular expressions, with what to write instead."""
SUFFIXES = {".html", ".js", ".md", ".py", ".toml", ".yaml"}
EXEMPT = (
    ".ci/",
    "benchmarks/labelled/",
    "docs/pictures/",
    "src/germane/demo/corpus/",
    "src/germane/scorers/prompting/prompts/",
    "src/germane/scorers/refusals/",
    "tests/packaging/test_names.py",
)
"""Data rather than prose: texts of a made-up application, judge prompts, and phrases that recognize refusals."""
_PATTERN = re.compile("|".join(f"(?P<p{number}>{phrase})" for number, phrase in enumerate(PHRASES)), re.IGNORECASE)


def files() -> list[Path]:
    """Return the tracked files with prose."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        ROOT / name
        for name in names
        if Path(name).suffix in SUFFIXES and not name.startswith(EXEMPT) and (ROOT / name).is_file()
    ]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file by line number: of Python code the comments and strings, otherwise every line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, line
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line:
            yield number, line.partition("#")[2]


def main() -> int:
    """Print every violation, and return 1 if there is any."""
    checked = files()
    violations = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r} -> {list(PHRASES.values())[int(str(match.lastgroup)[1:])]}"
        for path in checked
        for number, line in prose(path)
        for match in _PATTERN.finditer(line)
    ]
    print(*sorted(violations), sep="\n", end="\n" if violations else "")
    dictionaries = ["--dictionary", "-", "--dictionary", ".ci/banned-words.txt"]
    codespell = [sys.executable, "-m", "codespell_lib", *dictionaries, *map(str, checked)]
    words = subprocess.run(codespell, cwd=ROOT, check=False)
    return int(bool(violations) or words.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
