"""How a trial ended."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """A trial and how it ended."""

    seed: str  # "kills-1-42": all that is random in the trial comes from it
    kind: str
    held: bool
    seconds: float
    main_mb: float  # the most memory that the main process of a command took
    worker_mb: float
    what: str
    failure: str = ""
    cpu_s: float = 0.0  # of all its processes
    commands: list[str] = field(default_factory=list)
