"""The tables that the README shows."""

from __future__ import annotations

from benchmarks.report import comparison, markdown, published
from tests.benchmarks.support import report


def test_the_markdown_holds_both_tables_and_how_they_were_made() -> None:
    assert markdown(report()) == (
        "| | this module | Powertools 3.37.0 | |\n"
        "|---|---:|---:|---:|\n"
        "| AWS calls, 10 new events | 3 | 40 | 13.3× fewer |\n"
        "| AWS calls, 10 redelivered | 1 | 10 | 10.0× fewer |\n"
        "| AWS calls, 5 new, 5 redelivered | 4 | 25 | 6.2× fewer |\n"
        "| AWS calls, 5 new, 5 sent twice | 5 | 25 | 5.0× fewer |\n"
        "| DynamoDB units, new event of 0.3 KB | 5 write | 3 write |  |\n"
        "| DynamoDB units, new event of 2 KB | 13 write | 4 write |  |\n"
        "| DynamoDB units, redelivered event | 1 read | 1 write |  |\n"
        "| records per CPU second, new, batches of 10 | 4,000 | 700 | 5.7× more |\n"
        "| records per CPU second, redelivered, batches of 10 | 10,000 | 2,500 | 4.0× more |\n"
        "| a batch of 10 new events at 5 ms a call | 18 ms | 234 ms | 13.0× faster |\n"
        "| messages drained per second, on the emulator | 800 | 200 | 4.0× more |\n"
        "| cold start: imports and clients | 180 ms | 250 ms | 0.72 of it |\n"
        "| the same, the peer with metrics and traces | 180 ms | 300 ms | 0.60 of it |\n"
        "| zip, with bytecode for the default runtime | 512 KB | 1,024 KB |  |\n"
        "\n"
        "| new events in a batch of | records per CPU second | the peer's | peak memory | the peer's |\n"
        "|---:|---:|---:|---:|---:|\n"
        "| 1 | 4,000 | 700 | +12.0 MB | +1.5 MB |\n"
        "| 10 | 4,000 | 700 | +12.0 MB | +1.5 MB |\n"
        "| 100 | 4,000 | 700 | +12.0 MB | +1.5 MB |\n"
        "| 1,000 | 4,000 | 700 | +12.0 MB | +1.5 MB |\n"
        "| 10,000 | 4,000 | 700 | +12.0 MB | +1.5 MB |\n"
        "\n"
        "`make bench` on 2026-11-30: medians on 2 cores, in the first table of interleaved runs, Python 3.13.0, "
        "boto3 1.43.106, botocore 1.43.106; ratios are medians of each turn's ratio.\n"
        "\n"
        "The peer writes its idempotency record, the row and the notification one after the other, and keeps the "
        "notification nowhere: where a process dies in between, a row is there that nobody hears of, until the message "
        "comes back and all is done again. This module writes all three in one transaction, whose writes count twice: "
        "in DynamoDB units 5 write instead of 3 write for a new event of 0.3 KB, 13 write instead of 4 write for one "
        "of 2 KB (two for each KB of the row, three for each KB of the ledger row, which holds the notification, and "
        "two for the reconciler's index), 1 read instead of 1 write for a redelivered one.\n"
    )


def test_a_run_of_a_part_shows_that_part() -> None:
    whole = report()
    part = whole | {"details": {"e2e": whole["details"]["e2e"]}}

    assert [(row.what, row.ours, row.peer) for row in comparison(part)] == [
        ("messages drained per second, on the emulator", "800", "200")
    ]


def test_the_tables_are_published_between_their_marks() -> None:
    page = "before\n<!-- make bench -->\nold \\1\n<!-- end of make bench -->\nafter\n"

    assert published(page, report()) == (
        "before\n<!-- make bench -->\n" + markdown(report()) + "<!-- end of make bench -->\nafter\n"
    )
