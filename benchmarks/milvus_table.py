"""What milvus.py measured, as a table: a row for each figure, a column for each store and size. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def markdown(measured: Mapping[str, Any]) -> str:
    """measured: what milvus.measured returns. A size that a store was not built at has an empty column."""
    heads, columns = ["what"], []
    for size, of in measured["sizes"].items():
        for store in ("local", "milvus"):
            heads.append(f"{int(size):,} {store}")
            columns.append(_cells(of.get(store, {}), of.get("asked", {}), store))
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def _cells(built: Mapping[str, Any], asked: Mapping[str, Any], store: str) -> dict[str, str]:
    cells = {}
    if built:
        cells["papers in, without embedding; of it processor"] = _seconds(built, "add")
        cells["indexes, once; of it processor"] = _seconds(built, "update")
        cells["load of the machine then"] = " to ".join(f"{load:.0f}" for load in built["load"])
        cells["peak memory while building"] = f"{built['peak_mb']:,.0f} MB"
        records = built["disk_mb"].get("records", 0.0)
        cells["disk"] = f"{sum(built['disk_mb'].values()) - records:,.0f} MB"
        cells["disk, records"] = f"{records:,.0f} MB" if records else ""
    if own := asked.get(store):
        cells["load of the machine, questions"] = " to ".join(f"{load:.0f}" for load in asked["load"])
        cells["opening, first question"] = f"{own['open_s']:.1f} s"
        cells["memory while asked"] = f"{own['resident_mb']:,.0f} MB"
        cells["dense: exact 20 nearest found"] = f"{own['recall']:.4f}"
        for mode in ("dense", "lexical", "hybrid"):
            cells[f"{mode}: p50, p95"] = f"{own[f'{mode}_p50_ms']:,.0f}, {own[f'{mode}_p95_ms']:,.0f} ms"
            cells[f"{mode}: processor, p50"] = f"{own[f'{mode}_processor_ms']:,.0f} ms"
            for what, name in (("p50", "p50_ms"), ("processor", "processor_ms")):
                ratio = asked["milvus"][f"{mode}_{name}"] / asked["local"][f"{mode}_{name}"]
                cells[f"{mode}: times as long as local, {what}"] = f"{ratio:.1f}" if store == "milvus" else ""
        for mode in ("lexical", "hybrid"):
            common = asked[f"{mode}_in_common"]
            cells[f"{mode}: of local's 20, found"] = f"{common:.4f}" if store == "milvus" else ""
    return cells


def _seconds(built: Mapping[str, Any], what: str) -> str:
    wall, processor = built[f"{what}_s"], built.get(f"{what}_processor_s")
    return f"{wall:.0f} s" if processor is None else f"{wall:.0f} s; {processor:.0f} s"
