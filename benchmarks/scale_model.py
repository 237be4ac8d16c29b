"""What a library of 10^8 or 10^9 passages would take in a Milvus cluster. Reckoned, not measured.

    python benchmarks/scale_model.py                       the tables of docs/scale.md
    python benchmarks/scale_model.py --passages 5e7        another size

Unit costs are measured here (unit-costs.json by unit_costs.py, milvus-measured.json by milvus.py); everything else is
in scale_assumptions.py, each with its source. How long a question takes is simulated: it waits for the slowest of all
query nodes, each of which searches its segments on its cores while other questions wait.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.scale_assumptions import ASSUMPTIONS

HERE = Path(__file__).resolve().parent
GB = 10**9
MONTH_H = 730  # hours
Index = Literal["HNSW", "HNSW_SQ", "HNSW_PQ", "DISKANN"]
INDEXES: tuple[Index, ...] = ("HNSW", "HNSW_SQ", "HNSW_PQ", "DISKANN")
SIZES = (10**8, 10**9)


def assume(name: str) -> float:
    return ASSUMPTIONS[name].value


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What was measured here; seconds are of one core, everything is of one passage."""

    dimension: int
    parse_s: float
    embed_s: float
    rows_s: float  # making its rows and its part of a record
    put_s: float  # all of adding it to Milvus Lite, in which the server's part is Python
    row_bytes: float
    record_bytes: float
    words: float  # different ones
    passages_per_paper: float
    paper_bytes: float  # of a paper's row, without its vector
    graphs: tuple[tuple[float, float, float], ...]  # vectors -> build seconds of one, seconds of a search
    link_bytes: float  # of HNSW, besides the vector
    sent_bytes: float  # of a question, between Folio and Milvus
    received_bytes: float

    def build_s(self, vectors: float) -> float:
        """Seconds to add one of so many vectors to a graph: linear in their logarithm, between what was measured."""
        return self._by_logarithm(vectors, 1)

    def search_s(self, vectors: float) -> float:
        """Seconds of a search of a graph of so many."""
        return self._by_logarithm(vectors, 2)

    def _by_logarithm(self, vectors: float, column: int) -> float:
        small, large = self.graphs[0], self.graphs[-1]
        slope = (large[column] - small[column]) / math.log(large[0] / small[0])
        return max(small[column] / 2, small[column] + slope * math.log(vectors / small[0]))


def measured_costs() -> UnitCosts:
    """The unit costs of the files beside this one."""
    units = json.loads((HERE / "unit-costs.json").read_text(encoding="utf-8"))
    milvus = json.loads((HERE / "milvus-measured.json").read_text(encoding="utf-8"))
    base, wire = milvus["sizes"][milvus["base"]]["milvus"], milvus["wire"]["hybrid"]
    return UnitCosts(
        dimension=units["dimension"],
        parse_s=units["parse_s"],
        embed_s=units["embed_s"],
        rows_s=units["rows_s"],
        put_s=base["add_processor_s"] / base["chunks"],
        row_bytes=units["row_bytes"],
        record_bytes=units["record_bytes"],
        words=units["words"],
        passages_per_paper=units["passages_per_paper"],
        paper_bytes=units["paper_bytes"],
        graphs=tuple((each["vectors"], each["build_s"], each["search_s"]) for each in units["graphs"]),
        link_bytes=units["graphs"][-1]["bytes"] - 4 * units["dimension"],
        sent_bytes=wire["sent_bytes"],
        received_bytes=wire["received_bytes"],
    )


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a library takes."""

    passages: int
    index: Index
    shards: int
    segments: int
    nodes: int
    memory_gb: float  # of all query nodes together: vectors, BM25 index and other fields
    vectors_gb: float  # the vectors' part of it
    local_disk_gb: float  # of all query nodes together
    object_gb: float
    records_gb: float
    raw_disk_gb: float  # under the object store
    build_core_h: float
    p50_ms: float
    p95_ms: float


def vector_bytes(index: Index, costs: UnitCosts) -> tuple[float, float]:
    """Bytes of a vector in memory, and on the query node's disk."""
    raw = 4.0 * costs.dimension
    if index == "DISKANN":
        return raw * (assume("pq_ratio") + assume("cache_ratio")), assume("sector")
    kept = {"HNSW": raw, "HNSW_SQ": raw / 4, "HNSW_PQ": assume("pq_bytes")}[index]
    return kept + costs.link_bytes, 0.0


