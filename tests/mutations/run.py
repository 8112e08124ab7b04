"""Whether the tests see: a line of the package is made wrong, and the named test must fail.

    python tests/mutations/run.py [--only PATTERN] [--jobs 2] [--check] [--python PATH]

The mutations are listed beside this file (``*.toml``): a file of the package, a text that stands in
it exactly once, what replaces it, why that matters, and the test that catches it. What waits for a
test says so, and what for. First all named tests are run on the package as it is, and must pass;
then each is run on a copy in which one text is replaced, and must fail. A test that cannot be run,
or that takes longer than two minutes, has not caught anything.

It takes some ten minutes, and is no part of the test suite. Run it after work on the tests, or on
the files that are named; a text that is not found any more is to be followed to where it has gone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPIED = ("marginsvm", "tests", "docs", "examples", "pyproject.toml", "README.md")
NOT_COPIED = ("__pycache__", "_build", "auto_examples", "generated", ".*")
SECONDS = 120  # for one test on a mutation: each of those named takes a few
PASSED, FAILED = 0, 1  # exit codes of pytest; any other: the test was not run


@dataclass(frozen=True)
class Mutation:
    """A line made wrong.

    Attributes
    ----------
    name : str
    file : str
        Path from the root of the repository.
    old, new : str
        A part of a line, which the file has exactly once, and what takes its place.
    why : str
        What would be claimed wrongly, or lost.
    test : str
        ``tests/FILE.py::FUNCTION``, of all its parameters; or with one of them in brackets.
    waits : str
        Why it has no test yet, and for what it waits; empty: it has one.
    """

    name: str
    file: str
    old: str
    new: str
    why: str
    test: str
    waits: str = ""

    def applied_to(self, text: str) -> str:
        """The text of the file with the mutation."""
        if (found := text.count(self.old)) != 1:
            others = [path for path in (ROOT / "marginsvm").rglob("*.py") if self.is_in(path)]
            hint = f"; it is in {', '.join(str(p.relative_to(ROOT)) for p in others)}" * bool(
                others
            )
            raise SystemExit(f"{self.name}: {self.old!r} is {found} times in {self.file}{hint}")
        return text.replace(self.old, self.new)

    def is_in(self, path: Path) -> bool:
        """Whether the text is in a file."""
        return self.old in path.read_text()


def listed() -> list[Mutation]:
    """All mutations, those that wait as well."""
    tables = [tomllib.loads(path.read_text()) for path in sorted(HERE.glob("*.toml"))]
    mutations = [Mutation(**entry) for table in tables for entry in table["mutation"]]
    names = [mutation.name for mutation in mutations]
    if double := {name for name in names if names.count(name) > 1}:
        raise SystemExit(f"two mutations have the same name: {', '.join(sorted(double))}")
    return mutations


def check_texts(mutations: list[Mutation]) -> None:
    """Find all texts, and all tests that are there already; exit with what is not found."""
    for mutation in mutations:
        mutation.applied_to((ROOT / mutation.file).read_text())
        file, _, test = mutation.test.partition("::")
        function = f"def {test.partition('[')[0]}("
        if not mutation.waits and function not in (ROOT / file).read_text():
            raise SystemExit(f"{mutation.name}: there is no {mutation.test}")


class Copy:
    """A copy of the package and its tests, which is mutated and mended in turn."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns(*NOT_COPIED)
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, folder / name)

    def tested(self, *tests: str, seconds: float, own_cache: bool = False) -> tuple[int, str]:
        """Exit code of pytest on some tests, and what it says; -1: it takes too long."""
        cache = self.folder / ("own_cache" if own_cache else "cache")
        shutil.rmtree(self.folder / "own_cache", ignore_errors=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "NUMBA_CACHE_DIR": str(cache),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # its stamp does not tell two writes in a second
        }
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
        command = [self.python, "-m", "pytest", *options, *tests]
        try:
            run = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                timeout=seconds,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return -1, str(error)
        return run.returncode, run.stdout

    def outcome(self, mutation: Mutation) -> str:
        """``caught``, or what the test has done instead of failing."""
        path = self.folder / mutation.file
        true = path.read_text()
        compiled = (
            "_compiling import" in true
        )  # numba's cache sees changes of a loop's own file only
        try:
            path.write_text(mutation.applied_to(true))
            code, said = self.tested(mutation.test, seconds=SECONDS, own_cache=compiled)
        finally:
            path.write_text(true)
        if code == FAILED:
            return "caught"
        return "NOT CAUGHT" if code == PASSED else f"NOT RUN ({last_line(said)})"


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def report(mutations: list[Mutation], outcomes: list[str]) -> int:
    """Print the table, and the numbers; the exit code."""
    width = max((len(mutation.name) for mutation in mutations), default=0)
    for mutation, outcome in zip(mutations, outcomes, strict=True):
        beside = mutation.waits or mutation.test
        print(f"{outcome:11} {mutation.name:{width}}  {mutation.file}  {beside}")
    caught, waiting = outcomes.count("caught"), outcomes.count("waiting")
    missed = len(outcomes) - caught - waiting
    print(f"{caught} caught, {missed} not caught, {waiting} waiting")
    return int(missed > 0)


def main() -> int:
    """Run what is asked for."""
    # tests interrupt fits; a process that a shell has put into the background ignores that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="*", help="pattern of names, files or tests")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1)
    parser.add_argument("--check", action="store_true", help="only look for all texts and tests")
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    pattern = f"*{asked.only}*"
    mutations = [m for m in listed() if any(fnmatch(x, pattern) for x in (m.name, m.file, m.test))]
    check_texts(mutations)
    active = [mutation for mutation in mutations if not mutation.waits]
    if asked.check:
        print(f"{len(active)} mutations with a test, {len(mutations) - len(active)} waiting: found")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for i in range(asked.jobs):
            copies.put(Copy(Path(folder) / str(i), asked.python))

        def outcome(mutation: Mutation) -> str:
            if mutation.waits:
                return "waiting"
            copy = copies.get()
            try:
                found = copy.outcome(mutation)
            finally:
                copies.put(copy)
            print(f"{found:11} {mutation.name}", flush=True)
            return found

        first = copies.get()
        tests = sorted({mutation.test for mutation in active})
        code, said = first.tested(*tests, seconds=SECONDS * max(1, len(tests)))
        if tests and code != PASSED:
            raise SystemExit(f"the named tests do not pass on the package as it is:\n{said}")
        copies.put(first)
        with ThreadPoolExecutor(asked.jobs) as pool:
            outcomes = list(pool.map(outcome, mutations))
    print()
    return report(mutations, outcomes)


if __name__ == "__main__":
    sys.exit(main())
