"""Mutation test: changes the core at random places, and runs the tests that execute the place against each change.

A mutant that survives shows a promise that no test holds, or code that makes no difference. The seed selects the
mutants. Most of them stay the same when other code changes. They run in copies of the repository.

    python tests/mutants.py --seed 1
    python tests/mutants.py --at tracer/recording.py:243   # all mutants of one line

Left out is what no test could hold, except by repeating it:

- annotations, docstrings, assertions and ``repr``, and arguments such as ``strict=True`` that state an assumption;
- what is only logged for the developers of germane, and the choice of code for other operating systems;
- the very moment of a clock that no test can stop: ``<`` and ``<=`` are the same for ``time.monotonic()``;
- constants that name a single number, because their values are choices: a limit, a size, a duration. The code that
  uses them is changed, such as ``<`` into ``<=``.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.executed_lines import FAST, PYTEST, ExecutedLines  # noqa: E402 - after the path is set

SOURCE = Path("src/germane")
PACKAGES = (
    "alerting", "delivery", "evaluation", "insights", "monitor", "receiver", "recognizers", "scorers", "storage",
    "tracer",
)  # fmt: skip
EXCLUDED = "storage/db/migrations"  # slow tests compare the migrated database with the tables
NEAREST_FILES = 30
"""Test files whose fast tests run against a mutant. Some lines are executed by more."""
NEAREST_SLOW_FILES = 5
"""Test files whose slow tests run if no fast one fails."""
SLOW = ("-m", "slow and not thorough", "-k", "not postgresql")
"""Selects the slow tests without the variants that repeat one on the other database."""
TIME_LIMIT = 900.0
"""Seconds for the tests of a mutant. Each test has its own limit, so that an endless loop makes a test fail."""
MIN_KILLED = 0.9

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
# Mutants of these are equivalent, or change only what the developers of germane read.
SKIPPED_CALLS = re.compile(r"(\w+\.)*(_?log|_?logger|log_once|_?warnings|TypeVar|NewType|cast)\b")
SKIPPED_FUNCTIONS = {"__repr__", "__str__"}
SKIPPED_VARIABLES = {"__all__", "__slots__"}
SKIPPED_KEYWORDS = {"strict", "stacklevel", "daemon"}
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "bases", "type_params"}
REMOVABLE = (ast.Expr, ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    """Path below ``src/germane``."""
    line: int
    end: int
    """The last line of the changed expression."""
    kind: str
    change: str
    number: int
    """Counts the same changes in a module."""

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.kind}: {self.change}"


@dataclass(frozen=True)
class Trial:
    """A mutant with all that the copies of the repository need, because the repository may change meanwhile."""

    mutant: Mutant
    source: str
    """The changed module."""
    difference: str
    """The changed line before and after, in the format of ``ast.unparse``."""
    tests: list[str]
    """The test files that execute the line, nearest first."""


@dataclass(frozen=True)
class Outcome:
    """What the tests found."""

    trial: Trial
    killer: str | None
    """The test that failed."""
    seconds: float


def mutants_of(module: str) -> Iterator[tuple[Mutant, ast.Module]]:
    """Yield all mutants of a module, each with the changed tree, which is valid until the next one."""
    tree = ast.parse((ROOT / SOURCE / module).read_text())
    numbers = Counter[tuple[str, str]]()
    for parent, field, index, old in _places(tree):
        for kind, new in _replacements(old, field, parent):
            change = f"{_in_one_line(old)} -> {_in_one_line(new)}"
            numbers[kind, change] += 1
            _put(parent, field, index, new)
            yield Mutant(module, old.lineno, old.end_lineno or old.lineno, kind, change, numbers[kind, change]), tree
            _put(parent, field, index, old)


def prepare(mutant: Mutant, executed: ExecutedLines) -> Trial:
    """Return a mutant with its source and its tests."""
    text = (ROOT / SOURCE / mutant.module).read_text()
    source = next(ast.unparse(tree) for each, tree in mutants_of(mutant.module) if each == mutant)
    before = ast.unparse(ast.parse(text)).splitlines()
    changed = [line for line in difflib.ndiff(before, source.splitlines()) if line[0] in "-+"]
    return Trial(
        mutant,
        source,
        "\n    ".join(changed[:6]),
        nearest_tests(mutant, text, executed),
    )


def nearest_tests(mutant: Mutant, text: str, executed: ExecutedLines) -> list[str]:
    """Return the test files that execute the changed line.

    A line outside functions is executed by imports. Return the files that import the module, and those that execute a
    line with the name that it defines. If no fast test executes a line, return the files that execute its module.
    """
    name = _name_defined_at(mutant.line, ast.parse(text))
    lines = {line.strip() for line in text.splitlines()[mutant.line - 1 : mutant.end]}
    if name is None:
        files = executed.files(mutant.module, lambda module, found: module == mutant.module and lines & found)
    else:
        mentions = re.compile(rf"\b{name}\b").search
        files = executed.files(mutant.module, lambda _, found: any(map(mentions, found)))
        files = list(dict.fromkeys([*_importing(mutant.module)[: NEAREST_FILES // 2], *files]))
    return files or executed.files(mutant.module, lambda module, _: module == mutant.module)


def _importing(module: str) -> list[str]:
    """Return the test files that import a module or, without a module of its own, its package."""
    dotted = f"germane.{module.removesuffix('.py').replace('/', '.')}"
    return [file for file, imported in _imports().items() if {dotted, dotted.rpartition(".")[0]} & imported]


@cache
def _imports() -> dict[str, set[str]]:
    """Return what each test file imports, as dotted names."""
    imports: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
        imports[path.relative_to(ROOT).as_posix()] = names | {str(node.module) for node in nodes}
    return imports


def _name_defined_at(line: int, tree: ast.Module) -> str | None:
    """Return the name that a line outside function bodies helps to define."""
    name: str | None = None
    for node in ast.walk(tree):  # inner nodes last
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    if not isinstance(node, ast.ClassDef) and node.body[0].lineno <= line:
                        return None
                    name = node.name
                case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
                    name = target.id
    return name


def _places(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr | ast.stmt]]:
    """Yield the expressions and statements below a node, each with its parent, field and index in the field."""
    for field, value in ast.iter_fields(parent):
        if field in SKIPPED_FIELDS:
            continue
        indexes = range(len(value)) if isinstance(value, list) else [None]
        for index in indexes:
            child = value if index is None else value[index]
            if not isinstance(child, ast.AST) or _is_skipped(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield parent, field, index, child
            yield from _places(child)


def _put(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[index] = child


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Expr(value=ast.Call(func=called)) | ast.Call(func=called):
            return SKIPPED_CALLS.match(ast.unparse(called)) is not None
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant)
        case ast.FunctionDef(name=name):
            return name in SKIPPED_FUNCTIONS
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return name in SKIPPED_VARIABLES or (name.isupper() and _is_number(value))
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case ast.Compare(left=ast.Attribute(value=ast.Name(id="sys"), attr="platform")):
            return True
        case ast.keyword(arg=str(name)):
            return name in SKIPPED_KEYWORDS
    return False


def _replacements(node: ast.expr | ast.stmt, field: str, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left, [operator, *operators], comparators):
            others = COMPARISONS[type(operator)]
            for other in others[1:] if "time.monotonic()" in ast.unparse(node) else others:
                yield "comparison", ast.Compare(left, [other(), *operators], comparators)
        case ast.BoolOp(operator, values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS and not _is_text(left):
            yield "arithmetic", ast.BinOp(left, OPERATORS[type(operator)](), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", operand
        case ast.Constant(bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            is_bound = value <= 10 or isinstance(parent, ast.Compare)
            yield "constant", ast.Constant(value + 1 if is_bound else value * 2)
        case ast.stmt() if isinstance(node, REMOVABLE):
            yield "removed", ast.Pass()
    if field in {"test", "ifs"} and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr | ast.BinOp):
        yield "not", ast.UnaryOp(ast.Not(), node)
    if field == "test" and isinstance(parent, ast.If):
        yield "removed branch", ast.Constant(value=False)


def _is_number(node: ast.AST | None) -> bool:
    """Return whether an expression is a number, or a duration with one."""
    match node:
        case ast.Call(func=ast.Name(id="timedelta"), args=[], keywords=[ast.keyword(value=value)]):
            return _is_number(value)
        case ast.UnaryOp(ast.USub(), value):
            return _is_number(value)
    return isinstance(node, ast.Constant) and type(node.value) in {int, float}


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _in_one_line(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def draw(seed: int, places: int) -> list[Mutant]:
    """Return random mutants of the core."""

    def draw_key(mutant: Mutant) -> bytes:
        # Without the line number, the draw does not change when lines are inserted.
        place = f"{seed} {mutant.module} {mutant.kind} {mutant.change} {mutant.number}"
        return hashlib.sha256(place.encode()).digest()

    return sorted((mutant for module in core_modules() for mutant, _ in mutants_of(module)), key=draw_key)[:places]


def core_modules() -> list[str]:
    """Return the modules of the core packages, as paths below ``src/germane``."""
    files = (path for package in PACKAGES for path in (ROOT / SOURCE / package).rglob("*.py"))
    modules = (path.relative_to(ROOT / SOURCE).as_posix() for path in files)
    return sorted(module for module in modules if not module.startswith(EXCLUDED))


class Copies:
    """Copies of the repository, in which tests run against mutants."""

    def __init__(self, directory: Path, number_of_copies: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        ignored = shutil.ignore_patterns(".*cache", ".git", ".venv", "build", "dist")
        for number in range(number_of_copies):
            self._free.put(shutil.copytree(ROOT, directory / str(number), symlinks=True, ignore=ignored))

    def judge(self, trial: Trial) -> Outcome:
        """Run the tests against a mutant until one fails."""
        started = time.monotonic()
        copy = self._free.get()
        path = copy / SOURCE / trial.mutant.module
        original, times = path.read_text(), path.stat()
        try:
            path.write_text(trial.source)
            os.utime(path, (started, started))  # not the times of the original, so that no cached byte code is used
            killer = self._first_failure(copy, FAST, trial.tests[:NEAREST_FILES])
            killer = killer or self._first_failure(copy, SLOW, trial.tests[:NEAREST_SLOW_FILES])
        finally:
            path.write_text(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            self._free.put(copy)
        return Outcome(trial, killer, time.monotonic() - started)

    def failures(self, tests: Sequence[str]) -> set[str]:
        """Return the tests that fail without a mutant."""
        copy = self._free.get()
        output, _ = self._run_pytest(copy, ["-m", "not thorough", *tests])
        self._free.put(copy)
        return set(_failed_tests(output))

    def stop(self) -> None:
        """Stop the running tests. They stop the servers that they have started."""
        self._stopped = True
        for process in list(self._running):
            _interrupt(process)

    def _first_failure(self, copy: Path, selection: Sequence[str], tests: Sequence[str]) -> str | None:
        if not tests or self._stopped:
            return None
        output, code = self._run_pytest(copy, [*selection, *tests, "-x"])
        # None: the time is over. 5: no test was collected.
        return (
            None if code in {None, 0, 5} else next(_failed_tests(output), f"pytest exited with {code}: {output[-300:]}")
        )

    def _run_pytest(self, copy: Path, arguments: Sequence[str]) -> tuple[str, int | None]:
        process = subprocess.Popen(
            [*PYTEST, "-n", "0", "--timeout=120", "--hypothesis-profile=unshrunk", *arguments],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "1000"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            output, _ = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            _interrupt(process)
            return "", None
        finally:
            self._running.discard(process)
        return output, process.returncode


def _failed_tests(output: str) -> Iterator[str]:
    """Yield the tests, without parameters, that pytest's summary names."""
    for found in re.finditer(r"^(?:FAILED|ERROR) ([^\s\[]+)", output, re.MULTILINE):
        yield found[1]


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Stop pytest as Ctrl-C does, so that it stops its database server. Kill it if that does not help."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--places", type=int, default=60)
    parser.add_argument("--at", nargs="+", default=[], metavar="MODULE:LINE", help="all mutants of these lines")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--list", action="store_true", help="print the mutants and their nearest tests, and run nothing"
    )
    options = parser.parse_args()
    if options.at:
        places = {tuple(place.rsplit(":", 1)) for place in options.at}
        mutants = [
            each
            for module in sorted({module for module, _ in places})
            for each, _ in mutants_of(module)
            if (module, str(each.line)) in places
        ]
    else:
        mutants = draw(options.seed, options.places)
    executed = ExecutedLines.load(options.processes)
    trials = [prepare(mutant, executed) for mutant in mutants]
    if options.list:
        for trial in trials:
            _print(trial.mutant, trial.difference, *trial.tests[:NEAREST_FILES])
        return 0
    return report(run(trials, options.processes), needed=0.0 if options.at else MIN_KILLED)


