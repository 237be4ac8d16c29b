"""A program: reads 6 papers on two raylets, one of which is killed after the second, and prints how many came.

Apart from the tests, because a process can be connected to one Ray only.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

from folio.ingest.discovery import find_pdfs, hash_files
from folio.ingest.pipeline import Limits
from folio.ingest.queue import EmbeddedPaper
from folio.shared import ray
from folio.shared.ray import Job
from folio.store.fingerprint import Reading
from folio.system.workers import Finished
from tests.helpers.fakes import HashingEmbedder, RecordedProgress, make_pdf
from tests.helpers.paths import ROOT


def main(folder: Path) -> None:
    for number in range(6):
        make_pdf(folder / f"{number}.pdf", "trees", change=f"It is number {number}.")
    files = hash_files(find_pdfs([folder]), RecordedProgress())[0]
    job = Job(
        Reading(100, 20, "fast", False), Limits(1, 60, 2048, 10), HashingEmbedder().identity(), (HashingEmbedder,), 2
    )
    os.environ |= {**ray._SETTINGS, "PYTHONPATH": str(ROOT)}
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    came = []
    for each in ray.RayReader(cluster.address, 2, lambda: job)(iter(files), list):
        if isinstance(each, Finished):
            came.append(each.result)
            if len(came) == 2:
                cluster.remove_node(other, allow_graceful=False)
    sys.stdout.write(f"{sum(isinstance(result, EmbeddedPaper) for result in came)} {len(came)}\n")
    cluster.shutdown()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
