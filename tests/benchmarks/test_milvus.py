"""The comparison with Milvus Lite: its table, and the proxy that counts what a question sends."""

from __future__ import annotations

import socket
import threading
from typing import Any

from benchmarks import loopback_proxy, milvus_table


def test_the_table_has_what_was_measured_and_gaps_for_the_rest() -> None:
    built = {"add_s": 5.0, "update_s": 2.0, "peak_mb": 200.4, "disk_mb": {"library.sqlite": 80.0}, "load": [1.2, 2.6]}
    lite = {**built, "add_s": 50.0, "add_processor_s": 30.0, "disk_mb": {"cluster.db": 70.0, "records": 60.0}}
    own = {"open_s": 1.0, "resident_mb": 100.0, "recall": 0.9975}
    times = {f"{mode}_{at}_ms": value for mode in ("dense", "lexical", "hybrid") for at, value in _TIMES}
    asked: dict[str, Any] = {
        "load": [3.0, 4.0],
        "local": {**own, **times},
        "milvus": {**own, **{name: 12 * value for name, value in times.items()}},
        "lexical_in_common": 1.0,
        "hybrid_in_common": 0.999,
    }
    measured = {"sizes": {"12000": {"local": built, "milvus": lite, "asked": asked}, "60000": {"local": built}}}
    head, _, *rows = milvus_table.markdown(measured).splitlines()
    assert head == "| what | 12,000 local | 12,000 milvus | 60,000 local | 60,000 milvus |"
    cells = {row.split(" | ")[0].removeprefix("| "): row.split(" | ")[1:] for row in rows}
    assert cells["papers in, without embedding; of it processor"] == ["5 s", "50 s; 30 s", "5 s", " |"]
    assert cells["disk"][:2] == ["80 MB", "70 MB"]
    assert cells["disk, records"][:2] == ["", "60 MB"]
    assert cells["hybrid: p50, p95"][:2] == ["10, 20 ms", "120, 240 ms"]
    assert cells["hybrid: times as long as local, p50"][:2] == ["", "12.0"]
    assert cells["hybrid: processor, p50"][:2] == ["5 ms", "60 ms"]
    assert cells["dense: exact 20 nearest found"][1] == "0.9975"


_TIMES = (("p50", 10.0), ("p95", 20.0), ("processor", 5.0))


def test_the_proxy_counts_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(100) == b"question"
                connection.sendall(b"a longer answer")

        answering = threading.Thread(target=answer)
        answering.start()
        with (
            loopback_proxy.serving(server.getsockname()[1]) as proxy,
            socket.create_connection(("127.0.0.1", proxy.port)) as client,
        ):
            client.sendall(b"question")
            assert b"".join(iter(lambda: client.recv(100), b"")) == b"a longer answer"
            assert proxy.counted() == (8, 15)
        answering.join()
