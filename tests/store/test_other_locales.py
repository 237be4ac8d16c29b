"""A store in a folder whose name has an accent, in the locale C: Python then knows the name by its bytes alone.

It is as near as Linux comes to Windows' narrow encodings, in which FAISS would open its files by name.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from folio.system import workers
from tests.helpers.fakes import hashing_app, make_pdf, read_here
from tests.helpers.paths import ROOT

COMMANDS = """
import sys
from contextlib import closing
from pathlib import Path

from folio.system import workers
from tests.helpers.fakes import hashing_app, read_here

folder, papers = map(Path, sys.argv[1:])
workers.run_guarded = read_here
app = hashing_app(folder, PAPERS_DIR=papers, LLM="builtin")
for rebuild in (False, False, True):
    app.run(rebuild=rebuild)
    assert app.verify() == []
assert app.repair().passages == 8
with closing(app.open_library()) as library:
    for hit in app.retriever(library).search("the shortest vector of a lattice", 3).hits:
        print(hit.paper.file, round(hit.score, 6))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locale C")
def test_a_folder_with_an_accent_in_the_locale_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "josé 王"
    for subject in ("lattices", "sponges"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    (tmp_path / name).mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", COMMANDS, tmp_path / name, tmp_path / "papers"],
        cwd=ROOT,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app = hashing_app(tmp_path / "plain", PAPERS_DIR=tmp_path / "papers", LLM="builtin")
    app.run()
    library = app.open_library()
    hits = app.retriever(library).search("the shortest vector of a lattice", 3).hits
    library.close()
    assert ran.stdout.splitlines() == [f"{hit.paper.file} {round(hit.score, 6)}" for hit in hits]
    assert len(hits) == 3
