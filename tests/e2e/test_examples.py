"""Every example is applied, fed by its real producer, and destroyed: one emulator and one apply for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from local.emulator import ACCOUNT, REGION, Emulator
from local.faults import Faults
from local.payment_server import PaymentServer
from local.terraform import CHECKOUT
from local.waiting import wait_for
from local.watching import Queue, attribute
from tests.e2e.examples import CONSUMERS, Examples, Rows, apply_examples, build_example, consumer, empty, zip_example
from tests.e2e.operations import Operation
from tests.e2e.permissions import Role, without_policy
from tests.e2e.pipeline import Pipeline, attributes, now_ms
from tests.e2e.test_terraform import ALARM
from tests.e2e.workflows import Workflow

# No JSON: it goes to the dead-letter queue, whatever the example.
WARM_UP = "warm-up"
# A first try that fails costs the visibility timeout of 30 seconds.
wait = partial(wait_for, seconds=100)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("examples") / "emulator.log") as running:
        yield running


@pytest.fixture(scope="session")
def faults(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with Faults(emulator.endpoint, tmp_path_factory.mktemp("examples") / "faults.log") as running:
        yield running


@pytest.fixture(scope="session")
def payment_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentServer]:
    with PaymentServer(tmp_path_factory.mktemp("examples") / "payments.log") as running:
        yield running


@pytest.fixture(scope="session")
def examples(
    emulator: Emulator, faults: Faults, payment_server: PaymentServer, tmp_path_factory: pytest.TempPathFactory
) -> Examples:
    """All examples. All AWS calls of the workers go through `faults`."""
    folder = tmp_path_factory.mktemp("examples")
    variables = {
        "function_environment": {"AWS_ENDPOINT_URL": faults.endpoint},
        "ingestion_package": str(zip_example("ingestion", folder)),
        "payments_package": str(build_example("payments", folder)),
        "provider_url": payment_server.endpoint,
        "stock_package": str(build_example("stock", folder)),
    }
    return apply_examples(folder / "terraform", emulator.endpoint, variables)


@pytest.fixture(scope="session")
def consumers(emulator: Emulator, examples: Examples) -> dict[str, Pipeline]:
    """All consumers, each with a queue that hears its topic, and each of which has run: no test waits for that."""
    running = {name: consumer(emulator, examples, name) for name in CONSUMERS}
    for each in running.values():
        each.record_changes()
        each.send(WARM_UP, group="warm-up")
    for name, each in running.items():
        wait(lambda e=each: e.dead_letters(WARM_UP), f"{name} has run")  # type: ignore[misc]
    return running


@pytest.fixture(scope="session")
def destroyed(examples: Examples, consumers: dict[str, Pipeline], bucket: str, emulator: Emulator) -> Examples:
    """The examples after terraform destroy."""
    for name in (bucket, examples.outputs["ingestion"]["bucket_name"]):
        empty(emulator, name)
    examples.root.destroy()
    return examples


def rows_of(emulator: Emulator, pipeline: Pipeline) -> Rows:
    return Rows(emulator, pipeline.business_table)


# --- orders


def test_orders_stores_and_announces_an_order_once(consumers: dict[str, Pipeline], emulator: Emulator) -> None:
    orders = consumers["orders"]
    orders.send({"id": "o-1", "total": 12.5}, {"id": "o-1", "total": 12.5}, {"id": "o-2", "total": 3})
    orders.wait_until_sent("o-1", "o-2")

    assert rows_of(emulator, orders).with_(id="o-1") == [{"id": "o-1", "total": Decimal("12.5")}]
    assert sorted(orders.business_writes("o-1", "o-2")) == ["o-1", "o-2"]
    (heard,) = orders.steady_notifications("o-1")
    assert json.loads(heard["Body"]) == {"id": "o-1", "total": 12.5}


# --- stock


@pytest.fixture(scope="session")
def stock(emulator: Emulator, examples: Examples, consumers: dict[str, Pipeline]) -> Rows:
    return Rows(emulator, examples.outputs["stock"]["stock_table_name"])


def line(sku: str, quantity: int) -> dict[str, Any]:
    return {"sku": sku, "quantity": quantity}


def test_stock_splits_an_order_into_rows_and_takes_its_quantities_once(
    consumers: dict[str, Pipeline], emulator: Emulator, stock: Rows
) -> None:
    stock.put(sku="split-a", free=10)
    stock.put(sku="split-b", free=5)
    shop = consumers["stock"]
    order = {"id": "split", "lines": [line("split-a", 2), line("split-a", 1), line("split-b", 5)]}
    shop.send(order, order, order)
    shop.wait_until_sent("split")

    # One article stands in two lines.
    assert (stock.get(sku="split-a"), stock.get(sku="split-b")) == (
        {"sku": "split-a", "free": 7},
        {"sku": "split-b", "free": 0},
    )
    lines = rows_of(emulator, shop).with_(order_id="split")
    assert sorted(lines, key=lambda row: row["line"]) == [
        {"order_id": "split", "line": 1, "sku": "split-a", "quantity": 2},
        {"order_id": "split", "line": 2, "sku": "split-a", "quantity": 1},
        {"order_id": "split", "line": 3, "sku": "split-b", "quantity": 5},
    ]
    assert shop.business_writes("split") == 3 * ["split"]
    (heard,) = shop.steady_notifications("split")
    assert json.loads(heard["Body"]) == {"order_id": "split", "articles": {"split-a": 3, "split-b": 5}}
    assert attributes(heard) == {"event_id": "split", "kind": "order-taken"}


def test_stock_dead_letters_an_order_that_is_out_of_stock_and_takes_nothing(
    consumers: dict[str, Pipeline], emulator: Emulator, stock: Rows
) -> None:
    stock.put(sku="short-a", free=10)
    stock.put(sku="short-b", free=1)
    shop = consumers["stock"]
    order = {"id": "short", "lines": [line("short-a", 4), line("short-b", 2)]}
    shop.send(order)
    wait(lambda: shop.dead_letters(order), "a dead letter")

    (letter,) = shop.dead_letters(order)
    assert attributes(letter) == {"dead_letter_reason": "out-of-stock", "dead_letter_detail": "short-b"}
    assert (stock.get(sku="short-a"), stock.get(sku="short-b")) == (
        {"sku": "short-a", "free": 10},
        {"sku": "short-b", "free": 1},
    )
    assert rows_of(emulator, shop).with_(order_id="short") == []
    assert shop.ledger_row("short") is None
    assert shop.notifications("short") == []


def test_stock_takes_the_rest_of_an_article_and_not_more(consumers: dict[str, Pipeline], stock: Rows) -> None:
    stock.put(sku="rest", free=3)
    shop = consumers["stock"]
    orders = [{"id": f"rest-{number}", "lines": [line("rest", 2)]} for number in range(4)]
    shop.send(*orders)
    wait(lambda: len(shop.dead_letters(*orders)) == 3, "three of four orders are out of stock")
    shop.wait_until_drained()

    assert {attributes(letter)["dead_letter_reason"] for letter in shop.dead_letters(*orders)} == {"out-of-stock"}
    assert stock.get(sku="rest") == {"sku": "rest", "free": 1}


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ({"id": "bad-1", "lines": []}, "order-without-lines"),
        ({"id": "bad-2"}, "order-without-lines"),
        ({"id": "bad-3", "lines": [{"sku": "bad", "quantity": 1}, {"sku": "bad"}]}, "order-line-invalid"),
        ({"id": "bad-4", "lines": [{"sku": "bad", "quantity": -1}]}, "order-line-invalid"),
    ],
)
def test_stock_dead_letters_an_order_that_makes_no_sense(
    consumers: dict[str, Pipeline], stock: Rows, order: dict[str, Any], reason: str
) -> None:
    stock.put(sku="bad", free=9)
    shop = consumers["stock"]
    shop.send(order)
    wait(lambda: shop.dead_letters(order), "a dead letter")

    assert [attributes(letter)["dead_letter_reason"] for letter in shop.dead_letters(order)] == [reason]
    assert stock.get(sku="bad") == {"sku": "bad", "free": 9}


def test_stock_counts_an_order_once_although_its_process_is_killed_after_the_commit(
    consumers: dict[str, Pipeline], emulator: Emulator, faults: Faults, stock: Rows
) -> None:
    stock.put(sku="killed", free=100)
    shop, ids = consumers["stock"], [f"killed-{number}" for number in range(10)]
    with faults.rules({"service": "sns", "timeout_ms": 30_000}), shop.visibility(3):
        shop.send(*({"id": event_id, "lines": [line("killed", 2), line("killed", 1)]} for event_id in ids))
        shop.wait_for_status(ids[0], "pending")
        assert emulator.kill_workers(shop.function) >= 1
    shop.wait_until_sent(*ids)

    assert stock.get(sku="killed") == {"sku": "killed", "free": 70}
    assert sorted(shop.business_writes(*ids)) == sorted(2 * ids)


def test_stock_counts_each_of_many_orders_once_although_they_come_twice_and_an_answer_is_lost(
    consumers: dict[str, Pipeline], faults: Faults, stock: Rows
) -> None:
    stock.put(sku="many", free=1000)
    shop = consumers["stock"]
    orders = [{"id": f"many-{number}", "lines": [line("many", 3)]} for number in range(100)]
    ids = [str(order["id"]) for order in orders]
    lost_answer = {"service": "dynamodb", "operation": "TransactWriteItems", "response": {"abort_bytes": 0}, "times": 1}
    with faults.rules(lost_answer):
        shop.send_all([*orders[:60], *orders[20:50], *orders[60:]])
        shop.wait_until_sent(*ids, seconds=120)
        assert faults.fired("dynamodb") == 1

    assert stock.get(sku="many") == {"sku": "many", "free": 700}
    assert sorted(shop.business_writes(*ids)) == sorted(ids)


def test_stock_stores_no_order_without_the_right_to_update_its_own_table(
    consumers: dict[str, Pipeline], emulator: Emulator, examples: Examples, stock: Rows
) -> None:
    stock.put(sku="denied", free=5)
    shop, since = consumers["stock"], now_ms()
    table_arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{stock.table}"
    role = Role(emulator, shop.role)
    with (
        role.without("sqs:ChangeMessageVisibility"),  # the order comes back after the queue's own timeout
        role.without("dynamodb:UpdateItem", resource=table_arn),
        shop.visibility(3),
    ):
        shop.send({"id": "denied", "lines": [line("denied", 2)]})
        shop.wait_for_metric("Misconfigured", since)
        assert shop.ledger_row("denied") is None
    shop.wait_until_sent("denied")
    assert stock.get(sku="denied") == {"sku": "denied", "free": 3}


# --- fifo


def test_fifo_leaves_each_account_as_its_last_event_says(consumers: dict[str, Pipeline], emulator: Emulator) -> None:
    accounts = consumers["accounts"]
    states = ["opened", "frozen", "thawed", "closed"]
    for number, state in enumerate(states):
        for account in ("a-1", "a-2"):
            accounts.send({"id": f"{account}-{number}", "account": account, "state": state}, group=account)
    accounts.wait_until_sent("a-1-3", "a-2-3")
    accounts.send({"id": "a-1-0", "account": "a-1", "state": "opened"}, group="a-1")
    accounts.wait_until_drained()

    rows = rows_of(emulator, accounts)
    for account in ("a-1", "a-2"):
        events = [f"{account}-{number}" for number in range(4)]
        assert rows.with_(account=account) == [{"id": events[3], "account": account, "state": "closed"}]
        assert [row["state"] for row in rows.writes(account=account)] == states
        heard = [json.loads(message["Body"])["state"] for message in accounts.steady_notifications(*events)]
        assert heard == states


def test_fifo_tells_its_own_subscriber_in_order(
    consumers: dict[str, Pipeline], emulator: Emulator, examples: Examples
) -> None:
    accounts = consumers["accounts"]
    events = [f"told-{number}" for number in range(5)]
    accounts.send(*({"id": event, "account": "told", "state": event} for event in events), group="told")
    accounts.wait_until_sent(*events)

    subscriber = Pipeline(
        emulator, {**accounts.outputs, "subscriber_url": examples.outputs["fifo"]["subscriber_queue_url"]}
    )
    heard = [attributes(message)["event_id"] for message in subscriber.steady_notifications(*events)]
    assert heard == events


# --- s3-ingest


@pytest.fixture(scope="session")
def bucket(examples: Examples) -> str:
    return str(examples.outputs["s3_ingest"]["bucket_name"])


def test_s3_ingest_stores_an_object_by_its_decoded_key(
    consumers: dict[str, Pipeline], emulator: Emulator, bucket: str
) -> None:
    uploads, key = consumers["uploads"], "in/ä b+c (1)/100%25.csv"
    rows = rows_of(emulator, uploads)
    emulator.client("s3").put_object(Bucket=bucket, Key=key, Body=b"hello")
    (row,) = wait(lambda: rows.with_(key=key), "the object's row")

    assert (row["bucket"], row["size"], row["etag"]) == (bucket, 5, "5d41402abc4b2a76b9719d911017c592")
    assert sorted(row) == ["bucket", "etag", "key", "put_at", "size"]


def test_s3_ingest_keeps_the_newest_put_of_an_object(
    consumers: dict[str, Pipeline], emulator: Emulator, bucket: str
) -> None:
    uploads = consumers["uploads"]
    for body in (b"1", b"12", b"123", b"1234"):
        emulator.client("s3").put_object(Bucket=bucket, Key="again.txt", Body=body)
    rows = rows_of(emulator, uploads)
    wait(lambda: [row for row in rows.with_(key="again.txt") if row["size"] == 4], "the newest put")
    uploads.wait_until_drained()

    sizes = [row["size"] for row in rows.writes(key="again.txt")]
    assert [row["size"] for row in rows.with_(key="again.txt")] == [4]
    assert sizes == sorted(set(sizes)), "no older put has overwritten a newer one, and none was written twice"


def test_s3_ingest_takes_a_notification_that_comes_twice_once(
    consumers: dict[str, Pipeline], emulator: Emulator
) -> None:
    """S3 delivers at least once, which the emulator does not show: the body is sent by hand."""
    uploads = consumers["uploads"]
    body = (CHECKOUT / "tests/fixtures/events/body_s3_put_encoded_key.json").read_text()
    rows = rows_of(emulator, uploads)
    since = now_ms()
    uploads.send(body)
    wait(lambda: rows.with_(key="in/a b+c (1).csv"), "the object's row")
    uploads.send(body, body)
    uploads.wait_until_drained()
    uploads.wait_for_metric("Duplicates", since)

    assert len(rows.writes(key="in/a b+c (1).csv")) == 1


def test_s3_ingest_ignores_the_test_message_of_a_new_notification(consumers: dict[str, Pipeline]) -> None:
    uploads = consumers["uploads"]
    uploads.wait_for_metric("Ignored", since_ms=0)
    uploads.wait_until_drained()


def test_s3_ingest_hears_of_no_object_without_the_policy_of_its_queue(
    consumers: dict[str, Pipeline], emulator: Emulator, bucket: str
) -> None:
    uploads, s3 = consumers["uploads"], emulator.client("s3")
    with without_policy(emulator, uploads.outputs["queue_url"]):
        s3.put_object(Bucket=bucket, Key="unheard.txt", Body=b"1")
        wait(lambda: "S3 notification: queue policy denies" in emulator.log.read_text(), "the notification is refused")
    s3.put_object(Bucket=bucket, Key="heard.txt", Body=b"1")
    rows = rows_of(emulator, uploads)
    wait(lambda: rows.with_(key="heard.txt"), "the object's row")
    assert rows.with_(key="unheard.txt") == []


# --- eventbridge


def scan(scan_id: str, source: str = "warehouse") -> dict[str, Any]:
    detail = {"scan_id": scan_id, "parcel": "p-7", "weight": 1.5, "labels": []}
    return {
        "EventBusName": "parcels",
        "Source": source,
        "DetailType": "Parcel Scanned",
        "Detail": json.dumps(detail),
        "Resources": ["parcel/p-7"],
    }


def test_eventbridge_stores_the_whole_event_once_although_the_producer_puts_it_twice(
    consumers: dict[str, Pipeline], emulator: Emulator
) -> None:
    parcels, events = consumers["parcels"], emulator.client("events")
    first = events.put_events(Entries=[scan("twice")])["Entries"][0]["EventId"]
    parcels.wait_until_sent("twice")
    since = now_ms()
    again = events.put_events(Entries=[scan("twice"), scan("other", source="shop")])["Entries"][0]["EventId"]
    parcels.wait_for_metric("Duplicates", since)
    parcels.wait_until_drained()

    assert first != again
    rows = rows_of(emulator, parcels)
    (row,) = rows.with_(scan_id="twice")
    when = row["event"].pop("time")
    assert when.endswith("Z")
    assert row == {
        "scan_id": "twice",
        "parcel": "p-7",
        "event": {
            "version": "0",
            "id": first,
            "source": "warehouse",
            "detail-type": "Parcel Scanned",
            "account": "000000000000",
            "region": "us-east-1",
            "resources": ["parcel/p-7"],
            "detail": {"scan_id": "twice", "parcel": "p-7", "weight": Decimal("1.5"), "labels": []},
        },
    }
    assert len(rows.writes(scan_id="twice")) == 1
    assert len(parcels.steady_notifications("twice")) == 1
    # The rule lets only the warehouse's own through.
    assert rows.with_(scan_id="other") == []


# --- fan-out


def test_fan_out_writes_one_invoice_for_a_sale_that_is_told_twice(
    consumers: dict[str, Pipeline], emulator: Emulator, faults: Faults
) -> None:
    sales, invoices = consumers["sales"], consumers["invoices"]
    since = now_ms()
    lost_answer = {"service": "sns", "operation": "PublishBatch", "response": {"abort_bytes": 0}, "times": 1}
    with faults.rules(lost_answer):
        sales.send({"id": "s-1", "total": 12.5})
        sales.wait_until_sent("s-1")
        assert faults.fired("sns") == 1
    invoices.wait_until_sent("s-1")
    invoices.wait_for_metric("Duplicates", since)
    invoices.wait_until_drained()

    first, again = sales.steady_notifications("s-1")
    assert first["Body"] == again["Body"] == '{"id":"s-1","total":12.5}'
    rows = rows_of(emulator, invoices)
    assert rows.with_(id="s-1") == [{"id": "s-1", "amount": Decimal("12.5")}]
    assert len(rows.writes(id="s-1")) == 1
    assert len(invoices.steady_notifications("s-1")) == 1


def test_fan_out_invoices_every_sale_once_when_sales_come_twice(
    consumers: dict[str, Pipeline], emulator: Emulator
) -> None:
    sales, invoices = consumers["sales"], consumers["invoices"]
    bodies = [{"id": f"many-{number}", "total": number} for number in range(20)]
    sales.send_all([*bodies, *bodies[5:15]])
    ids = [str(body["id"]) for body in bodies]
    sales.wait_until_sent(*ids)
    invoices.wait_until_sent(*ids)

    assert sorted(sales.business_writes(*ids)) == sorted(ids)
    assert sorted(invoices.business_writes(*ids)) == sorted(ids)
    rows = rows_of(emulator, invoices)
    assert [rows.with_(id=body["id"]) for body in bodies] == [
        [{"id": f"many-{number}", "amount": number}] for number in range(20)
    ]


def test_fan_out_hears_of_no_sale_without_the_policy_of_its_queue(
    consumers: dict[str, Pipeline], emulator: Emulator
) -> None:
    sales, invoices = consumers["sales"], consumers["invoices"]
    with without_policy(emulator, invoices.outputs["queue_url"]):
        sales.send({"id": "unheard", "total": 1})
        sales.wait_until_sent("unheard")
    sales.send({"id": "heard", "total": 1})
    invoices.wait_until_sent("heard")
    assert invoices.ledger_row("unheard") is None


# --- payments


def test_payments_charges_an_order_once_and_dead_letters_what_is_refused(
    emulator: Emulator, examples: Examples, payment_server: PaymentServer
) -> None:
    payments = Operation(emulator, examples.outputs["payments"]["payments"])
    payment_server.plan({"orders": "p-broke", "steps": [{"does": "refuse"}]})
    paid, refused = {"id": "p-1", "amount": 1250}, {"id": "p-broke", "amount": 900}
    assert payments.queue.send_batch([json.dumps(order) for order in (paid, refused, paid)]) == 3
    wait(lambda: payments.statuses() == {"p-1": "COMPLETED", "p-broke": "FAILED_FINAL"}, "both orders are settled")
    wait(lambda: payments.dead_letters.depth().waiting, "a dead letter")

    (charge,) = payment_server.charges("p-1")
    assert charge["amount"] == 1250
    assert json.loads(payments.rows()["p-1"]["result"]) == {"charge": charge["id"]}
    assert payment_server.charges("p-broke") == []
    (letter,) = payments.letters
    assert attribute(letter, "dead_letter_reason") == "charge-refused"


# --- ingestion


def test_ingestion_counts_a_document_once_although_s3_tells_of_it_twice(emulator: Emulator, examples: Examples) -> None:
    outputs, executions = examples.outputs["ingestion"], emulator.client("stepfunctions")
    words = Rows(emulator, outputs["words_table_name"])
    workflow = Workflow(emulator, outputs["ingestion"], words.table)
    emulator.client("s3").put_object(Bucket=outputs["bucket_name"], Key="in/ä b+c.txt", Body=b"so once is once")
    wait(lambda: words.get(word="is"), "the document is ingested")
    (told,) = wait(
        lambda: executions.list_executions(
            stateMachineArn=outputs["ingestion"]["state_machine_arn"], statusFilter="SUCCEEDED"
        )["executions"],
        "its execution has ended",
    )
    given = json.loads(executions.describe_execution(executionArn=told["executionArn"])["input"])
    again = workflow.run(given["key"], given["body"])

    assert given["event"]["s3"]["object"]["key"] == "in/ä b+c.txt"
    assert again.result == {
        "status": "skipped",
        "reason": "duplicate",
        "idempotencyKey": {"pk": given["key"], "sk": "ingestion"},
        "result": {"words": 4},
    }
    assert {row["word"]: row["times"] for row in words.with_()} == {"so": 1, "once": 2, "is": 1}
    assert workflow.dead_letters.depth().is_empty


# --- webhook


def test_webhook_announces_an_order_once_with_its_token(
    emulator: Emulator, examples: Examples, payment_server: PaymentServer
) -> None:
    outputs = examples.outputs["webhook"]
    webhook = Operation(emulator, outputs["webhook"])
    emulator.client("secretsmanager").put_secret_value(
        SecretId=outputs["token_secret_arn"], SecretString="the-partners-token"
    )
    assert webhook.queue.send_batch([json.dumps({"id": "w-1", "amount": 500})] * 3) == 3
    wait(lambda: webhook.statuses() == {"w-1": "COMPLETED"}, "the order is announced")

    (asked,) = payment_server.requests("w-1")
    row = webhook.rows()["w-1"]
    assert json.loads(asked["body"]) == {"order": "w-1", "amount": 500}
    assert asked["headers"]["authorization"] == "Bearer the-partners-token"
    assert (asked["headers"]["x-event"], asked["key"]) == ("w-1", row["idempotency_key"])
    assert json.loads(row["result"]) == {"status": 201, "receipt": payment_server.charges("w-1")[0]["id"]}


# --- all of them


@pytest.mark.case("T08", "T10")
def test_a_plan_after_apply_changes_nothing_but_alarms(examples: Examples) -> None:
    assert {address: actions for address, actions in examples.changes.items() if not ALARM.search(address)} == {}


def test_nothing_was_dead_lettered_but_what_the_stock_refused(
    consumers: dict[str, Pipeline], emulator: Emulator
) -> None:
    letters = {
        name: Queue(emulator, pipeline.outputs["dead_letter_queue_url"]).take()
        for name, pipeline in consumers.items()
        if name != "stock"
    }
    # A dead letter can come twice, as any message.
    assert {
        name: [(letter["Body"], attributes(letter)) for letter in each if letter["Body"] != WARM_UP]
        for name, each in letters.items()
    } == {name: [] for name in letters}


def test_destroy_leaves_nothing(destroyed: Examples, emulator: Emulator) -> None:
    assert destroyed.root.resources() == []
    queues = emulator.client("sqs").list_queues().get("QueueUrls", [])
    assert [url for url in queues if "/heard-" not in url] == []
    assert emulator.client("dynamodb").list_tables()["TableNames"] == []
    assert emulator.client("sns").list_topics()["Topics"] == []
    assert emulator.client("stepfunctions").list_state_machines()["stateMachines"] == []
    assert emulator.client("s3").list_buckets()["Buckets"] == []
    assert emulator.client("secretsmanager").list_secrets()["SecretList"] == []
    assert [bus["Name"] for bus in emulator.client("events").list_event_buses()["EventBuses"]] == ["default"]
    assert emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"] == []