def reckon(passages: int, index: Index, costs: UnitCosts, *, is_mapped: bool = True, load: float = 0.3) -> Cluster:
    """The cluster for so many passages.

    is_mapped: fields other than vectors and words stay on the query node's disk, mapped (Milvus: mmap). load: the share
    of the query nodes' cores that other questions keep busy.
    """
    in_memory, on_disk = vector_bytes(index, costs)
    words = costs.words * assume("posting")
    fields = costs.row_bytes - 4 * costs.dimension
    of_passage = in_memory + words + (0 if is_mapped else fields)
    nodes = max(1, math.ceil(passages * of_passage / (assume("node_memory") * assume("memory_used"))))
    rows_in_segment = assume("disk_segment" if index == "DISKANN" else "segment") / costs.row_bytes
    segments = max(1, math.ceil(passages / rows_in_segment))
    build = costs.build_s(min(passages, rows_in_segment)) * (assume("vamana") if index == "DISKANN" else 1)
    index_bytes = assume("sector") if index == "DISKANN" else in_memory
    object_bytes = passages * (costs.row_bytes * assume("leftover") + index_bytes + words)
    times = simulate(nodes, segments, segment_s(index, min(passages, rows_in_segment), costs), load)
    return Cluster(
        passages=passages,
        index=index,
        shards=max(1, math.ceil(passages * costs.row_bytes / assume("shard"))),
        segments=segments,
        nodes=nodes,
        memory_gb=passages * of_passage / GB,
        vectors_gb=passages * in_memory / GB,
        local_disk_gb=passages * (on_disk + (fields if is_mapped else 0)) / GB,
        object_gb=object_bytes / GB,
        records_gb=passages * costs.record_bytes / GB,
        raw_disk_gb=(object_bytes + passages * costs.record_bytes) * assume("copies") / GB,
        build_core_h=passages * build * assume("merges") / 3600,
        p50_ms=float(np.percentile(times, 50)) * 1000,
        p95_ms=float(np.percentile(times, 95)) * 1000,
    )


def segment_s(index: Index, rows: float, costs: UnitCosts) -> float:
    """Seconds of one core for a search of a segment of so many rows."""
    if index == "DISKANN":
        return costs.search_s(rows) * assume("pq_speed") / 2 + assume("disk_reads") / 4 * assume("read_s")
    return costs.search_s(rows) * {"HNSW": 1.0, "HNSW_SQ": assume("sq_speed"), "HNSW_PQ": assume("pq_speed")}[index]


