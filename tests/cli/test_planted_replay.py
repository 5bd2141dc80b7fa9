"""A replay sends a body to the last character, whatever it looks like."""

from __future__ import annotations

from typing import Any

import pytest

from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.sending import Pace, Sender


class Queue:
    """Takes SQS's call, as its client does."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.bodies += [entry["MessageBody"] for entry in Entries]
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}


@pytest.mark.parametrize("body", [' {"id": "o-1"}\r\n', '{ "id" : "o-1", "total" : 1.50 }', "\t", "Grüße 🎉"])
def test_a_body_goes_back_character_by_character(body: str) -> None:
    queue = Queue()
    sender = Sender(queue, "https://sqs.us-east-1.amazonaws.com/111122223333/orders", Pace(None), is_fifo=False)
    assert sender.send([Letter("m-1", body, {}, {})]) == {}
    assert queue.bodies == [body]
