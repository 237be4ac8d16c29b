"""Make docs/answer.svg, the picture of a real answer in README.md, from the papers that are in the index.

python ingest.py && python scripts/make_picture.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.app import from_environment
from folio.cli.show import show_sentence, show_sources

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "answer.svg"
QUESTION = "What happens to the index when the computer loses power during an ingest?"


def main() -> int:
    console = Console(record=True, width=96, file=sys.stderr, force_terminal=True, highlight=False)
    app = from_environment(lambda text: None)
    library = app.open_library()
    console.print(f'[bold]$ python query.py "{QUESTION}"[/bold]')
    reply = app.chat(library, top_k=app.settings.TOP_K).ask(QUESTION, lambda sentence: show_sentence(console, sentence))
    show_sources(console, reply.answer.citations)
    library.close()
    svg = console.export_svg(title="Folio")
    # The picture takes the reader's own fixed-width font, and none from the network.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    PICTURE.write_text(re.sub(r"[ \t]+\n", "\n", svg), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
