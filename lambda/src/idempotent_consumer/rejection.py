"""Why an event can never succeed."""


class Rejected(Exception):
    """The event can never succeed, whatever is tried: it belongs in the dead-letter queue.

    `reason` is one of the codes in docs/reasons.md. `detail` is for the operator who reads
    the dead letter; it may name fields of the body, so it travels with the body and is never logged.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
