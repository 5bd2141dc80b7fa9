"""A payment server: HTTP/1.1 on loopback, with a ledger that survives its end, and faults by plan.

    python -m local.launch_payment_server --port 8080 --ledger payments.sqlite

POST /charges {order, amount}, header Idempotency-Key: 201 with the charge, 200 with the earlier one of that key
GET /charges, /charges?order=ORDER, /charges/KEY, /orders/ORDER: {charges}; the last two 404 when there is none
POST /_plan: `local.payment_plan.Plan` as JSON. GET /_requests, /_charges: what was asked and made. GET /_health

A key is found whether it is honoured or not, as a provider's field for the merchant's own reference would be.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from local.payment_ledger import Charge, KeyInUse, KeyOfAnother, PaymentLedger
from local.payment_plan import Behaviour, Does, Plan

# What these do to a request ends without a charge.
_WITHOUT_CHARGE = {Does.LOSE_REQUEST, Does.REFUSE, Does.TOO_MANY, Does.UNAVAILABLE}


class PaymentServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, ledger: PaymentLedger) -> None:
        super().__init__(("127.0.0.1", port), Requests)
        self.ledger = ledger

    def shutdown_request(self, request: Any) -> None:
        """Close without the goodbye that would come before a reset."""
        self.close_request(request)


class Requests(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    server: PaymentServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = urlsplit(self.path).path
        try:
            value = json.loads(body)
            if path == "/_plan":
                self.server.ledger.set_plan(value)
                self._answer(200, {})
            elif path == "/charges":
                self._charge(value, body.decode())
            else:
                self._answer(404, {"error": "no such path"})
        except ValueError as error:
            self._answer(400, {"error": str(error)})

    def do_GET(self) -> None:
        ledger, parts = self.server.ledger, urlsplit(self.path)
        match [unquote(each) for each in parts.path.strip("/").split("/")]:
            case ["_health"]:
                self._answer(200, {})
            case ["_requests"]:
                self._answer(200, {"requests": ledger.requests()})
            case ["_charges"]:
                self._answer(200, _told(ledger.charges()))
            case ["charges"]:
                order = parse_qs(parts.query).get("order", [None])[0]
                self._tell(order or "", 200, ledger.charges(order=order))
            case ["charges", key]:
                found = ledger.charges(key=key)
                self._tell(found[0].order if found else "", 200 if found else 404, found)
            case ["orders", order]:
                found = ledger.charges(order=order)
                self._tell(order, 200 if found else 404, found)
            case _:
                self._answer(404, {"error": "no such path"})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: `/_requests` tells more."""

    # What is asked for

    def _tell(self, order: str, status: int, charges: Sequence[Charge]) -> None:
        number, _, _, behaviour = self._note(order, "")
        if self._spoil(number, behaviour):
            return
        self.server.ledger.conclude(number, f"told of {len(charges)}")
        if behaviour.does is Does.SLOW:
            time.sleep(behaviour.seconds)
        self._answer(status, _told(charges))

    def _charge(self, value: Any, body: str) -> None:
        if not (isinstance(value, dict) and isinstance(value.get("order"), str) and "amount" in value):
            raise ValueError("a charge has an order, a text, and an amount")
        order, amount, key = value["order"], value["amount"], self.headers.get("idempotency-key")
        number, plan, honours, behaviour = self._note(order, body)
        if behaviour.does in _WITHOUT_CHARGE or (behaviour.does is Does.HANG and not behaviour.charges):
            self._spoil(number, behaviour)
            return
        seconds = behaviour.seconds if behaviour.does is Does.LATE else 0.0
        try:
            charge, is_new = self.server.ledger.charge(
                order, amount, key, honours_key=honours, concurrent=plan.concurrent, seconds=seconds
            )
        except KeyInUse:
            self.server.ledger.conclude(number, "conflict")
            self._answer(409, {"error": "a request with this key is not finished"})
            return
        except KeyOfAnother:
            self.server.ledger.conclude(number, "key of another")
            self._answer(422, {"error": "this key has come with another order or amount"})
            return
        if behaviour.does is Does.LATE and behaviour.close:
            self.server.ledger.conclude(number, "charges later, connection closed")
            self._close()
            return
        charge = self.server.ledger.await_charge(charge)
        if self._spoil(number, behaviour):
            return
        self.server.ledger.conclude(number, "charged" if is_new else "replayed")
        if behaviour.does is Does.SLOW:
            time.sleep(behaviour.seconds)
        self._answer(201 if is_new else 200, charge.as_dict())

    def _note(self, order: str, body: str) -> tuple[int, Plan, bool, Behaviour]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, plan, earlier = self.server.ledger.note(
            self.command, self.path, order, headers.get("idempotency-key"), headers, body
        )
        rule = plan.rule(self.command, order)
        honours = plan.honours_keys if rule.honours_keys is None else rule.honours_keys
        return number, plan, honours, rule.step(earlier)

    def _spoil(self, number: int, behaviour: Behaviour) -> bool:
        """Give the bad answer that is planned, or none; whether one is."""
        conclude = self.server.ledger.conclude
        match behaviour.does:
            case Does.LOSE_REQUEST:
                conclude(number, "request lost")
                self._close(reset=behaviour.reset)
            case Does.LOSE_ANSWER:
                conclude(number, "charged, answer lost")
                self._close(reset=behaviour.reset)
            case Does.REFUSE:
                conclude(number, f"refused {behaviour.status}")
                self._answer(behaviour.status, {"error": "refused"})
            case Does.TOO_MANY:
                conclude(number, "too many")
                self._answer(429, {"error": "too many"}, {"Retry-After": f"{behaviour.seconds:g}"})
            case Does.UNAVAILABLE:
                conclude(number, "unavailable")
                self._answer(503, {"error": "unavailable"})
            case Does.UNAVAILABLE_AFTER:
                conclude(number, "charged, unavailable")
                self._answer(503, {"error": "unavailable"})
            case Does.HANG:
                conclude(number, "charged, hangs" if behaviour.charges else "hangs")
                self._wait_for_the_other_end()
            case _:
                return False
        return True

    # Answers

    def _answer(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _close(self, *, reset: bool = False) -> None:
        self.close_connection = True
        if reset:  # closing a socket that lingers for no time resets the connection
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _wait_for_the_other_end(self) -> None:
        self.close_connection = True
        try:
            while self.connection.recv(4096):
                continue
        except OSError:
            return  # it is gone too


def _told(charges: Sequence[Charge]) -> dict[str, Any]:
    return {"charges": [charge.as_dict() for charge in charges]}


def end_with_parent() -> None:
    """End this process once standard input closes."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def main() -> int:
    parser = argparse.ArgumentParser(prog="payment server")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--end-with-parent", action="store_true")
    arguments = parser.parse_args()
    if arguments.end_with_parent:
        end_with_parent()
    PaymentServer(arguments.port, PaymentLedger(arguments.ledger)).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
