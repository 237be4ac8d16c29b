"""Runs of a module's `main` in processes of their own, which may be killed; what they need is imported once, before.

    forks = Forks("tests.helpers.kill_move")
    code, out = forks.run("postgres", folder, url, 3)

The processes are forked from one that has imported the module: `python -m tests.helpers.forks MODULE`.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from tests.helpers.paths import ROOT


class Run:
    """A process at work. Its output, errors too, is in `out` as it comes."""

    def __init__(self, forks: Forks, pid: int, pipe: Path) -> None:
        self._forks, self._pid = forks, pid
        self.out = pipe.open(encoding="utf-8")
        self._code: int | None = None

    def kill(self) -> None:
        if self._code is None:  # else the number may be another process's
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """The exit code, negative for a signal. What it still says must be read before."""
        if self._code is None:
            self.out.close()
            self._code = self._forks.ask(wait=self._pid)
        return self._code


class Forks:
    """The process that has imported a module, which forks the others."""

    def __init__(self, module: str) -> None:
        self._folder, self._names = Path(tempfile.mkdtemp(prefix="folio-forks-")), count()
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, "-m", "tests.helpers.forks", module]
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)
        atexit.register(self.close)

    def close(self) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def ask(self, **order: Any) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, *arguments: object) -> Run:
        """Call main with these arguments, as texts."""
        pipe = self._folder / str(next(self._names))
        os.mkfifo(pipe)
        return Run(self, self.ask(arguments=list(map(str, arguments)), out=str(pipe)), pipe)

    def run(self, *arguments: object) -> tuple[int, str]:
        """The exit code and the output of a whole run."""
        run = self.start(*arguments)
        said = run.out.read()
        return run.wait(), said


@cache
def forks_of(module: str) -> Forks:
    """The one of this process for a module."""
    return Forks(module)


def main(module: str) -> None:
    # The threads of OpenBLAS and of ONNX Runtime, which importing NumPy and PyMuPDF starts, are idle.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    run = import_module(module).main
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        elif not (answer := os.fork()):
            _run(run, **order)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _run(run: Any, arguments: list[str], out: str) -> None:
    """In the forked process, which ends here."""
    pipe = os.open(out, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(pipe, number)
    os.close(pipe)
    code = 0
    try:
        run(*arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
