"""Why an event cannot be processed as it is."""

from idempotent_consumer.message import REFUSED_CHARACTER

_MAX_REASON = 256


def short_reason(reason: object, default: str) -> str:
    """A reason as a dead letter can carry it: at most 256 characters that SQS takes; `default` for a blank one."""
    return REFUSED_CHARACTER.sub("?", str(reason)).strip()[:_MAX_REASON] or default


class Rejected(Exception):
    """The event can never succeed, whatever is tried: it belongs in the dead-letter queue.

    `reason` is one of the codes in docs/reasons.md, or what a plan of the user's says. `detail` is for the operator
    who reads the dead letter; it may name fields of the body, so it travels with the body and is never logged.
    """

    # Of an exception of a user's that does not call this class's constructor.
    reason = "rejected"
    detail = ""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class Reject(Rejected):
    """Says that an event can never succeed: raised by a plan, or what the failing of a condition means.

    The message goes to the dead-letter queue with this reason, a short text that people search by ("out-of-stock");
    over 256 characters are cut off. The reason is logged, the detail is not: it may quote the event.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(short_reason(reason, "rejected"), str(detail))


class InvalidPlan(ValueError):
    """A plan that makes no sense, whatever the event: its code has to be mended. Until then the event is retried.

    The text is logged, so it names what is wrong with the plan and quotes nothing of an event.
    """
