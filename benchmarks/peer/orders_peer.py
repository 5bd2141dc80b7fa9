"""The same consumer with Powertools for AWS Lambda (Python), written as its documentation advises.

Batch processing with partial responses, and the idempotency utility on the function that handles an order, as in
"Idempotency › Batch integration" (https://docs.powertools.aws.dev/lambda/python/latest/utilities/idempotency/), with
default settings, but for the window of 30 days. Where there is a choice, the cheaper one is taken: one DynamoDB client
is shared with the persistence layer, and it writes the row, which takes 5 % less CPU than a `Table` resource. Nothing
is logged, measured or traced but one printed line a call.

What this does not do: the idempotency record, the row and the notification are written one after the other, and no
table keeps the notification. A process that dies in between leaves a row that nobody hears of, until the message comes
back and all is done again; by code that has changed since, a second time in another way.

What the module pays for that: two write units a row where this pays one, and a larger ledger row, which holds the
notification until it is published (`units` counts both).
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any

import boto3
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.typing import LambdaContext
from boto3.dynamodb.types import TypeSerializer

BUSINESS_TABLE = os.environ["BUSINESS_TABLE"]
TOPIC_ARN = os.environ["TOPIC_ARN"]

dynamodb = boto3.client("dynamodb")
sns = boto3.client("sns")
serialize = TypeSerializer().serialize
processor = BatchProcessor(event_type=EventType.SQS)
config = IdempotencyConfig(event_key_jmespath="id", expires_after_seconds=30 * 86_400)
persistence = DynamoDBPersistenceLayer(
    table_name=os.environ["LEDGER_TABLE"], key_attr="event_id", expiry_attr="ttl", boto3_client=dynamodb
)


@idempotent_function(data_keyword_argument="order", config=config, persistence_store=persistence)
def handle_order(order: dict[str, Any], message: str) -> None:
    dynamodb.put_item(TableName=BUSINESS_TABLE, Item={name: serialize(value) for name, value in order.items()})
    sns.publish(
        TopicArn=TOPIC_ARN,
        Message=message,
        MessageAttributes={"event_id": {"DataType": "String", "StringValue": order["id"]}},
    )


def handle_record(record: SQSRecord) -> None:
    order = json.loads(record.body, parse_float=Decimal)
    handle_order(order=order, message=record.body)


def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    config.register_lambda_context(context)
    answer = process_partial_response(event=event, record_handler=handle_record, processor=processor, context=context)
    print(json.dumps({"level": "INFO", "records": len(event["Records"])}))
    return answer