def run(trials: Sequence[Trial], processes: int) -> list[Outcome]:
    """Run the tests against each mutant, and print each outcome. A test that always fails kills no mutant."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="germane-mutants-") as directory:
        copies = Copies(Path(directory), processes)
        with ThreadPoolExecutor(processes) as pool:
            try:
                for future in as_completed([pool.submit(copies.judge, trial) for trial in trials]):
                    outcomes.append(outcome := future.result())
                    verdict = f"killed by {outcome.killer}" if outcome.killer else "SURVIVED"
                    _print(f"{len(outcomes):3} {outcome.seconds:4.0f} s  {outcome.trial.mutant}", verdict)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                copies.stop()
        killers = sorted({outcome.killer for outcome in outcomes if outcome.killer and "::" in outcome.killer})
        unreliable = copies.failures(killers) if killers else set()
    for test in sorted(unreliable):
        _print(f"unreliable, because it also fails without a mutant: {test}")
    return [replace(each, killer=None) if each.killer in unreliable else each for each in outcomes]


def report(outcomes: Sequence[Outcome], needed: float) -> int:
    """Print the survivors and the share of killed mutants. Return the exit code."""
    for outcome in outcomes:
        if outcome.killer is None:
            number = min(NEAREST_FILES, len(outcome.trial.tests))
            ran = f"{number} test files ran" if number else "no fast test executes it"
            _print(f"survived: {outcome.trial.mutant} ({ran})", outcome.trial.difference)
    drawn = Counter(outcome.trial.mutant.kind for outcome in outcomes)
    killed = Counter(outcome.trial.mutant.kind for outcome in outcomes if outcome.killer)
    _print(", ".join(f"{kind} {killed[kind]}/{number}" for kind, number in sorted(drawn.items())))
    share = killed.total() / max(1, drawn.total())
    _print(f"{killed.total()} of {drawn.total()} mutants killed ({share:.2f})")
    return int(share < needed)


def _print(*lines: object) -> None:
    sys.stdout.write("\n    ".join(map(str, lines)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
