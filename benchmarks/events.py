"""The traffic of the benchmark: orders of about 300 bytes of JSON, as SQS records. The same in each run."""

from __future__ import annotations

import hashlib
import json
from typing import Any

ACCOUNT, REGION = "123456789012", "us-east-1"
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
# A receipt handle has about 400 characters on AWS.
RECEIPT_HANDLE = "AQEB" + "wJnKyrHigUMZj6rYigCgxlaS3SLy0a" * 13


def order(number: int, prefix: str = "order", padding: int = 0) -> dict[str, Any]:
    """The business event with this number. padding: bytes to make it larger by."""
    return {
        "id": f"{prefix}-{number:06d}",
        "customer": f"customer-{number % 997:04d}",
        "currency": "EUR",
        "total": 149.85,
        "express": number % 5 == 0,
        "items": [
            {"sku": f"SKU-{100 + number % 800}", "quantity": 1 + number % 4, "price": 24.95},
            {"sku": f"SKU-{200 + number % 700}", "quantity": 2, "price": 12.5},
            {"sku": f"SKU-{300 + number % 600}", "quantity": 1, "price": 99.9},
        ],
        "note": "Leave it with the neighbour, please." + "." * padding,
    }


def body(number: int, prefix: str = "order", padding: int = 0) -> str:
    """The message body with this event."""
    return json.dumps(order(number, prefix, padding))


def record(number: int, receive_count: int = 1, padding: int = 0) -> dict[str, Any]:
    """The message as Lambda hands it to the function. receive_count: 2 or more for a redelivered one."""
    text = body(number, padding=padding)
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return {
        "messageId": f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:]}",
        "receiptHandle": RECEIPT_HANDLE,
        "body": text,
        "attributes": {
            "ApproximateReceiveCount": str(receive_count),
            "SentTimestamp": "1767225600000",
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": "1767225600012",
        },
        "messageAttributes": {},
        "md5OfBody": digest,
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE_ARN,
        "awsRegion": REGION,
    }


def invocation(size: int, receive_count: int = 1, first: int = 0, padding: int = 0) -> dict[str, Any]:
    """A batch of `size` different events, numbered from `first`."""
    return {"Records": [record(number, receive_count, padding) for number in range(first, first + size)]}
