"""Which internet addresses Folio may contact, and how often: the services, and the hosts of PDFs.

A server on this computer can stand in for all of them (SOURCES_STAND_IN), as in the tests.
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

Service = Literal["arxiv", "arxivoai", "openalex", "semanticscholar", "crossref", "europepmc", "unpaywall"]

_APIS: dict[Service, str] = {
    "arxiv": "https://export.arxiv.org/api",
    "arxivoai": "https://oaipmh.arxiv.org",
    "openalex": "https://api.openalex.org",
    "semanticscholar": "https://api.semanticscholar.org/graph/v1",
    "crossref": "https://api.crossref.org",
    "europepmc": "https://www.ebi.ac.uk/europepmc/webservices/rest",
    "unpaywall": "https://api.unpaywall.org/v2",
}
# Number of requests, and the window in seconds, within the limits that each service publishes:
# https://info.arxiv.org/help/api/tou.html, https://docs.openalex.org (10 a second), https://api.semanticscholar.org
# (1 a second with a key), https://api.crossref.org (5 a second), https://unpaywall.org/products/api (100,000 a day).
# https://europepmc.org/RestfulWebService names no limit.
RATES: dict[Service, tuple[int, float]] = {
    "arxiv": (1, 3.0),
    "arxivoai": (1, 3.0),
    "openalex": (8, 1.0),
    "semanticscholar": (1, 1.0),
    "crossref": (4, 1.0),
    "europepmc": (2, 1.0),
    "unpaywall": (1, 1.0),
}
LANES: dict[Service, Service] = {"arxivoai": "arxiv"}  # services that share the rate of another
PDF_RATE = (1, 1.0)  # for each host
NAMES: dict[Service, str] = {
    "arxiv": "arXiv",
    "arxivoai": "arXiv",
    "openalex": "OpenAlex",
    "semanticscholar": "Semantic Scholar",
    "crossref": "Crossref",
    "europepmc": "Europe PMC",
    "unpaywall": "Unpaywall",
}
# Hosts of PDFs, with their subdomains: repositories, and publishers with open articles
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
class InternetAccess:
    """What the settings say about using services on the internet."""

    contact_email: str
    openalex_key: str = field(repr=False)
    semanticscholar_key: str = field(repr=False)
    stand_in: str  # see ServiceAddresses
    cache_folder: Path
    largest_mb: int  # megabytes of a PDF
    is_for_server: bool = False  # whether `folio serve` may use the services without --online


@dataclass(frozen=True, slots=True)
class ServiceAddresses:
    """The addresses of the services. stand_in: a server on this computer that replaces them all; "" for none."""

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
        """The base address of a service."""
        return f"{self.stand_in.rstrip('/')}/{service}" if self.stand_in else _APIS[service]

    def arxiv_pdf(self, identifier: str) -> str:
        """The address of an arXiv paper's PDF."""
        return f"{self.stand_in.rstrip('/') if self.stand_in else 'https://arxiv.org'}/pdf/{identifier}"

    def require_api(self, url: str) -> None:
        """Raise SourceError unless the address belongs to a service."""
        if self._is_stand_in(url):
            return
        host = _https_host(url)
        if self.stand_in or host not in {urlsplit(address).hostname for address in _APIS.values()}:
            raise _refused(url, "which does not belong to a service that Folio uses")

    def require_pdf(self, url: str) -> None:
        """Raise SourceError unless Folio may download a PDF from the address."""
        if self._is_stand_in(url):
            return
        host = _https_host(url)
        if self.stand_in or not any(host == known or host.endswith(f".{known}") for known in _PDF_HOSTS):
            raise _refused(url, "a host that Folio does not download from", "Download the file by hand, and ingest it.")

    def require_redirect(self, url: str) -> None:
        """Raise SourceError unless Folio may follow a redirect of a PDF host to the address."""
        if not self._is_stand_in(url):
            _https_host(url)
            if self.stand_in:
                raise _refused(url, "which is not the stand-in")

    def may_connect(self, host: str, port: int, address: str) -> bool:
        """Whether Folio may connect to an IP address that a host's name resolves to."""
        parts = urlsplit(self.stand_in)
        if self.stand_in:
            return (host, port) == (parts.hostname, parts.port) and ip_address(address).is_loopback
        return is_public(address)

    def _is_stand_in(self, url: str) -> bool:
        parts = _split(url)
        return bool(self.stand_in and parts) and parts[:2] == urlsplit(self.stand_in)[:2]  # type: ignore[index]


def is_public(address: str) -> bool:
    """Whether an IP address is on the public internet: not private or local, and not wrapping such an address."""
    try:
        ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped:
            ip = ip.ipv4_mapped
        elif ip.sixtofour or ip.teredo or ip in _NAT64:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def host_of(url: str) -> str:
    """The host of an address, for messages; "" if it has none."""
    parts = _split(url)
    return (parts.hostname or "") if parts else ""


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if the port is not a number
    except ValueError:
        return None
    return parts


def _https_host(url: str) -> str:
    """The host of an https address. Raises SourceError if the address has a user, a password or another port."""
    parts = _split(url)
    # Other libraries interpret a backslash or a space differently from this one.
    if parts is None or not _HOST.fullmatch(parts.hostname or "") or not _PLAIN.fullmatch(url):
        raise _refused(url, "which is not an address")
    if parts.scheme != "https":
        raise _refused(url, "which is not https")
    if parts.port not in (None, 443) or "@" in parts.netloc:
        raise _refused(url, "which has a user name or an unusual port")
    return (parts.hostname or "").rstrip(".").lower()


def _refused(url: str, why: str, remedy: str = "Nothing was sent there.") -> SourceError:
    return SourceError(f"Not asked: {url[:200]}, {why}.", remedy)
