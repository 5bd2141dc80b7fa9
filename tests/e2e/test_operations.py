"""Orders are charged once each although processes are killed, answers are lost and messages come twice.

All traffic runs at once, through four operations, since what a killed process leaves waits for its lease's end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from local.consumer import Sending
from local.emulator import Emulator
from local.faults import Faults
from local.operating import Operator
from local.payment_server import PaymentServer
from local.terraform import Root
from local.waiting import wait_for
from local.watching import attribute
from tests.e2e.examples import build_example
from tests.e2e.operations import ROOT, Operation
from tests.e2e.payment_orders import LATE_SECONDS, SETTLE_SECONDS, Killer, Orders, amount, kinds
from tests.e2e.permissions import Role, environment, refused
from tests.plan.rights import GIVEN_SECRET
from tests.plan.roles import OPERATION

ROOT_USER = "arn:aws:iam::000000000000:root"
TOKEN = "Kp7-vq2Xw9_Zr4"
# With the policy to park, a person decides once all charges are made.
SOON = 5.0
ORDERS = {
    "honours": Orders("honours", kinds(SOON, is_repeated=True), honours_keys=True),
    "asks": Orders("asks", kinds(LATE_SECONDS, is_repeated=False)),
    "hook": Orders("hook", kinds(LATE_SECONDS, is_repeated=False)),
    "parks": Orders("parks", kinds(SOON, is_repeated=False)),
}
# Whose uncertain orders are settled without a person.
BY_THEMSELVES = ("honours", "asks", "hook")
DRAIN_SECONDS = 420.0
LEDGER_FAULTS = (
    {"service": "dynamodb", "probability": 0.08, "error": {"code": "ThrottlingException"}},
    {"service": "dynamodb", "probability": 0.08, "response": {"abort_bytes": 0}},
    {"service": "dynamodb", "probability": 0.04, "reset": True},
)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("operations") / "emulator.log") as running:
        yield running


@pytest.fixture(scope="module")
def faults(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with Faults(emulator.endpoint, tmp_path_factory.mktemp("operations") / "faults.log") as running:
        yield running


@pytest.fixture(scope="module")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentServer]:
    with PaymentServer(tmp_path_factory.mktemp("operations") / "payments.log") as running:
        yield running


@pytest.fixture(scope="module")
def deployed(
    emulator: Emulator, faults: Faults, payments: PaymentServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Operation]:
    """All operations, applied. All AWS calls of the functions go through `faults`."""
    folder = tmp_path_factory.mktemp("operations")
    variables = {
        "function_environment": {"AWS_ENDPOINT_URL": faults.endpoint},
        "payments_package": str(build_example("payments", folder)),
        "provider_url": payments.endpoint,
        "settle_seconds": SETTLE_SECONDS,
    }
    root = Root(ROOT, folder / "terraform", emulator.endpoint, variables=variables)
    root.init()
    root.apply()
    outputs = root.output()
    emulator.client("secretsmanager").put_secret_value(SecretId=outputs["token_secret_arn"], SecretString=TOKEN)
    return {name: Operation(emulator, each) for name, each in outputs["operations"].items()}


@dataclass(frozen=True)
class Chaos:
    """What has been done to the operations. killed: processes, by operation."""

    killed: Mapping[str, int]
    ledger_faults: int


@pytest.fixture(scope="module")
def chaos(deployed: dict[str, Operation], faults: Faults, payments: PaymentServer) -> Chaos:
    """All orders are sent, all processes killed, and what can be lost is lost; then all goes well again."""
    payments.plan(*(rule for orders in ORDERS.values() for rule in orders.rules))
    killer = Killer(payments, deployed)
    killer.start()
    sendings = [Sending(deployed[name].queue, in_tens(orders.stream())) for name, orders in ORDERS.items()]
    with faults.rules(*LEDGER_FAULTS):
        for sending in sendings:
            sending.start()
        for sending in sendings:
            sending.join()
        dying = {order for orders in ORDERS.values() for order in orders.ids("dies", "dies-charged")}
        wait_for(lambda: dying <= {request["order"] for request in payments.requests()}, "all have died", seconds=180)
        fired = faults.fired("dynamodb")
    killer.end()
    assert sum(sending.refused for sending in sendings) == 0
    return Chaos(killer.killed, fired)


@pytest.fixture(scope="module")
def operations(chaos: Chaos, deployed: dict[str, Operation]) -> dict[str, Operation]:
    """The operations, the traffic of which has begun: each test waits for those it looks at."""
    return deployed


@dataclass(frozen=True)
class Parked:
    """What `parks` has come to without a person. letters: as `inspect` shows them. charged: how often, by order."""

    rows: Mapping[str, dict[str, Any]]
    letters: list[dict[str, Any]]
    charged: Counter[str]

    @property
    def ids(self) -> set[str]:
        return {order for order, row in self.rows.items() if "parked_at" in row}


@pytest.fixture(scope="module")
def parked(operations: dict[str, Operation], payments: PaymentServer) -> Parked:
    parks, late = operations["parks"], ORDERS["parks"].ids("late")
    parks.wait_until_drained(DRAIN_SECONDS)
    wait_for(lambda: late <= payments.charged().keys(), "the late charges are made")
    *letters, _ = Operator(parks).json("inspect").lines
    return Parked(parks.rows(), letters, charges_of(payments, "parks"))


@pytest.fixture(scope="module")
def resolved(parked: Parked, operations: dict[str, Operation], payments: PaymentServer) -> Operation:
    """`parks` after a person has looked at the provider, decided, and sent the letters back.

    Where a process was killed before the provider was asked, what is to be lost can be lost then: decided once more.
    """
    parks = operations["parks"]
    for _ in range(3):
        if in_doubt := {order for order, row in parks.rows().items() if "parked_at" in row}:
            decide_by_hand(parks, in_doubt, payments)
            # Of two letters of one order, the second waits for the claim of the first.
            parks.wait_until_drained(DRAIN_SECONDS)
    return parks


def decide_by_hand(parks: Operation, in_doubt: set[str], payments: PaymentServer) -> None:
    operator, declined = Operator(parks), in_doubt & ORDERS["parks"].ids("declined")
    charged = in_doubt & payments.charged().keys()
    decisions: list[Sequence[str]] = [
        *((order, "--completed", payments.charges(order)[0]["id"], "--by", "ann") for order in sorted(charged)),
        *((order, "--failed", "a declined card", "--by", "ann") for order in sorted(declined)),
    ]
    if uncharged := sorted(in_doubt - charged - declined):
        decisions.append([*uncharged, "--retry", "--why", "the provider has none"])
    with ThreadPoolExecutor(2) as people:
        for answer in people.map(lambda decision: operator.json("resolve", *decision), decisions):
            assert answer.status == 0, answer
    if not (going_back := sorted(in_doubt - declined)):
        return
    replayed = operator.json("replay", *(option for order in going_back for option in ("--id", order)), "--wait")
    assert replayed.last["sent"] >= len(going_back)
    assert replayed.last["outcomes"].keys() <= {"completed", "no-op", "parked"}


def in_tens(bodies: list[str]) -> list[list[str]]:
    return [bodies[start : start + 10] for start in range(0, len(bodies), 10)]


def payable(name: str) -> set[str]:
    return ORDERS[name].ids() - ORDERS[name].ids("declined")


def charges_of(payments: PaymentServer, name: str) -> Counter[str]:
    return Counter({order: times for order, times in payments.charged().items() if order in ORDERS[name].ids()})


# --- nobody knows whether it was charged, and a person decides


def test_an_order_that_may_have_been_charged_is_never_charged_again_but_parked(parked: Parked) -> None:
    orders = ORDERS["parks"]
    assert max(parked.charged.values()) == 1
    assert {order: row["status"] for order, row in parked.rows.items() if order not in parked.ids} == {
        order: "FAILED_FINAL" if order in orders.ids("declined") else "COMPLETED" for order in orders.ids() - parked.ids
    }
    # Whatever else was killed or lost, these were in doubt.
    in_doubt = ("answer-lost", "answer-reset", "answer-bad", "request-lost", "down", "hangs", "charged-hangs", "late")
    assert orders.ids(*in_doubt, "busy-lost", "dies", "dies-charged") <= parked.ids
    assert all(parked.charged[order] for order in orders.ids() - parked.ids - orders.ids("declined"))


def test_each_copy_of_a_parked_order_is_a_dead_letter_that_says_so(parked: Parked) -> None:
    letters = [letter for letter in parked.letters if letter["event_ids"][0] in parked.ids]
    assert {letter["reason"] for letter in letters} == {"outcome-unknown"}
    assert missing(Counter(letter["event_ids"][0] for letter in letters), "parks", parked.ids) == {}
    # A person finds the charge at the provider by the key.
    told = {(letter["event_ids"][0], letter["detail"].partition(": ")[0]) for letter in letters}
    assert told == {(order, f"idempotency key {parked.rows[order]['idempotency_key']}") for order in parked.ids}


def test_a_parked_row_stays_in_progress_says_why_and_does_not_expire(parked: Parked) -> None:
    rows = [parked.rows[order] for order in parked.ids]
    assert {(row["status"], row["reason"], "ttl" in row, "pending_shard" in row) for row in rows} == {
        ("IN_PROGRESS", "outcome-unknown", False, True)
    }
    orders = ORDERS["parks"]
    why = {order: parked.rows[order]["detail"] for order in parked.ids}
    assert {why[order] for order in orders.ids("answer-bad", "down")} == {
        "1 attempt, the last one: charge-unanswered the provider answered 503"
    }
    assert any("the lease ended before an outcome was recorded" in text for text in why.values())


def test_what_is_parked_is_settled_by_command_line_and_each_order_is_charged_once(
    resolved: Operation, payments: PaymentServer
) -> None:
    declined = ORDERS["parks"].ids("declined")
    assert charges_of(payments, "parks") == dict.fromkeys(payable("parks"), 1)
    assert resolved.statuses() == dict.fromkeys(payable("parks"), "COMPLETED") | dict.fromkeys(declined, "FAILED_FINAL")
    # Nothing is left but those that are not to be charged.
    chosen = [option for order in sorted(declined) for option in ("--id", order)]
    dropped = Operator(resolved).json("drop", *chosen)
    assert dropped.status == 0, dropped
    assert resolved.dead_letters.depth().is_empty
    assert resolved.queue.depth().is_empty


def test_the_row_keeps_who_has_decided_how_and_why(
    resolved: Operation, parked: Parked, payments: PaymentServer
) -> None:
    rows = resolved.rows()
    charge_ids = {charge["order"]: charge["id"] for charge in payments.charges()}
    ways: Counter[tuple[str, ...]] = Counter()
    for order in parked.ids - ORDERS["parks"].ids("declined"):
        before, after = parked.rows[order], rows[order]
        audit = [{name: entry[name] for name in ("how", "by", "why")} for entry in after["audit"]]
        is_by_hand = audit[-1]["how"] == "completed"
        # Who it is, where nobody says so, is told by AWS.
        retried = {"how": "retry", "by": ROOT_USER, "why": "the provider has none"}
        by_hand = {"how": "completed", "by": "ann", "why": ""}
        assert audit == [retried] * (len(audit) - is_by_hand) + [by_hand] * is_by_hand
        assert before["parked_at"] < after["audit"][0]["at"]
        assert (audit[0] == by_hand) == (parked.charged[order] == 1)
        charge_id = charge_ids[order]
        assert json.loads(after["result"]) == (charge_id if is_by_hand else {"charge": charge_id})
        assert after["idempotency_key"] == before["idempotency_key"]
        # Each decision fences off the workers of before, and so does each attempt.
        assert after["attempt"] >= before["attempt"] + 2 * len(audit) - is_by_hand
        ways[tuple(entry["how"] for entry in audit)] += 1
    assert ways.keys() >= {("completed",), ("retry",)}


# --- nobody knows, and the provider does


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_each_order_is_charged_exactly_once_and_completed(
    operations: dict[str, Operation], payments: PaymentServer, name: str
) -> None:
    operation = operations[name]
    operation.wait_until_drained(DRAIN_SECONDS)
    assert charges_of(payments, name) == dict.fromkeys(payable(name), 1)
    rows = operation.rows()
    assert {order: row["status"] for order, row in rows.items() if order in payable(name)} == dict.fromkeys(
        payable(name), "COMPLETED"
    )
    # What is stored is what the provider has, whichever attempt was told of it.
    charged = {charge["order"]: charge for charge in payments.charges()}
    assert {order: json.loads(rows[order]["result"]) for order in payable(name)} == {
        order: {"charge": charged[order]["id"]} for order in payable(name)
    }
    assert {order: charged[order]["amount"] for order in payable(name)} == {
        order: amount(order) for order in payable(name)
    }


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_the_key_of_an_order_is_the_same_in_all_attempts(
    operations: dict[str, Operation], payments: PaymentServer, name: str
) -> None:
    operation = operations[name]
    operation.wait_until_drained(DRAIN_SECONDS)
    posts = [request for request in payments.requests() if request["method"] == "POST"]
    sent = {(request["order"], request["key"]) for request in posts if request["order"] in ORDERS[name].ids()}
    assert sent == {(order, row["idempotency_key"]) for order, row in operation.rows().items()}
    attempts = Counter(request["order"] for request in posts)
    assert min(attempts[order] for order in ORDERS[name].ids("busy-lost")) >= 3


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_only_what_the_provider_declines_is_dead_lettered_each_copy_with_its_reason(
    operations: dict[str, Operation], payments: PaymentServer, name: str
) -> None:
    operation, declined = operations[name], ORDERS[name].ids("declined")
    operation.wait_until_drained(DRAIN_SECONDS)
    rows = operation.rows()
    # Where the first attempt was killed, the refusal of another says nothing of it.
    in_doubt = {order for order in declined if "parked_at" in rows[order]}
    assert declined - in_doubt
    reason = "http-402" if name == "hook" else "charge-refused"
    told = dict.fromkeys(declined, reason) | dict.fromkeys(in_doubt, "outcome-unknown")
    assert {order: rows[order]["reason"] for order in declined} == told
    assert {rows[order]["status"] for order in declined - in_doubt} == {"FAILED_FINAL"}
    assert declined.isdisjoint(payments.charged())

    letters = [(json.loads(each["Body"])["id"], attribute(each, "dead_letter_reason")) for each in operation.letters]
    assert set(letters) == set(told.items())
    assert missing(Counter(order for order, _ in letters), name, declined) == {}


# --- all of them


def test_processes_were_killed_and_calls_to_the_ledger_failed(chaos: Chaos) -> None:
    assert set(chaos.killed) == set(ORDERS)
    assert min(chaos.killed.values()) >= 2
    assert chaos.ledger_faults >= 30


@pytest.mark.parametrize("name", ORDERS)
def test_a_message_that_waits_for_a_lease_is_not_received_again_and_again(
    operations: dict[str, Operation], name: str
) -> None:
    operation = operations[name]
    operation.wait_until_drained(DRAIN_SECONDS)
    waits = operation.logged("in-progress")
    assert waits
    # The lease of another attempt may begin as the first one's ends.
    assert max(waits.values()) <= 3


def test_the_secret_is_sent_and_stands_nowhere_else(operations: dict[str, Operation], payments: PaymentServer) -> None:
    hook = operations["hook"]
    hook.wait_until_drained(DRAIN_SECONDS)
    asked = [request for request in payments.requests() if request["order"] in ORDERS["hook"].ids()]
    assert {request["headers"].get("authorization") for request in asked} == {f"Bearer {TOKEN}"}
    assert {request["method"] for request in asked} == {"GET", "POST"}
    assert [line for line in hook.log() if TOKEN in line] == []
    assert [row for row in hook.rows().values() if TOKEN in str(row)] == []
    assert [letter for letter in hook.letters if TOKEN in str(letter)] == []


# --- rights


@pytest.fixture
def hook(operations: dict[str, Operation]) -> Operation:
    """The operation with a secret, once it has settled its orders, with their letters put aside."""
    hook = operations["hook"]
    hook.wait_until_drained(DRAIN_SECONDS)
    assert hook.letters
    return hook


@pytest.fixture
def late_order(hook: Operation, event_id: str) -> Iterator[str]:
    """An order of which nothing is left after the test."""
    yield event_id
    hook.forget(event_id)


@pytest.fixture
def parameter_arn(emulator: Emulator) -> Iterator[str]:
    """Of a parameter that holds the token too."""
    parameters, name = emulator.client("ssm"), "/payments/token"
    parameters.put_parameter(Name=name, Value=TOKEN, Type="SecureString")
    yield str(parameters.get_parameter(Name=name)["Parameter"]["ARN"])
    parameters.delete_parameter(Name=name)


def test_every_action_that_the_emulator_asks_the_role_for_is_taken_away_below(hook: Operation) -> None:
    assert Role(hook.emulator, hook.function).checked() == OPERATION.checked(GIVEN_SECRET)


def test_without_update_item_nothing_is_charged(hook: Operation, payments: PaymentServer, late_order: str) -> None:
    with refused(hook.emulator, hook.outputs, "dynamodb:UpdateItem"):
        hook.send({"id": late_order, "amount": 250})
    assert (late_order in hook.rows(), payments.charges(late_order)) == (False, [])
    assert_charged_once(hook, payments, late_order)


def test_without_send_message_an_order_that_makes_no_sense_stays_in_the_queue(hook: Operation, late_order: str) -> None:
    body = f'{{"broken": "{late_order}"'
    with refused(hook.emulator, hook.outputs, "sqs:SendMessage"):
        hook.send(body)
    hook.wait_until_drained(DRAIN_SECONDS)
    (letter,) = hook.dead_letters.take()
    assert (letter["Body"], attribute(letter, "dead_letter_reason")) == (body, "bad-json")


def test_without_the_right_to_hide_it_an_order_comes_back_after_the_queues_timeout(
    hook: Operation, payments: PaymentServer, late_order: str
) -> None:
    payments.plan(
        {"orders": late_order, "steps": [{"does": "too_many", "seconds": 1, "times": 1}]},
        *(rule for orders in ORDERS.values() for rule in orders.rules),
    )
    with refused(hook.emulator, hook.outputs, "sqs:ChangeMessageVisibility", says="no backoff: AccessDenied"):
        hook.send({"id": late_order, "amount": 250})
    assert_charged_once(hook, payments, late_order)


@pytest.mark.parametrize("action", ["secretsmanager:GetSecretValue", "ssm:GetParameter"])
def test_without_its_secret_nothing_is_charged(
    hook: Operation, payments: PaymentServer, late_order: str, parameter_arn: str, action: str
) -> None:
    """New processes each time: a secret that is known is kept for a while."""
    functions, role = hook.emulator.client("lambda"), Role(hook.emulator, hook.function)
    variables = functions.get_function_configuration(FunctionName=hook.function)["Environment"]["Variables"]
    settings = json.loads(variables["OPERATION_HTTP"])
    if is_parameter := action == "ssm:GetParameter":
        settings["secret"] |= {"parameter_arn": parameter_arn, "secret_arn": None}
    with (
        role.with_right(action, parameter_arn) if is_parameter else nullcontext(),
        environment(hook.emulator, hook.function, {"OPERATION_HTTP": json.dumps(settings)}),
    ):
        with refused(hook.emulator, hook.outputs, action):
            hook.send({"id": late_order, "amount": 250})
        assert payments.requests(late_order) == []
        assert_charged_once(hook, payments, late_order)
    (asked,) = [request for request in payments.requests(late_order) if request["method"] == "POST"]
    assert asked["headers"]["authorization"] == f"Bearer {TOKEN}"


def assert_charged_once(operation: Operation, payments: PaymentServer, order: str) -> None:
    operation.wait_until_drained(DRAIN_SECONDS)
    assert operation.rows()[order]["status"] == "COMPLETED"
    assert [charge["amount"] for charge in payments.charges(order)] == [250]


def missing(letters: Counter[str], name: str, orders: set[str]) -> dict[str, int]:
    """How many copies of each order are not among the letters. A letter may come twice, as any message."""
    sent = ORDERS[name].copies()
    return {order: sent[order] - letters[order] for order in orders if letters[order] < sent[order]}
