"""The payment server does what it is told to, and never forgets a charge."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from local.payment_plan import read_plan
from local.payment_server import PaymentServer
from local.waiting import wait_for


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentServer]:
    with PaymentServer(tmp_path_factory.mktemp("payments") / "payments.log") as server:
        yield server


@pytest.fixture
def server(running: PaymentServer) -> PaymentServer:
    """Each test has orders of its own."""
    running.plan()
    return running


def ask(
    server: PaymentServer, method: str, path: str, value: Any = None, key: str | None = None, *, seconds: float = 20
) -> Answer:
    connection = http.client.HTTPConnection(server.endpoint.removeprefix("http://"), timeout=seconds)
    try:
        headers = {} if key is None else {"Idempotency-Key": key}
        connection.request(method, path, None if value is None else json.dumps(value), headers)
        answer = connection.getresponse()
        return Answer(answer.status, json.loads(answer.read()), dict(answer.getheaders()))
    finally:
        connection.close()


def pay(server: PaymentServer, order: str, key: str | None = None, amount: Any = 5, *, seconds: float = 20) -> Answer:
    return ask(server, "POST", "/charges", {"order": order, "amount": amount}, key, seconds=seconds)


def rule(order: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"orders": order, "steps": steps, **more}


# Charges and keys


def test_charge_is_told_and_found_by_its_order_and_by_its_key(server: PaymentServer) -> None:
    answer = pay(server, "plain", "key-plain", 12.5)
    assert answer.status == 201
    (charge,) = server.charges("plain")
    assert answer.body == charge
    assert (charge["order"], charge["amount"], charge["key"]) == ("plain", 12.5, "key-plain")
    for path in ("/charges?order=plain", "/charges/key-plain", "/orders/plain"):
        assert ask(server, "GET", path)[:2] == (200, {"charges": [charge]})


def test_what_was_never_charged_is_not_found(server: PaymentServer) -> None:
    assert ask(server, "GET", "/orders/nobody").status == 404
    assert ask(server, "GET", "/charges/no-key").status == 404
    assert ask(server, "GET", "/charges?order=nobody")[:2] == (200, {"charges": []})


def test_honoured_key_charges_once_and_answers_the_same(server: PaymentServer) -> None:
    first, second = pay(server, "twice", "key-twice"), pay(server, "twice", "key-twice")
    assert (first.status, second.status) == (201, 200)
    assert second.body == first.body
    assert server.charged()["twice"] == 1
    assert server.outcomes("twice") == ["charged", "replayed"]


def test_ignored_key_charges_each_time(server: PaymentServer) -> None:
    server.plan(honours_keys=False)
    assert [pay(server, "ignored", "key-ignored").status for _ in range(2)] == [201, 201]
    assert server.charged()["ignored"] == 2


def test_charge_of_the_time_when_keys_were_ignored_does_not_answer_for_the_key(server: PaymentServer) -> None:
    server.plan(rule("late-honour", honours_keys=False))
    pay(server, "late-honour", "key-late-honour")
    server.plan()
    assert pay(server, "late-honour", "key-late-honour").status == 201


def test_without_a_key_each_request_charges(server: PaymentServer) -> None:
    assert [pay(server, "keyless").status for _ in range(2)] == [201, 201]
    assert server.charged()["keyless"] == 2


@pytest.mark.parametrize(("order", "amount"), [("other", 5), ("mine", 6)])
def test_key_with_other_content_is_refused(server: PaymentServer, order: str, amount: int) -> None:
    pay(server, "mine", f"key-{order}-{amount}")
    before = server.charged()
    assert pay(server, order, f"key-{order}-{amount}", amount).status == 422
    assert server.charged() == before


def test_concurrent_request_with_the_same_key_gets_the_answer_to_the_first(server: PaymentServer) -> None:
    server.plan(rule("together", {"does": "late", "seconds": 0.5}))
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(pay(server, "together", "key-together"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert {answer.body["id"] for answer in answers} == {server.charges("together")[0]["id"]}
    assert server.charged()["together"] == 1


def test_concurrent_request_with_the_same_key_may_meet_a_conflict(server: PaymentServer) -> None:
    server.plan(rule("conflict", {"does": "late", "seconds": 3_600, "close": True}), concurrent="conflict")
    with pytest.raises(ConnectionError):
        pay(server, "conflict", "key-conflict")
    assert pay(server, "conflict", "key-conflict").status == 409
    assert server.charged()["conflict"] == 0


# Faults


def test_late_charge_is_made_later_and_answered_then(server: PaymentServer) -> None:
    server.plan(rule("late", {"does": "late", "seconds": 0.5}))
    answer = pay(server, "late", "key-late")
    assert answer.status == 201
    arrived = server.requests("late")[0]["at_ms"]
    assert answer.body["at_ms"] - arrived >= 500


def test_late_charge_of_a_closed_connection_is_made_all_the_same(server: PaymentServer) -> None:
    server.plan(rule("late-closed", {"does": "late", "seconds": 0.5, "close": True}))
    with pytest.raises(ConnectionError):
        pay(server, "late-closed", "key-late-closed")
    charge = wait_for(lambda: server.charges("late-closed"), "the late charge", interval=0.02)[0]
    assert charge["at_ms"] - server.requests("late-closed")[0]["at_ms"] >= 500
    assert server.outcomes("late-closed") == ["charges later, connection closed"]


def test_late_charge_is_not_found_before_it_is_made(server: PaymentServer) -> None:
    server.plan(rule("not-yet", {"does": "late", "seconds": 3_600, "close": True}))
    with pytest.raises(ConnectionError):
        pay(server, "not-yet", "key-not-yet")
    assert ask(server, "GET", "/orders/not-yet").status == 404
    assert ask(server, "GET", "/charges/key-not-yet").status == 404


def test_slow_answer_comes_after_the_charge(server: PaymentServer) -> None:
    server.plan(rule("slow", {"does": "slow", "seconds": 3_600}))
    with pytest.raises(TimeoutError):
        pay(server, "slow", seconds=0.2)
    assert server.charged()["slow"] == 1


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize(
    ("does", "charges", "outcome"), [("lose_answer", 1, "charged, answer lost"), ("lose_request", 0, "request lost")]
)
def test_lost_connection_leaves_a_charge_or_none(
    server: PaymentServer, does: str, charges: int, outcome: str, reset: bool
) -> None:
    order = f"{does}-{reset}"
    server.plan(rule(order, {"does": does, "reset": reset}))
    with pytest.raises(ConnectionError) as caught:
        pay(server, order)
    assert isinstance(caught.value, http.client.RemoteDisconnected) is not reset
    assert server.charged()[order] == charges
    assert server.outcomes(order) == [outcome]


@pytest.mark.parametrize(
    ("step", "status", "charges", "outcome"),
    [
        ({"does": "refuse"}, 402, 0, "refused 402"),
        ({"does": "refuse", "status": 422}, 422, 0, "refused 422"),
        ({"does": "too_many", "seconds": 7}, 429, 0, "too many"),
        ({"does": "unavailable"}, 503, 0, "unavailable"),
        ({"does": "unavailable_after"}, 503, 1, "charged, unavailable"),
    ],
)
def test_bad_answer_leaves_a_charge_or_none(
    server: PaymentServer, step: dict[str, Any], status: int, charges: int, outcome: str
) -> None:
    order = "-".join(map(str, step.values()))
    server.plan(rule(order, step))
    answer = pay(server, order, f"key-{order}")
    assert answer.status == status
    assert answer.headers.get("Retry-After") == ("7" if status == 429 else None)
    assert server.charged()[order] == charges
    assert server.outcomes(order) == [outcome]


@pytest.mark.parametrize(("charges", "outcome"), [(True, "charged, hangs"), (False, "hangs")])
def test_request_that_hangs_is_never_answered(server: PaymentServer, charges: bool, outcome: str) -> None:
    order = f"hangs-{charges}"
    server.plan(rule(order, {"does": "hang", "charges": charges}))
    with pytest.raises(TimeoutError):
        pay(server, order, seconds=0.2)
    assert server.charged()[order] == int(charges)
    assert server.outcomes(order) == [outcome]


def test_key_of_a_refused_request_is_free_for_the_next(server: PaymentServer) -> None:
    server.plan(rule("refused", {"does": "unavailable", "times": 1}))
    assert [pay(server, "refused", "key-refused").status for _ in range(3)] == [503, 201, 200]


def test_repeat_after_a_lost_answer_gets_the_answer(server: PaymentServer) -> None:
    server.plan(rule("repeat", {"does": "lose_answer", "times": 1}))
    with pytest.raises(ConnectionError):
        pay(server, "repeat", "key-repeat")
    assert pay(server, "repeat", "key-repeat")[:2] == (200, server.charges("repeat")[0])
    assert server.charged()["repeat"] == 1


# The plan


def test_each_order_of_a_pattern_meets_all_the_steps_and_then_none(server: PaymentServer) -> None:
    steps = [{"does": "unavailable", "times": 2}, {"does": "too_many", "times": 1}]
    server.plan(rule("steps-*", *steps))
    for order in ("steps-a", "steps-b"):
        assert [pay(server, order).status for _ in range(4)] == [503, 503, 429, 201]
    assert pay(server, "other-steps").status == 201


def test_first_rule_that_fits_decides(server: PaymentServer) -> None:
    server.plan(rule("first-a"), rule("first-*", {"does": "refuse"}))
    assert [pay(server, "first-a").status, pay(server, "first-b").status] == [201, 402]


def test_asking_has_rules_of_its_own(server: PaymentServer) -> None:
    server.plan(rule("asked", {"does": "unavailable", "times": 1}, method="GET"))
    assert pay(server, "asked").status == 201
    assert [ask(server, "GET", "/orders/asked").status for _ in range(2)] == [503, 200]


def test_new_plan_starts_at_its_first_step(server: PaymentServer) -> None:
    for _ in range(2):
        server.plan(rule("anew", {"does": "refuse", "times": 1}))
        assert [pay(server, "anew").status for _ in range(2)] == [402, 201]


@pytest.mark.parametrize(
    "plan",
    [
        [],
        {"rule": []},
        {"rules": [{"steps": []}]},
        {"rules": [{"orders": "*", "steps": [{"does": "explode"}]}]},
        {"rules": [{"orders": "*", "steps": [{"does": "answer", "time": 1}]}]},
        {"concurrent": "race"},
    ],
)
def test_plan_that_says_nothing_known_is_refused(server: PaymentServer, plan: Any) -> None:
    with pytest.raises(ValueError):
        read_plan(plan)
    assert ask(server, "POST", "/_plan", plan).status == 400


# What was asked


def test_each_request_is_recorded_with_what_it_brought(server: PaymentServer) -> None:
    pay(server, "noted", "key-noted")
    ask(server, "GET", "/orders/noted")
    first, second = server.requests("noted")
    assert (first["method"], first["path"], first["key"]) == ("POST", "/charges", "key-noted")
    assert json.loads(first["body"]) == {"order": "noted", "amount": 5}
    assert first["headers"]["idempotency-key"] == "key-noted"
    assert (second["method"], second["path"], second["key"]) == ("GET", "/orders/noted", None)
    assert [first["outcome"], second["outcome"]] == ["charged", "told of 1"]
    assert first["at_ms"] <= server.charges("noted")[0]["at_ms"] <= second["at_ms"]


@pytest.mark.parametrize("value", ["text", [], {}, {"order": 1, "amount": 5}, {"order": "no-amount"}])
def test_what_is_no_charge_is_refused(server: PaymentServer, value: Any) -> None:
    before = server.charged()
    assert ask(server, "POST", "/charges", value).status == 400
    assert server.charged() == before


def test_unknown_paths_are_not_found(server: PaymentServer) -> None:
    assert ask(server, "GET", "/refunds").status == 404
    assert ask(server, "POST", "/refunds", {}).status == 404


# Its process


def test_connection_serves_request_after_request(server: PaymentServer) -> None:
    connection = http.client.HTTPConnection(server.endpoint.removeprefix("http://"), timeout=20)
    connection.connect()
    before = connection.sock
    for number in range(3):
        connection.request("POST", "/charges", json.dumps({"order": f"kept-{number}", "amount": 1}))
        assert connection.getresponse().read()
        assert connection.sock is before
    connection.close()


def test_killed_server_knows_its_charges_plan_and_requests_when_it_is_back(tmp_path: Path) -> None:
    with PaymentServer(tmp_path / "payments.log") as server:
        server.plan(rule("order", {"does": "lose_answer", "times": 1}, {"does": "refuse"}, honours_keys=False))
        with pytest.raises(ConnectionError):
            pay(server, "order", "key")
        charges, requests = server.charges(), server.requests()
        server.kill()
        with pytest.raises(ConnectionError):
            pay(server, "order", "key")
        server.start_again()
        assert server.charges() == charges
        assert server.requests() == requests
        assert pay(server, "order", "key").status == 402


def test_late_charge_is_made_although_the_server_was_killed_in_between(tmp_path: Path) -> None:
    with PaymentServer(tmp_path / "payments.log") as server:
        server.plan(rule("order", {"does": "late", "seconds": 0.5, "close": True, "times": 1}))
        with pytest.raises(ConnectionError):
            pay(server, "order", "key")
        server.kill()
        server.start_again()
        wait_for(lambda: server.charges("order"), "the late charge", interval=0.02)
        assert pay(server, "order", "key").status == 200
        assert server.charged()["order"] == 1


def test_nothing_is_left_when_the_block_ends(tmp_path: Path) -> None:
    with PaymentServer(tmp_path / "payments.log") as server:
        process = psutil.Process(server.pid)
        state = Path(process.cmdline()[process.cmdline().index("--ledger") + 1]).parent
        assert state.is_dir()
    assert not process.is_running()
    assert not state.exists()


def test_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from local.payment_server import PaymentServer\n"
        "server = PaymentServer(Path(sys.argv[1])).__enter__()\n"
        "print(server.pid, server._state, flush=True); time.sleep(600)"
    )
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "payments.log")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={"PYTHONPATH": str(root), "TMPDIR": str(tmp_path), "PATH": ""},
    )
    assert parent.stdout is not None
    pid, _ = parent.stdout.readline().split()
    server = psutil.Process(int(pid))
    parent.kill()
    parent.communicate()
    try:
        wait_for(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "the end of the server")
    finally:
        if server.is_running():
            server.kill()
