"""Makes duplicate messages harmless: database writes once, notifications never lost.

What a plan in Python is written with (docs/writing-a-plan.md shows how), and an effect outside the database.
"""

from idempotent_consumer.condition import Attr, Condition
from idempotent_consumer.effect import Applied, Final, NotApplied, Retryable, Uncertain, Unknown
from idempotent_consumer.entry_point import operation, pipeline
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Action, Check, Delete, Notification, Plan, Put, Retry, Supersede, Update
from idempotent_consumer.rejection import InvalidPlan, Reject
from idempotent_consumer.settings import WriteMode

__all__ = [
    "Action",
    "Applied",
    "Attr",
    "Check",
    "Condition",
    "Delete",
    "Event",
    "Final",
    "InvalidPlan",
    "NotApplied",
    "Notification",
    "Plan",
    "Put",
    "Reject",
    "Retry",
    "Retryable",
    "Supersede",
    "Uncertain",
    "Unknown",
    "Update",
    "WriteMode",
    "operation",
    "pipeline",
]
