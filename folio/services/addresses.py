"""Which addresses on the internet Folio may ask: the services, the hosts that it takes PDFs from, and how often.

A server on this computer may stand in for all of them (SOURCES_STAND_IN), which is what the tests do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from folio.errors import SourceError, UsageError
from folio.system.network import is_loopback

Service = Literal["arxiv", "openalex", "semanticscholar", "crossref", "unpaywall"]

_APIS: dict[Service, str] = {
    "arxiv": "https://export.arxiv.org/api",
    "openalex": "https://api.openalex.org",
    "semanticscholar": "https://api.semanticscholar.org/graph/v1",
    "crossref": "https://api.crossref.org",
    "unpaywall": "https://api.unpaywall.org/v2",
}
# Requests, and the seconds in which so many may be sent, as each service asks for:
# https://info.arxiv.org/help/api/tou.html, https://docs.openalex.org (10 a second), https://api.semanticscholar.org
# (1 a second with a key), https://api.crossref.org (5 a second), https://unpaywall.org/products/api (100,000 a day)
RATES: dict[Service, tuple[int, float]] = {
    "arxiv": (1, 3.0),
    "openalex": (8, 1.0),
    "semanticscholar": (1, 1.0),
    "crossref": (4, 1.0),
    "unpaywall": (1, 1.0),
}
PDF_RATE = (1, 1.0)  # of each host
NAMES: dict[Service, str] = {
    "arxiv": "arXiv",
    "openalex": "OpenAlex",
    "semanticscholar": "Semantic Scholar",
    "crossref": "Crossref",
    "unpaywall": "Unpaywall",
}
# Hosts that a link to a PDF may begin with: repositories, and publishers with open articles. Their subdomains too.
_PDF_HOSTS = frozenset(
    """arxiv.org doi.org biorxiv.org medrxiv.org chemrxiv.org europepmc.org ncbi.nlm.nih.gov zenodo.org hal.science
    osf.io eartharxiv.org openreview.net aclanthology.org mlr.press neurips.cc nips.cc jmlr.org thecvf.com usenix.org
    ijcai.org aaai.org isca-archive.org openalex.org semanticscholar.org joss.theoj.org rescience.github.io
    plos.org frontiersin.org mdpi.com nature.com springer.com springeropen.com biomedcentral.com elifesciences.org
    peerj.com pnas.org oup.com wiley.com science.org sciencedirect.com elsevier.com cell.com acm.org ieee.org acs.org
    rsc.org iop.org iopscience.iop.org aip.org aps.org royalsocietypublishing.org cambridge.org tandfonline.com
    sagepub.com copernicus.org hindawi.com f1000research.com wellcomeopenresearch.org scielo.br scielo.org
    jstage.jst.go.jp dagstuhl.de vldb.org figshare.com escholarship.org ssoar.info mit.edu cern.ch""".split()
)
_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+\.?")
_PLAIN = re.compile(r"[^\s\x00-\x20\x7f\\]+")
_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class ServiceAddresses:
    """Where the services are. stand_in: the address of a server on this computer in place of all; "" for none."""

    stand_in: str = ""

    def __post_init__(self) -> None:
        """Raise UsageError if the stand-in is not on this computer."""
        if not self.stand_in:
            return
        parts = _split(self.stand_in)
        if parts is None or parts.scheme != "http" or not is_loopback(parts.hostname or "") or not parts.port:
            raise UsageError(
                "SOURCES_STAND_IN is not the address of a server on this computer.",
                "Leave it empty, or set it like http://127.0.0.1:8000.",
            )

    def api(self, service: Service) -> str:
        """The address that a service's requests begin with."""
        return f"{self.stand_in.rstrip('/')}/{service}" if self.stand_in else _APIS[service]

    def arxiv_pdf(self, identifier: str) -> str:
        """The address of an arXiv paper's PDF."""
        return f"{self.stand_in.rstrip('/') if self.stand_in else 'https://arxiv.org'}/pdf/{identifier}"

    def require_api(self, url: str) -> None:
        """Raise SourceError unless an address is one of a service."""
        if self._is_stand_in(url):
            return
        host = _https_host(url)
        if self.stand_in or host not in {urlsplit(address).hostname for address in _APIS.values()}:
            raise _refused(url, "which is no address of the services that Folio asks")

    def require_pdf(self, url: str) -> None:
        """Raise SourceError unless a PDF may be taken from an address."""
        if self._is_stand_in(url):
            return
        host = _https_host(url)
        if self.stand_in or not any(host == known or host.endswith(f".{known}") for known in _PDF_HOSTS):
            raise _refused(url, "a host that Folio takes no PDFs from", "Download the file by hand, and ingest it.")

    def require_redirect(self, url: str) -> None:
        """Raise SourceError unless a host that PDFs are taken from may send Folio on to an address."""
        if not self._is_stand_in(url):
            _https_host(url)
            if self.stand_in:
                raise _refused(url, "which is not the stand-in")

    def may_connect(self, host: str, port: int, address: str) -> bool:
        """Whether a connection may be made to an address that a host's name stands for."""
        parts = urlsplit(self.stand_in)
        if self.stand_in:
            return (host, port) == (parts.hostname, parts.port) and ip_address(address).is_loopback
        return is_public(address)

    def _is_stand_in(self, url: str) -> bool:
        parts = _split(url)
        return bool(self.stand_in and parts) and parts[:2] == urlsplit(self.stand_in)[:2]  # type: ignore[index]


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the internet: to no private network, no computer's own, none that wraps such."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped:
            found = found.ipv4_mapped
        elif found.sixtofour or found.teredo or found in _NAT64:
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def host_of(url: str) -> str:
    """The host of an address, for the reader of a message; "" if it has none."""
    parts = _split(url)
    return (parts.hostname or "") if parts else ""


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for one that is no number
    except ValueError:
        return None
    return parts


def _https_host(url: str) -> str:
    """The host of an https address without a user, a password or a port of its own. Raises SourceError."""
    parts = _split(url)
    # Other libraries read a backslash or a space in another way than this one.
    if parts is None or not _HOST.fullmatch(parts.hostname or "") or not _PLAIN.fullmatch(url):
        raise _refused(url, "which is no address")
    if parts.scheme != "https":
        raise _refused(url, "which is not https")
    if parts.port not in (None, 443) or "@" in parts.netloc:
        raise _refused(url, "which has a port or a name of its own")
    return (parts.hostname or "").rstrip(".").lower()


def _refused(url: str, why: str, remedy: str = "Nothing was sent there.") -> SourceError:
    return SourceError(f"Not asked: {url[:200]}, {why}.", remedy)


# What the settings say about asking services on the internet, as values. Opens nothing.


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
