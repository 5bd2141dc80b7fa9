"""What a million events cost on AWS: the table of the README.

Prices: AWS's of us-east-1, in US dollars, on demand, without free tiers, as published in 2025. Calls and units are
those of the README's comparison; durations and log sizes are assumed, and small beside the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MILLION = 1_000_000
WRITE_UNIT, READ_UNIT = 0.625 / MILLION, 0.125 / MILLION
# Lambda's poller receives a batch and deletes it.
SQS_REQUEST, SQS_REQUESTS_PER_CALL = 0.40 / MILLION, 2
LAMBDA_REQUEST, LAMBDA_GB_SECOND, LAMBDA_GB = 0.20 / MILLION, 0.0000133334, 0.5
# A batch of up to ten messages and 64 KB is one request.
SNS_REQUEST = 0.50 / MILLION
LOG_GB, LOG_GB_PER_CALL = 0.50, 1 / MILLION
TRACE, TRACED = 5 / MILLION, 0.05
MONTHLY = {"metric": 0.30, "alarm": 0.10, "composite alarm": 0.50, "dashboard": 3.00}


@dataclass(frozen=True)
class Case:
    """An event's own cost, and that of the call it shares. batch: events in a call; seconds: how long a call takes."""

    title: str
    batch: int
    seconds: float
    write_units: float
    read_units: float
    publishes: int

    def million(self) -> Mapping[str, float]:
        """Dollars for a million events, by what they are paid for."""
        calls = MILLION / self.batch
        return {
            "DynamoDB": MILLION * (self.write_units * WRITE_UNIT + self.read_units * READ_UNIT),
            "SQS, receiving and deleting": calls * SQS_REQUESTS_PER_CALL * SQS_REQUEST,
            "Lambda, 512 MB": calls * (LAMBDA_REQUEST + self.seconds * LAMBDA_GB * LAMBDA_GB_SECOND),
            "SNS, publishing": calls * self.publishes * SNS_REQUEST,
            "logs, and traces of 5 % of the calls": calls * (LOG_GB * LOG_GB_PER_CALL + TRACE * TRACED),
        }


def cases(write_units: float, read_units: float) -> list[Case]:
    """The README's columns. write_units: of a new event. read_units: of one that is delivered again."""
    return [
        Case("new, ten in a call", 10, 0.050, write_units, 0, 1),
        Case("new, one by one", 1, 0.030, write_units, 0, 1),
        Case("delivered again, ten in a call", 10, 0.020, 0, read_units, 0),
    ]


def table(write_units: float, read_units: float) -> str:
    """The table, as Markdown."""
    columns = cases(write_units, read_units)
    sums = [case.million() for case in columns]
    lines = [
        "| $ per million events | " + " | ".join(case.title for case in columns) + " |",
        "|---|" + "---:|" * len(columns),
        *(f"| {what} | " + " | ".join(_dollars(found[what]) for found in sums) + " |" for what in sums[0]),
        "| **together** | " + " | ".join(f"**{sum(found.values()):.2f}**" for found in sums) + " |",
    ]
    return "\n".join(lines) + "\n"


def monthly(metrics: int, alarms: int) -> float:
    """Dollars a month for what a consumer's CloudWatch costs without a message, its dashboard left out."""
    return metrics * MONTHLY["metric"] + alarms * MONTHLY["alarm"] + MONTHLY["composite alarm"]


def _dollars(amount: float) -> str:
    return f"{amount:.2f}" if amount else "–"
