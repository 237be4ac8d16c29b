"""Work in threads whose result is needed later."""

from __future__ import annotations

import importlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from threading import Barrier
from time import sleep

import pytest

from folio.system.threads import SharedResult
from tests.helpers.paths import ROOT


def test_work_is_done_once_and_all_threads_get_its_result() -> None:
    calls, start = [], Barrier(4)

    def work() -> object:
        calls.append(1)
        sleep(0.05)
        return object()

    shared = SharedResult(work)

    def ask(_: int) -> object:
        start.wait()
        return shared.get()

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(ask, range(4)))
    assert len(set(map(id, results))) == len(calls) == 1


def test_what_the_work_raises_is_raised_to_all() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise OSError("the first error")

    shared = SharedResult(work)
    for _ in range(3):
        with pytest.raises(OSError, match="the first error"):
            shared.get()
    assert len(calls) == 1


FAILS_ONCE = """
import sys, threading
from folio.answer import chat

class Finder:
    failed = False

    def find_spec(self, name, path=None, target=None):
        if name == "urllib3.contrib.socks" and not self.failed:
            self.failed = True
            raise RuntimeError("the import was disturbed")

sys.meta_path.insert(0, Finder())
chat.warm_up()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
try:
    chat.Chat(None, None, top_k=1)._chain
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_failed_background_import_tells_the_question_why() -> None:
    """A second import of LangChain failed with "cannot import name 'RunTree' from 'langsmith'", whatever was wrong."""
    ran = subprocess.run([sys.executable, "-c", FAILS_ONCE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "RuntimeError the import was disturbed\n"


@pytest.mark.skipif(find_spec("socks") is not None, reason="PySocks is installed")
def test_a_warning_of_requests_ends_no_import() -> None:
    """Under pytest's filters alone, as they are for a thread that was importing when the last test ended."""
    sys.modules.pop("urllib3.contrib.socks", None)
    with pytest.raises(ImportError, match="socks"):
        importlib.import_module("urllib3.contrib.socks")


def test_one_thread_at_a_time_imports_langchain() -> None:
    """In a process of its own, which has none of it yet."""
    program = """
from threading import Thread
from time import sleep
from folio.deep import graph
from folio.answer import chat
from folio.system.threads import IMPORTING
from folio.ingest import chunking
uses = [chat._make_chain.get, lambda: graph.compiled(None), lambda: chunking._splitter(100, 0)]
with IMPORTING:
    threads = [Thread(target=use) for use in uses]
    for thread in threads:
        thread.start()
    sleep(1)
    assert all(thread.is_alive() for thread in threads)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120)
