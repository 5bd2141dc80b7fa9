"""The plan of the shipped function: one row and one notification, both selected from the event by the settings."""

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Notification, Plan, Planner, Put
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import Settings, WriteMode


def declarative_planner(settings: Settings) -> Planner:
    """All is selected by JMESPath: the row by `event.item`, the message by `notification.message`."""

    def plan(event: Event) -> Plan:
        values = settings.item.search(event.data)
        if not isinstance(values, dict):
            raise Rejected("item-not-an-object", f"{settings.item.text} selects no object")
        is_newer = settings.write_mode is WriteMode.NEWER
        version = settings.version.search(event.data) if is_newer and settings.version else None
        write = Put(settings.business_table, values, settings.write_mode, version)
        return Plan([write], _notification(event) if settings.topic_arn else None)

    def _notification(event: Event) -> Notification:
        attributes = {name: path.search(event.data) for name, path in settings.attributes.items()}
        return Notification(settings.message.search(event.data), attributes)

    return plan
