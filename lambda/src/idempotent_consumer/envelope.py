"""From an SQS message body to the events in it. The envelope is configured, never guessed."""

from typing import Any
from urllib.parse import unquote_plus

from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Envelope

Data = dict[str, Any]

# S3 sends one record a message. A bound, since a body has room for a hundred thousand that nobody could process.
MAX_EVENTS = 1_000


def open_envelope(body: str, envelope: Envelope) -> list[Data | Rejected]:
    """The events of one message, in order; one that is malformed stands in the list as its own rejection.

    An empty list is S3's test event, which carries none. Raises Rejected when the body as a whole is unusable.
    """
    content = _json_object(body, "the body")
    if envelope is Envelope.SNS:
        return [_sns_message(content)]
    if envelope is Envelope.S3:
        return _s3_records(content)
    if envelope is Envelope.EVENTBRIDGE and not ("detail-type" in content and "detail" in content):
        raise Rejected("not-an-eventbridge-event", "the body has no detail-type and detail")
    return [content]


def looks_like_sns(data: Data) -> bool:
    """Whether an event without an id is an SNS envelope that the setting does not open."""
    return data.get("Type") == "Notification" and isinstance(data.get("Message"), str)


def _json_object(text: str, what: str) -> Data:
    if text.startswith("\ufeff"):
        raise Rejected("bad-json", f"{what} begins with a byte order mark")
    value = loads(text)
    if isinstance(value, str):
        raise Rejected("not-an-object", f"{what} is a JSON string: was it encoded twice?")
    if not isinstance(value, dict):
        raise Rejected("not-an-object", f"{what} is JSON, but not an object")
    return value


def _sns_message(content: Data) -> Data:
    kind, message = content.get("Type"), content.get("Message")
    if kind in ("SubscriptionConfirmation", "UnsubscribeConfirmation"):
        raise Rejected("sns-confirmation", f"an SNS {kind}: open its SubscribeURL to answer it")
    if kind != "Notification" or not isinstance(message, str):
        raise Rejected("not-an-sns-envelope", "no SNS notification: is raw message delivery on? Then use raw")
    return _json_object(message, "the SNS message")


def _s3_records(content: Data) -> list[Data | Rejected]:
    if content.get("Event") == "s3:TestEvent" and "Records" not in content:
        return []
    records = content.get("Records")
    if not isinstance(records, list) or not records:
        raise Rejected("not-an-s3-notification", "the body has no Records")
    if len(records) > MAX_EVENTS:
        raise Rejected("too-many-events", f"the body has {len(records)} Records, over {MAX_EVENTS}")
    return [_s3_record(record) for record in records]


def _s3_record(record: Any) -> Data | Rejected:
    try:
        key = record["s3"]["object"]["key"]
        # Keys arrive form-encoded (Amazon S3 User Guide, "Event message structure").
        decoded = unquote_plus(key, errors="strict")
        return {**record, "s3": {**record["s3"], "object": {**record["s3"]["object"], "key": decoded}}}
    except UnicodeDecodeError:
        return Rejected("bad-object-key", "the object's key is not form-encoded UTF-8")
    except (TypeError, KeyError, AttributeError):
        return Rejected("not-an-s3-notification", "a record has no s3.object.key")
