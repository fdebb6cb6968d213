"""A price list of an object store, and what a month of requests and bytes costs by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HOURS_PER_MONTH = 730
"""365.25 days are 12 months of so many hours."""
GB = 1e9
USE = ("put_requests_per_hour", "list_requests_per_hour", "get_requests_per_hour", "stored_bytes", "moved_bytes_per_hour")
"""The columns that a cost is made of."""
COST = "storage_cost_per_month"


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in one currency."""

    put_per_1000: float  # PUT, COPY and POST requests
    list_per_1000: float
    get_per_1000: float  # GET and all others but DELETE, which is free
    stored_per_gb_month: float
    moved_per_gb: float  # into the store and out of it
    currency: str
    source: str  # where the prices are from, and of which day

    def cost_per_month(self, use: Mapping[str, Any]) -> float:
        """The cost of requests and bytes per hour, and of the mean of stored bytes; nan: a value is unknown."""
        puts, lists, gets, stored, moved = (float(use[column]) for column in USE)
        requests = puts * self.put_per_1000 + lists * self.list_per_1000 + gets * self.get_per_1000
        return HOURS_PER_MONTH * (requests / 1000 + moved / GB * self.moved_per_gb) + stored / GB * self.stored_per_gb_month

    def text(self, cost: float) -> str:
        """``12.40 USD``."""
        return f"{cost_text(cost)} {self.currency}"


def cost_text(cost: float) -> str:
    """``12.40``, and from a hundred on ``1,240``."""
    return f"{cost:,.0f}" if cost >= 99.5 else f"{cost:.2f}"


S3_STANDARD = Prices(
    put_per_1000=0.005, list_per_1000=0.005, get_per_1000=0.0004, stored_per_gb_month=0.023, moved_per_gb=0.0, currency="USD",
    source="Amazon S3 Standard, us-east-1, first 50 TB, transfer within the region (guides of 2022, unchecked; --prices has yours)",
)  # fmt: skip
"""Where the user gives no list.

The page of Amazon (aws.amazon.com/s3/pricing) fills its tables by script, so a stored copy of it has no numbers.  Stored bytes are of a
table of July 2022, uploads and lists of a guide without a date; reads are from memory.
"""
