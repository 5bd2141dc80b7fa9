"""What can go wrong at the consumer's calls."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError


class Killed(BaseException):
    """The process dies here: nothing of it runs after that."""


class FaultKind(Enum):
    """What happens at a call."""

    KILLED_BEFORE = "the process is killed before {}"
    KILLED_AFTER = "the process is killed after {}"
    ANSWER_LOST = "the answer to {} is lost"
    REFUSED = "{} is refused"


@dataclass(frozen=True, slots=True)
class Fault:
    """kind at one call of all, by its number from 1; or, REFUSED, at all calls of an operation in one delivery."""

    kind: FaultKind
    number: int = 0
    operation: str = ""

    def applies(self, number: int, operation: str) -> bool:
        return self.operation == operation if self.operation else self.number == number

    def before(self, operation: str) -> None:
        """Raises what keeps the call from taking effect."""
        if self.kind is FaultKind.KILLED_BEFORE:
            raise Killed
        if self.kind is FaultKind.REFUSED:
            response: Any = {"Error": {"Code": "InternalError", "Message": "refused by the test kit"}}
            raise ClientError(response, operation)

    def after(self) -> None:
        """Raises what keeps the consumer from learning of the effect."""
        if self.kind is FaultKind.KILLED_AFTER:
            raise Killed
        if self.kind is FaultKind.ANSWER_LOST:
            raise ConnectionClosedError(endpoint_url="https://aws.example")
