"""The protocol's own inspector, in its command-line mode, against `folio mcp` and /mcp of a server.

python -m campaign.mcp_inspector                                       with npx, which downloads it from npm
python -m campaign.mcp_inspector --inspector node_modules/.bin/mcp-inspector    with one that is installed

Not a part of the suite: it needs Node and, the first time, the internet.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from tests.helpers.factories import small_papers
from tests.helpers.paths import ROOT

TOKEN = "a-token-of-24-characters"
NPX = "npx --yes @modelcontextprotocol/inspector"
PATIENT = ["--connect-timeout", "120000"]  # milliseconds
FUR = "How many hairs has the fur of a sea otter?"
Holds = Callable[[dict[str, Any]], object]

# What the inspector is asked for, and what must hold of the JSON that it prints
CHECKS: tuple[tuple[Sequence[str], Holds], ...] = (
    (("tools/list", "--strict"), lambda got: len(got["tools"]) == 9),
    (
        ("tools/call", "--tool-name", "ask", "--tool-arg", f"question={FUR}"),
        lambda got: got["structuredContent"]["statements"][0]["citations"][0]["page"] == 1,
    ),
    (
        ("tools/call", "--tool-name", "search_passages", "--tool-arg", "query=glacier", "limit=1"),
        lambda got: len(got["structuredContent"]["passages"]) == 1,
    ),
    (
        ("tools/call", "--tool-name", "check_claim", "--tool-arg", "claim=The gauge was built in 1932."),
        lambda got: got["structuredContent"]["verdict"] == "number differs",
    ),
    (
        ("tools/call", "--tool-name", "cite", "--tool-arg", "papers=otters", "format=bibtex"),
        lambda got: "\n@misc{otters" in got["structuredContent"]["citations"][0]["text"],
    ),
    (
        ("tools/call", "--tool-name", "read_pages", "--tool-arg", "paper=otters", "first=9"),
        lambda got: got["isError"] and "no page 9" in got["content"][0]["text"],
    ),
    (("tools/call", "--tool-name", "notes"), lambda got: got["structuredContent"]["count"] == 0),
    (("resources/list",), lambda got: len(got["resources"]) == 2),
    (("resources/templates/list",), lambda got: len(got["resourceTemplates"]) == 2),
    (("prompts/list",), lambda got: len(got["prompts"]) == 3),
    (
        ("prompts/get", "--prompt-name", "review", "--prompt-args", "topic=otters"),
        lambda got: "otters" in got["messages"][0]["content"]["text"],
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask Folio by the inspector of the Model Context Protocol.")
    parser.add_argument("--inspector", default=NPX, help=f"the command (default: {NPX})")
    inspector = shlex.split(parser.parse_args().inspector)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        settings = library(Path(folder))
        environment, given = {**os.environ, **settings}, [f"{name}={value}" for name, value in settings.items()]
        stdio = [sys.executable, "-m", "folio", "mcp"]
        with served(environment) as url:
            header = ["--header", f"Authorization: Bearer {TOKEN}"]
            of_program = ["--cwd", str(ROOT), *chain(*(("-e", pair) for pair in given))]
            for way, target, options in (("stdio", stdio, of_program), ("http", [url], header)):
                for (method, *arguments), holds in CHECKS:
                    words = [*inspector, "--cli", *target, *options, *PATIENT, "--method", method, *arguments]
                    problem = check(words, environment, holds)
                    failed += bool(problem)
                    sys.stdout.write(f"{way} {method} {' '.join(arguments)}: {problem or 'ok'}\n")
                    sys.stdout.flush()
    sys.stdout.write(f"{2 * len(CHECKS) - failed} of {2 * len(CHECKS)} hold.\n")
    return 1 if failed else 0


def library(folder: Path) -> dict[str, str]:
    """The settings of a new library with two papers."""
    small_papers(folder / "papers")
    settings = {
        "PAPERS_DIR": folder / "papers",
        "VECTORSTORE_DIR": folder / "store",
        "INGESTED_JSON": folder / "ingested.json",
        "CACHE_DIR": folder / "cache",
        "EMBEDDER": "builtin",
        "LLM": "builtin",
        "MCP_CATALOG_PATH": folder / "catalog.json",  # the inspector's own
    }
    texts = {name: str(value) for name, value in settings.items()}
    ingest = [sys.executable, "ingest.py"]
    subprocess.run(ingest, cwd=ROOT, env={**os.environ, **texts}, check=True, capture_output=True)
    return texts


@contextmanager
def served(environment: dict[str, str]) -> Iterator[str]:
    """The address of /mcp while serve.py runs."""
    command = [sys.executable, "serve.py", "--port", "0", "--token", TOKEN]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r"http://\S+?:\d+/", process.stdout.readline())
        assert found, "the server did not start"
        yield f"{found[0]}mcp"
        process.send_signal(signal.SIGINT)


def check(words: Sequence[str], environment: dict[str, str], holds: Holds) -> str:
    """What is wrong with the inspector's reply; "" if nothing is."""
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=180, check=False)
    try:
        got = json.loads(ran.stdout)
        return "" if holds(got) else f"exit {ran.returncode}: {ran.stdout[:300]}"
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return f"exit {ran.returncode}, {type(error).__name__}: {ran.stdout[:300]} {ran.stderr[:300]}"


if __name__ == "__main__":
    sys.exit(main())
