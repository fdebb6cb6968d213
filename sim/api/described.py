"""What may stand in files, and what stands in tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["columns", "schema"]


def schema(of: str = "scenario") -> dict[str, Any]:
    """The JSON Schema of scenarios, or of files of sweeps (``sim.schema("sweep")``).  ValueError: of neither."""
    from sim.scenario.schemas import schema_text
    from sim.sweeps.file.document import Sweep

    texts = {"scenario": schema_text, "sweep": lambda: schema_text(Sweep, "ckptsim sweep")}
    if of not in texts:
        raise ValueError(f"expected {' or '.join(texts)}, not '{of}'")
    found: dict[str, Any] = json.loads(texts[of]())
    return found


def columns() -> pd.DataFrame:
    """A row per column of all result tables: `table`, `column`, `unit`, `meaning`; `results` and `runs` are of sweeps."""
    import pandas as pd

    from sim.cells.described import described

    rows = [(table, *row) for table, found in described().items() for row in found]
    return pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])
