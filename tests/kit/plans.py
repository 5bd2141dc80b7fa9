"""Plans to be tried: functions of a module, so that another process can import them. Most have something wrong."""

from __future__ import annotations

import os
import random
import time
import uuid
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from itertools import count

import boto3

from idempotent_consumer import (
    Attr,
    Check,
    Delete,
    Event,
    Notification,
    Plan,
    Put,
    Reject,
    Retry,
    Supersede,
    Update,
    WriteMode,
)

NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
STARTED = uuid.uuid4().hex

_numbers = count(1)
_seen: set[str] = set()
_last: list[str] = []
_first: dict[str, str] = {}


# --- good ones


def take(event: Event) -> Plan:
    """The order's row, and as much less in stock; not below nothing."""
    quantity = event.data["quantity"]
    return Plan(
        [
            Put("orders", {"id": event.id, "quantity": quantity}),
            Update(
                "stock",
                {"sku": event.data["sku"]},
                add={"free": -quantity},
                condition=Attr("free").gte(quantity),
                otherwise=Reject("out-of-stock", "free is less than quantity"),
            ),
        ],
        Notification({"order": event.id}, {"kind": "order-taken"}),
    )


def count_only(event: Event) -> Plan:
    return Plan([Update("counts", {"page": event.data["page"]}, add={"visits": 1, "seconds": event.data["seconds"]})])


def announce(event: Event) -> Plan:
    """As many notifications as the event says."""
    return Plan(notifications=[Notification(f"{event.id}/{n}", {"size": n}) for n in range(event.data["times"])])


def nothing(_event: Event) -> Plan:
    return Plan()


def ship(event: Event) -> Plan:
    """Waits for the order's row, which another event writes."""
    if event.data["kind"] == "order":
        return Plan([Put("orders", {"id": event.data["order"]}, key="id")])
    return Plan(
        [
            Put("parcels", {"parcel": event.id}, key="parcel"),
            Check("orders", {"id": event.data["order"]}, Attr("id").exists(), otherwise=Retry("order-not-there")),
        ]
    )


def price(event: Event) -> Plan:
    version = event.data["version"]
    is_newer = Attr("version").not_exists() | Attr("version").lt(version)
    row = {"sku": "A", "version": version}
    put = Put("prices", row, WriteMode.UPSERT, key="sku", condition=is_newer, otherwise=Supersede("newer-stored"))
    return Plan([put], Notification(version))


def move(event: Event) -> Plan:
    """Takes from the stock what is there, or adds to it."""
    quantity = event.data["quantity"]
    if quantity < 0:
        return Plan([Update("stock", {"sku": "A"}, add={"free": -quantity})])
    return Plan(
        [
            Update(
                "stock",
                {"sku": "A"},
                add={"free": -quantity},
                set={"last": event.id},
                condition=Attr("free").gte(quantity),
                otherwise=Reject("out-of-stock"),
            )
        ]
    )


def one_row(event: Event) -> Plan:
    """All events insert the same row."""
    return Plan([Put("rows", {"id": "the-one", "by": event.data["by"]})])


def one_row_or_taken(event: Event) -> Plan:
    return Plan([Put("rows", {"id": "the-one", "by": event.data["by"]}, otherwise=Reject("taken"))])


def rename(event: Event) -> Plan:
    """The last one wins, so the order matters."""
    return Plan([Update("names", {"id": "n"}, set={"name": event.data["name"]})])


def remove(event: Event) -> Plan:
    return Plan([Delete("rows", {"id": event.data["row"]}, condition=Attr("id").exists())])


def many(event: Event) -> Plan:
    return Plan([Put("rows", {"id": f"{event.id}/{n}"}) for n in range(event.data["times"])])


def one_row_twice(_event: Event) -> Plan:
    return Plan([Update("names", {"id": "n"}, set={"name": "a"}), Update("names", {"id": "n"}, set={"other": "b"})])


