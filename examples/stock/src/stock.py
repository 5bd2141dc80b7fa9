"""Takes orders: a row for each line, the quantities off the stock, and word of it; or nothing of all that."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from idempotent_consumer import Attr, Event, Notification, Plan, Put, Reject, Update, pipeline

# As main.tf names them.
ORDER_LINES = "stock_order_lines"
STOCK = "stock"


def plan(event: Event) -> Plan:
    """What one order changes."""
    lines = list(read_lines(event.data))
    # One transaction writes a row once, and an order may name an article in two lines.
    quantities: Counter[str] = Counter()
    for line in lines:
        quantities[line["sku"]] += line["quantity"]
    return Plan(
        writes=[
            *(Put(ORDER_LINES, {"order_id": event.id, **line}) for line in lines),
            *(take(sku, quantity) for sku, quantity in quantities.items()),
        ],
        notification=Notification({"order_id": event.id, "articles": dict(quantities)}, {"kind": "order-taken"}),
    )


def read_lines(order: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of an order, numbered from 1. Raises Reject: another delivery would not make them better."""
    lines = order.get("lines")
    if not isinstance(lines, list) or not lines:
        raise Reject("order-without-lines")
    for number, line in enumerate(lines, 1):
        match line:
            case {"sku": str(sku), "quantity": int(quantity)} if sku and quantity > 0 and quantity is not True:
                yield {"line": number, "sku": sku, "quantity": quantity}
            case _:
                raise Reject("order-line-invalid", f"line {number} has no sku, or no quantity of 1 or more")


def take(sku: str, quantity: int) -> Update:
    """Takes a quantity off the stock, if so much is free."""
    return Update(
        STOCK,
        key={"sku": sku},
        add={"free": -quantity},
        condition=Attr("free").gte(quantity),
        otherwise=Reject("out-of-stock", sku),
    )


handler = pipeline(plan)
