"""The rank of a process that its environment does not tell: its process group was made by hand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from breakscan.record.records import RankSeen


class RankWatch:
    """Looks at the structured trace: torch notes the rank as soon as there is a process group."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] | None = None

    def news(self, metadata: Mapping[str, Any]) -> RankSeen | None:
        """The rank, once a process."""
        rank = metadata.get("rank")
        seen = (os.getpid(), rank)
        if not isinstance(rank, int) or seen == self._seen:
            return None
        self._seen = (os.getpid(), rank)
        if os.environ.get("RANK") == str(rank):
            return None
        from torch import distributed

        return RankSeen(rank, distributed.get_world_size())
