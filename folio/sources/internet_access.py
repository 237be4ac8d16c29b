"""What the settings say about asking services on the internet, as values. Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class InternetAccess:
    """What the services are asked with."""

    contact_email: str
    openalex_key: str = field(repr=False)
    semanticscholar_key: str = field(repr=False)
    stand_in: str  # the address of a server on this computer in place of all services; "" for none
    cache_folder: Path
    largest_mb: int  # megabytes of a PDF
    is_for_server: bool = False  # whether `folio serve` may use it without being told so at its start
