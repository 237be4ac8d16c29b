"""List the licences of every installed package, by what its metadata says: `make licences`.

Exits with 1 if a package has a licence that is not in ALLOWED, but for what a CUDA build of torch brings. Packages that
name none are listed as unknown.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from email.message import Message
from importlib.metadata import Distribution, distributions
from typing import cast

# As in SPDX, https://spdx.org/licenses/: free licences of packages that Folio, AGPL-3.0-or-later, imports or its tests
# use. Only all-MiniLM-L6-v2 is shipped with it, under Apache-2.0. CNRI-Python (regex, of transformers) is free, though
# the FSF finds it incompatible.
ALLOWED = frozenset(
    "0BSD AGPL-3.0-only AGPL-3.0-or-later Apache-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 GPL-2.0-or-later"
    " GPL-3.0-only GPL-3.0-or-later HPND ISC LGPL-2.1-or-later LGPL-3.0-only LGPL-3.0-or-later MIT MIT-0 MIT-CMU"
    " MPL-2.0 CNRI-Python PSF-2.0 Python-2.0 Unlicense Zlib LLVM-exception GCC-exception-3.1".split()
)
# Names that older metadata has instead -> SPDX. A plain "BSD" is taken for the variant with the most conditions.
SPELLINGS = {
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache2.0": "Apache-2.0",
    "gnu library or lesser general public license (lgpl)": "LGPL-3.0-only",  # pebble, by its licence file
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache-2.0 license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd-3-clause license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "psfl": "PSF-2.0",
    "gnu affero general public license v3": "AGPL-3.0-only",
    "dual licensed - gnu affero gpl 3.0 or artifex commercial license": "AGPL-3.0-only",
}
UNKNOWN = "unknown"
# What PyPI's torch for Linux brings, some of it NVIDIA's own. Nothing that answers a question needs torch.
WITH_TORCH = re.compile(r"(nvidia|cuda)-")


def licence(metadata: Message, licence_file: str = "") -> str:
    """A package's licence as an SPDX expression if it can be told, else as its metadata words it; or UNKNOWN.

    licence_file: the text of its licence, whose title counts if the metadata says nothing.
    """
    stated = metadata.get("License-Expression") or ""
    if stated:
        return str(stated)
    named = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License :: ")]
    names = [line.rpartition(" :: ")[2] for line in named]
    names = [name for name in names if name != "OSI Approved"]
    if not names:
        names = [" ".join(str(metadata.get("License") or "").partition("\n")[0].split())]
    title = licence_file.strip().partition("\n")[0].strip().casefold()
    if not any(names) and title in SPELLINGS:
        names = [title]
    known = dict.fromkeys(SPELLINGS.get(name.casefold(), name) for name in names if name)
    return " OR ".join(known) or UNKNOWN


def is_allowed(expression: str) -> bool:
    """Whether every licence that must be kept is allowed: all sides of an AND, one side of an OR."""
    alternatives = re.split(r" OR ", expression.replace("(", " ").replace(")", " "), flags=re.I)
    if "(" in expression:  # nested: all that it names
        alternatives = [" AND ".join(alternatives)]
    return any(
        all(name.strip() in ALLOWED for name in re.split(r" AND | WITH ", alternative, flags=re.I))
        for alternative in alternatives
    )


def _metadata(distribution: Distribution) -> Message:
    return cast(Message, distribution.metadata)  # it is one, and its protocol in typeshed says too little


def _licence_file(distribution: Distribution) -> str:
    name = _metadata(distribution).get("License-File") or "LICENSE"
    return distribution.read_text(f"licenses/{name}") or distribution.read_text(str(name)) or ""


def grouped(found: Iterable[Distribution]) -> dict[str, list[str]]:
    """Licence -> packages, each with its version."""
    packages: dict[str, set[str]] = defaultdict(set)
    for distribution in found:
        packages[licence(_metadata(distribution), _licence_file(distribution))].add(
            f"{distribution.name} {distribution.version}"
        )
    return {name: sorted(packages[name], key=str.casefold) for name in sorted(packages, key=str.casefold)}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="List the licences of every installed package.")
    parser.parse_args(argv)
    packages = grouped(distributions())
    for name, members in packages.items():
        print(f"{name}: {', '.join(members)}")
    ours = {name: [each for each in members if not WITH_TORCH.match(each)] for name, members in packages.items()}
    refused = [name for name in ours if ours[name] and name != UNKNOWN and not is_allowed(name)]
    for name in refused:
        print(f"Not allowed: {name} ({', '.join(ours[name])}).", file=sys.stderr)
    if refused:
        print("Find out what they allow, then add the licence to scripts/list_licences.py.", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