def stable(event: Event) -> Plan:
    """An id made of the event's, a set whose order does not show, a time that the event brings."""
    row = {
        "id": str(uuid.uuid5(NAMESPACE, event.id)),
        "tags": sorted(set(event.data["tags"])),
        "day": date.fromisoformat(event.data["day"]).strftime("%A"),
    }
    return Plan([Put("rows", row)])


def rejecting(event: Event) -> Plan:
    if event.data["quantity"] < 1:
        raise Reject("no-quantity", "quantity is below 1")
    return Plan([Put("rows", {"id": event.id})])


# --- impure ones


def by_time(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "at": int(time.time())})])


def by_date(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id})], Notification({"day": date.today().isoformat()}))


def by_deadline(event: Event) -> Plan:
    if datetime.now() > datetime.fromisoformat(event.data["until"]):
        raise Reject("too-late")
    return Plan([Put("rows", {"id": event.id})])


def by_half_hour(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "half": datetime.now().minute // 30})])


def by_last_day(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "is_last": datetime.now().day == 31})])


def by_random(event: Event) -> Plan:
    """Comes out the same half of the time."""
    return Plan([Put("rows", {"id": event.id, "side": random.choice(["heads", "tails"])})])


def by_uuid(event: Event) -> Plan:
    return Plan([Put("rows", {"id": str(uuid.uuid4()), "order": event.id})])


def by_counter(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "number": next(_numbers)})])


def by_seen(event: Event) -> Plan:
    """Tells duplicates by itself, until the process ends."""
    if event.id in _seen:
        return Plan()
    _seen.add(event.id)
    return Plan([Put("rows", {"id": event.id})])


def by_last(event: Event) -> Plan:
    """Remembers the event before."""
    _last.append(event.id)
    return Plan([Put("rows", {"id": event.id, "after": _last[-2] if len(_last) > 1 else ""})])


def by_cache(event: Event) -> Plan:
    """Remembers the first event of a sku."""
    return Plan([Put("rows", {"id": event.id, "first": _first.setdefault(event.data["sku"], event.id)})])


def by_memo(event: Event) -> Plan:
    """As `by_cache`, without a variable of its own."""
    _memo(event.data["sku"]).setdefault("id", event.id)
    return Plan([Put("rows", {"id": event.id, "first": _memo(event.data["sku"])["id"]})])


@cache
def _memo(_sku: str) -> dict[str, str]:
    return {}


def by_set(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "tags": list(set(event.data["tags"]))})])


def by_import(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "worker": STARTED})])


def by_process(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "worker": os.getpid()})])


def changing(event: Event) -> Plan:
    tags = event.data.pop("tags")
    return Plan([Put("rows", {"id": event.id, "tags": tags})])


def sorting(event: Event) -> Plan:
    event.data["tags"].sort()
    return Plan([Put("rows", {"id": event.id, "tags": event.data["tags"]})])


def looking_up(event: Event) -> Plan:
    row = boto3.client("dynamodb", region_name="us-east-1").get_item(TableName="rows", Key={"id": {"S": event.id}})
    return Plan([Put("rows", {"id": event.id, "known": "Item" in row})])


# --- ones that are no plan


def raising(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "total": event.data["totl"]})])


def forgetting(event: Event) -> Plan:
    if event.data["quantity"] < 1:
        return Plan()
    # as a user without a type checker forgets it
    return None  # type: ignore[return-value]


def senseless(_event: Event) -> Plan:
    return Plan([Update("rows", {"id": "a"})])


def without_key(event: Event) -> Plan:
    return Plan([Put("orders", {"id": event.id}), Put("lines", {"line": event.id})])


def with_float(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "half": float(event.data["total"]) / 2})])


def with_own_name(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "event_id": "x"})])


def with_missing_map(event: Event) -> Plan:
    return Plan([Update("rows", {"id": event.id}, set={"address.city": "Bern"})])


def with_number_as_id(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.data["number"]})])


def with_decimal(event: Event) -> Plan:
    return Plan([Put("rows", {"id": event.id, "half": event.data["total"] / Decimal(2)})])
