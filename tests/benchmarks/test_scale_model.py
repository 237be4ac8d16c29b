"""The model of large libraries: it agrees with what was measured, and grows as it must."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import scale_model
from benchmarks.scale_model import INDEXES, UnitCosts, measured_costs, reckon, reckon_ingest, reckon_lite, simulate
from tests.helpers.paths import ROOT

MEASURED: dict[str, Any] = json.loads((ROOT / "benchmarks" / "milvus-measured.json").read_text(encoding="utf-8"))
BASE = MEASURED["sizes"][MEASURED["base"]]["milvus"]
FACTOR = 1.5  # how far a figure may be from what was measured


@pytest.fixture(scope="module")
def costs() -> UnitCosts:
    return measured_costs()


@pytest.mark.parametrize("size", [size for size in MEASURED["sizes"] if size != MEASURED["base"]])
def test_milvus_lite_is_as_large_as_reckoned_from_12_000_passages(size: str) -> None:
    built = MEASURED["sizes"][size].get("milvus")
    if not built:
        pytest.skip(f"{size} passages were not measured in Milvus Lite")
    reckoned = reckon_lite(int(size), BASE)
    records = built["disk_mb"]["records"]
    assert reckoned["disk_mb"] == pytest.approx(sum(built["disk_mb"].values()) - records, rel=FACTOR - 1)
    assert reckoned["records_mb"] == pytest.approx(records, rel=FACTOR - 1)


def test_the_model_agrees_with_what_was_measured_at_232_523_passages(costs: UnitCosts) -> None:
    built = MEASURED["sizes"]["232523"].get("milvus")
    if not built:
        pytest.skip("232,523 passages were not measured in Milvus Lite")
    found = reckon(232_523, "HNSW", costs)
    assert (found.nodes, found.shards) == (1, 1)
    records = built["disk_mb"]["records"]
    assert found.records_gb * 1e9 / 2**20 == pytest.approx(records, rel=FACTOR - 1)
    # The model counts what merged segments leave behind; Lite deletes it at once.
    kept = found.object_gb - (scale_model.assume("leftover") - 1) * 232_523 * costs.row_bytes / 1e9
    disk = sum(built["disk_mb"].values()) - records
    assert 1 / 2.5 < kept * 1e9 / 2**20 / disk < 2.5


def test_a_vector_in_a_graph_is_as_large_as_the_formula_says(costs: UnitCosts) -> None:
    # hnswlib and FAISS: 2 * M links of 4 bytes on the lowest level, and M on a share of 1 / (M - 1) above
    assert costs.link_bytes == pytest.approx(4 * (2 * 16 + 16 / 15), rel=0.2)


@pytest.mark.parametrize("index", INDEXES)
def test_ten_times_the_passages_take_ten_times_the_space(costs: UnitCosts, index: scale_model.Index) -> None:
    small, large = reckon(10**6, index, costs), reckon(10**7, index, costs)
    for name in ("memory_gb", "local_disk_gb", "object_gb", "records_gb", "segments"):
        assert getattr(large, name) == pytest.approx(10 * getattr(small, name), rel=0.05), name
    assert large.nodes <= 10 * small.nodes
    ingest = reckon_ingest(10**7, costs)
    assert ingest.parse_h == pytest.approx(10 * reckon_ingest(10**6, costs).parse_h)


def test_each_index_takes_less_memory_than_the_one_before(costs: UnitCosts) -> None:
    memory = [reckon(10**6, index, costs).vectors_gb for index in ("HNSW", "HNSW_SQ", "DISKANN", "HNSW_PQ")]
    assert memory == sorted(memory, reverse=True)
    mapped, held = (reckon(10**6, "HNSW", costs, is_mapped=is_mapped) for is_mapped in (True, False))
    assert mapped.memory_gb < held.memory_gb


def test_a_question_waits_for_the_slowest_node_and_for_others() -> None:
    def middle(nodes: int, load: float) -> float:
        return sorted(simulate(nodes, 10 * nodes, 2e-3, load, questions=60))[30]

    alone = middle(1, 0.1)
    assert alone > 2e-3 + 10 * (scale_model.assume("lookup_s") + scale_model.assume("hop_s"))  # a segment, and reads
    assert middle(60, 0.1) > alone
    assert middle(1, 0.9) > alone
