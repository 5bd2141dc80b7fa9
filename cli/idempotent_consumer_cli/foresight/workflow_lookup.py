"""What a workflow's idempotency table holds, and what follows from it for letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.items import Item
from idempotent_consumer.workflow.settings import WorkflowSettings
from idempotent_consumer_cli.consumer.executions import Executions
from idempotent_consumer_cli.foresight.prospect import Fate, Foretold
from idempotent_consumer_cli.foresight.row_lookup import Known
from idempotent_consumer_cli.foresight.workflow import CLAIMED, NO_ROOM, by_claim, is_in_question, why_stays
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.workflow import open_for_replay
from idempotent_consumer_cli.rows.claim import ATTRIBUTES, Claim, read_claim
from idempotent_consumer_cli.rows.single_reads import rows_of


class ClaimTable:
    """Consistent reads of a workflow's claims, without the results. dynamodb: a boto3 client.

    Each method raises what a call to DynamoDB raises, and CommandError.
    """

    def __init__(self, dynamodb: Any, settings: WorkflowSettings) -> None:
        self._dynamodb = dynamodb
        self._settings = settings

    def claims(self, keys: Iterable[str]) -> dict[str, Claim]:
        """The claims of these keys, by key."""
        return {row["pk"]["S"]: read_claim(row) for row in self._read(keys, ATTRIBUTES)}

    def statuses(self, event_ids: Iterable[str]) -> Iterator[Item]:
        """What `outcome.Outcomes` asks for."""
        for row in self._read(event_ids, ("fingerprint", "pk", "status")):
            yield {"event_id": row["pk"], **row}

    def _read(self, keys: Iterable[str], attributes: Sequence[str]) -> Iterator[Item]:
        namespace = {"S": self._settings.namespace}
        wanted: list[Item] = [{"pk": {"S": key}, "sk": namespace} for key in dict.fromkeys(keys)]
        return rows_of(self._dynamodb, self._settings.table, wanted, attributes)


class WorkflowJudge:
    """See `row_lookup.Judge`."""

    def __init__(self, table: ClaimTable, executions: Executions, settings: WorkflowSettings, *, is_fifo: bool) -> None:
        self._table = table
        self._executions = executions
        self._settings = settings
        self._is_fifo = is_fifo

    def open(self, letter: Letter) -> OpenedLetter:
        return open_for_replay(letter, self._settings, is_fifo=self._is_fifo)

    def read(self, opened: Sequence[OpenedLetter]) -> Known:
        events = [event for each in opened for event in each.events]
        claims = self._table.claims(each.event.id for each in events if each.event and each.rejected is None)

        def known(event: Event) -> Foretold:
            claim = claims.get(event.id)
            execution = self._executions.read(claim.owner) if claim and is_in_question(claim) else None
            return by_claim(event, claim, execution)

        return known

    def has_forgotten(self, letter: Letter, first_ms: int, now_ms: int) -> bool:
        """Its key was claimed, or may have been, and the claim has expired: nothing else tells of the effect."""
        if now_ms - first_ms > self._settings.retention_seconds * 1000:
            return True
        return letter.reason in CLAIMED or (letter.reason is None and letter.is_of_claim)

    def will_forget(self, foretold: Foretold, now_ms: int) -> bool:
        """DynamoDB deletes a claim some time after it expires, perhaps while the replay waits in the queue."""
        if foretold.fate is not Fate.NO_OP or foretold.claim is None or foretold.claim.expires_ms is None:
            return False
        return foretold.claim.expires_ms < now_ms + self._settings.backoff.retention_seconds * 1000

    def why_stays(self, letter: Letter, events: Sequence[Foretold]) -> str:
        is_known_by_key_only = self._settings.event_id is None
        return NO_ROOM if is_known_by_key_only and events and letter.key is None else why_stays(letter, events)
