"""Counts what five walks through Folio touch: modules of folio/, and calls from one of its packages into another.

    python scripts/walks.py
    python scripts/walks.py --tree ../another/checkout

A module counts if one of its functions runs, a crossing if a function of one package calls one of another, however
often; modules at the root of folio/ are one package. What lies between two functions of folio/, such as LangChain, is
passed over, and what runs while modules are imported does not count. Each walk is a process of its own over the sample
paper, with built-in models; a scripted Ollama on the loopback stands in for a model.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from time import sleep
from types import CodeType, FrameType
from typing import Any, NoReturn

TREE = Path(__file__).resolve().parent.parent
QUESTION = "How does Folio check that a quote stands on its page?"
PORT = 18765
# Walk -> the script at the root that takes it, with its arguments; the first makes the library of the others
WALKS = {
    "a PDF": ("ingest.py",),
    "a question": ("query.py", QUESTION),
    "a model's words": ("query.py", QUESTION),
    "doctor": ("query.py", "--doctor"),
    "a web request": ("serve.py", "--port", str(PORT)),
}


class Walk:
    """What ran while it was measured."""

    def __init__(self) -> None:
        self.is_measured = False
        self.modules: set[str] = set()
        self.crossings: set[tuple[CodeType, CodeType]] = set()
        self._root = os.path.join(os.getcwd(), "folio", "")
        self._module: dict[CodeType, str] = {}

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """For sys.setprofile."""
        if not (self.is_measured and event == "call" and (module := self._module_of(frame.f_code))):
            return
        back = frame.f_back
        while back is not None and not self._module_of(back.f_code):
            if back.f_code.co_name == "<module>" and back.f_code.co_filename.startswith(self._root):
                return  # it runs while a module is imported
            back = back.f_back
        self.modules.add(module)
        if back is not None and _package(self._module_of(back.f_code)) != _package(module):
            self.crossings.add((back.f_code, frame.f_code))

    def report(self) -> NoReturn:
        """Print how many there were as the last line, and end the process."""
        self.is_measured = False
        print(json.dumps([len(self.modules), len(self.crossings)]), flush=True)
        os._exit(0)

    def _module_of(self, code: CodeType) -> str:
        """The file of a function below folio/; "" for what is none of it."""
        if code not in self._module:
            is_own = code.co_filename.startswith(self._root) and code.co_flags & 0x2  # a function has its own locals
            self._module[code] = code.co_filename.removeprefix(self._root) if is_own else ""
        return self._module[code]


def _package(module: str) -> str:
    return module.rpartition(os.sep)[0].partition(os.sep)[0]


def take(script: str, arguments: list[str]) -> NoReturn:
    """Run a script of the tree in this process, and print what it touched as the last line."""
    walk = Walk()
    sys.setprofile(walk.profile)
    threading.setprofile(walk.profile)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.getcwd())
    if script == "serve.py":
        threading.Thread(target=_request, args=(walk,), daemon=True).start()
    else:
        walk.is_measured = True
    with suppress(SystemExit, KeyboardInterrupt):
        runpy.run_path(script, run_name="__main__")
    walk.report()


def _request(walk: Walk) -> NoReturn:
    """Ask the server for passages twice, so that what is loaded once is there; the second time is measured."""
    body = json.dumps({"query": QUESTION}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/search", body, {"Content-Type": "application/json"})
    while not walk.is_measured:
        try:
            urllib.request.urlopen(request, timeout=60).read()
            walk.is_measured = True
            urllib.request.urlopen(request, timeout=60).read()
        except urllib.error.HTTPError:
            break
        except OSError:  # it does not listen yet
            sleep(0.1)
    walk.report()


def measured(tree: Path) -> dict[str, tuple[int, ...]]:
    """The modules and the crossings of each walk through a checkout."""
    sys.path.insert(0, str(TREE))
    from tests.helpers.ollama_server import OllamaStandIn

    counts: dict[str, tuple[int, ...]] = {}
    with tempfile.TemporaryDirectory() as folder, OllamaStandIn(dimension=64) as server:
        own = {"VECTORSTORE_DIR": f"{folder}/store", "INGESTED_JSON": f"{folder}/ingested.json", "HOME": folder}
        own |= {"PAPERS_DIR": str(TREE / "papers"), "EMBEDDER": "builtin", "OLLAMA_HOST": server.url}
        for name, step in WALKS.items():
            env = os.environ | own | {"LLM": "ollama" if name == "a model's words" else "builtin"}
            command = [sys.executable, str(Path(__file__).resolve()), "--take", *step]
            ran = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True)
            last = (ran.stdout.splitlines() or [""])[-1]
            if not last.startswith("["):
                raise SystemExit(f"{name} failed: {ran.stderr}")
            counts[name] = tuple(json.loads(last))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=TREE, help="the checkout to measure; default: this one")
    parser.add_argument("--take", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.take:
        take(arguments.take[0], arguments.take[1:])
    print(f"{'walk':<18}{'modules':>9}{'crossings':>11}")
    for name, (modules, crossings) in measured(arguments.tree).items():
        print(f"{name:<18}{modules:>9}{crossings:>11}")


if __name__ == "__main__":
    main()