def simulate(
    nodes: int, segments: int, search_s: float, load: float, questions: int = 200, seed: int = 1
) -> list[float]:
    """Seconds from a question to its candidates and texts, for questions that arrive at random.

    Each question goes to all nodes. A node has cores, and a queue of segments to search: those of the questions before
    come first. The question's search ends with the slowest node. Before it the state of the library is read with
    Strong, and reads by key follow, one after the other.

    load: the share of the cores that is busy, from which the rate of questions follows.
    """
    rng = np.random.default_rng(seed)
    cores = int(assume("node_cores"))
    of_node = [segments // nodes + (place < segments % nodes) for place in range(nodes)]
    work_s = max(of_node) * search_s / cores  # of a question, on the fullest node
    arrivals = np.cumsum(rng.exponential(work_s / load, questions))
    ends = np.zeros(questions)
    for count in of_node:
        free = [0.0] * cores
        takes = search_s * _lognormal(rng, assume("spread"), (questions, max(1, count)))
        hops = assume("hop_s") * _lognormal(rng, assume("hop_spread"), (questions, 2))
        for place, came in enumerate(arrivals):
            began, last = came + hops[place, 0], 0.0
            for seconds in takes[place]:
                end = max(began, heapq.heappop(free)) + seconds
                heapq.heappush(free, end)
                last = max(last, end)
            ends[place] = max(ends[place], last + hops[place, 1])
    lookups = int(assume("lookups"))
    reads = assume("lookup_s") + 2 * assume("hop_s") * _lognormal(rng, assume("hop_spread"), (questions, lookups))
    waits = rng.uniform(0, assume("tick_s"), questions)  # for the state of the library
    return [float(seconds) for seconds in ends - arrivals + reads.sum(axis=1) + waits]


def _lognormal(rng: np.random.Generator, sigma: float, shape: tuple[int, ...]) -> Any:
    """Factors with a mean of 1."""
    return rng.lognormal(-(sigma**2) / 2, sigma, shape)


@dataclass(frozen=True, slots=True)
class Ingest:
    """Hours to put all passages in."""

    parse_h: float
    embed_builtin_h: float
    embed_gpu_h: float
    embed_cpu_h: float
    put_h: float
    core_hours: float  # parsing, the built-in embedder, rows and index builds (HNSW)


def reckon_ingest(passages: int, costs: UnitCosts) -> Ingest:
    """Ingest of so many passages, its stages beside each other: the slowest one counts."""
    cores, hosts = assume("ingest_cores"), assume("ollama_hosts")
    build = reckon(passages, "HNSW", costs).build_core_h
    work = passages * (costs.parse_s + costs.embed_s + costs.put_s) / 3600
    return Ingest(
        parse_h=passages * costs.parse_s / cores / 3600,
        embed_builtin_h=passages * costs.embed_s / cores / 3600,
        embed_gpu_h=passages / (assume("ollama_gpu") * hosts) / 3600,
        embed_cpu_h=passages / (assume("ollama_cpu") * hosts) / 3600,
        put_h=passages * costs.put_s / assume("writers") / 3600,
        core_hours=work + build,
    )


@dataclass(frozen=True, slots=True)
class Reread:
    """What each server of Folio reads again after each ingest."""

    papers: int
    rows_mb: float  # of the collection of papers
    statistics_mb: float  # term statistics: the papers that were counted, and how many passages have each word
    seconds: float


def reckon_reread(passages: int, costs: UnitCosts) -> Reread:
    """Folio counts passages and papers by reading the rows of all papers, whenever another generation begins.

    Words: Heaps's law, k * n ** b for n words of text.
    """
    papers = round(passages / costs.passages_per_paper)
    words = assume("heaps_k") * (passages * costs.words) ** assume("heaps_b")
    rows = papers * costs.paper_bytes
    statistics = papers * assume("version_bytes") + words * assume("word_bytes")
    requests = papers / assume("rows_at_once") + statistics / assume("text_bytes") / assume("rows_at_once")
    seconds = requests * (assume("lookup_s") + 2 * assume("hop_s")) + (rows + statistics) / assume("read_rate")
    return Reread(papers, rows / 1e6, statistics / 1e6, seconds)


def reckon_lite(passages: int, base: dict[str, Any]) -> dict[str, float]:
    """What Milvus Lite takes for so many passages, from what it took for the base: all in proportion.

    base: what milvus.py kept of its build. The tests compare the result with what was measured.
    """
    times = passages / base["chunks"]
    records = base["disk_mb"]["records"]
    return {
        "disk_mb": (sum(base["disk_mb"].values()) - records) * times,
        "records_mb": records * times,
        "add_processor_s": base["add_processor_s"] * times,
    }


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *(list(map(str, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cluster_table(sizes: Sequence[int], costs: UnitCosts) -> str:
    """What a library takes, a row for each size and index."""
    heads = ("passages", "index", "query nodes", "memory", "of it vectors", "their disks", "object store", "records")
    rows = []
    for passages in sizes:
        for index in INDEXES:
            of = reckon(passages, index, costs)
            gigabytes = (of.memory_gb, of.vectors_gb, of.local_disk_gb, of.object_gb, of.records_gb)
            times = (f"{of.build_core_h:,.0f}", f"{of.p50_ms:.0f}, {of.p95_ms:.0f} ms", f"{of.nodes * MONTH_H:,}")
            rows.append((_power(passages), index, of.nodes, *map(_tb, gigabytes), *times))
    return table((*heads, "index build, core-hours", "a question: p50, p95", "node-hours a month"), rows)


def ingest_table(sizes: Sequence[int], costs: UnitCosts) -> str:
    """Hours to put everything in."""
    rows = []
    for passages in sizes:
        of = reckon_ingest(passages, costs)
        hours = (of.parse_h, of.embed_builtin_h, of.embed_gpu_h, of.embed_cpu_h, of.put_h)
        rows.append((_power(passages), *(f"{each:,.0f} h" for each in hours), f"{of.core_hours:,.0f}"))
    heads = ("passages", "parse", "embed: built-in", "Ollama with a GPU", "Ollama without", "put", "core-hours, all")
    return table(heads, rows)


def reread_table(sizes: Sequence[int], costs: UnitCosts) -> str:
    """What each server reads after each ingest."""
    rows = []
    for passages in sizes:
        of = reckon_reread(passages, costs)
        megabytes = (f"{of.rows_mb:,.0f} MB", f"{of.statistics_mb:,.0f} MB")
        rows.append((_power(passages), f"{of.papers:,}", *megabytes, f"{of.seconds:,.0f} s"))
    return table(("passages", "papers", "their rows", "term statistics", "read in"), rows)


def assumption_table() -> str:
    """Everything that was not measured."""
    rows = [(each.unit, f"{each.value:g}", each.source, f"{each.factor:g}") for each in ASSUMPTIONS.values()]
    return table(("assumption", "value", "source", "may be off by a factor of"), rows)


def tables(sizes: Sequence[int], costs: UnitCosts) -> str:
    """All results as Markdown."""
    received, sent = costs.received_bytes / 1e6, costs.sent_bytes / 1e3
    wire = f"Between Folio and Milvus, a question sends {sent:.0f} kB and receives {received:.1f} MB (measured)."
    smaller = [10**6, 10**7]
    found = (cluster_table(sizes, costs), ingest_table(sizes, costs), reread_table([*smaller, *sizes], costs))
    return "\n\n".join((*found, wire, assumption_table()))


def _power(passages: int) -> str:
    return f"10^{math.log10(passages):.3g}"


def _tb(gigabytes: float) -> str:
    return f"{gigabytes / 1000:.1f} TB" if gigabytes >= 1000 else f"{gigabytes:.0f} GB"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Reckon what a large library takes in a Milvus cluster.")
    parser.add_argument("--passages", type=float, nargs="+", default=SIZES, metavar="N", help="sizes")
    arguments = parser.parse_args(argv)
    print(tables([int(each) for each in arguments.passages], measured_costs()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
