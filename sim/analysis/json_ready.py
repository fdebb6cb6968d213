"""Values as JSON has them, which knows neither NaN nor infinity."""

from __future__ import annotations

import math
from typing import Any


def json_ready(value: Any) -> Any:
    """The same with null for numbers that are none; keys are texts, tuples are lists."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
