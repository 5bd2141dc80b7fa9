"""Ingests a document: adds how often each of its words stands in it to the counts of all documents.

Such an effect must not run twice, and knows nothing of that itself. Where it fails halfway, its document stays
claimed: a person looks at the counts, and decides.
"""

import os
import re
from collections import Counter
from typing import Any

import boto3

WORDS = os.environ["WORDS_TABLE"]
dynamodb, s3 = boto3.client("dynamodb"), boto3.client("s3")


def handler(request: dict[str, Any], _context: object) -> dict[str, Any]:
    """`request` is the execution's input: the event, and the key it was claimed by. The result is recorded."""
    text = read(request["event"])
    words = Counter(re.findall(r"\w+", text.lower()))
    for word, times in words.items():
        dynamodb.update_item(
            TableName=WORDS,
            Key={"word": {"S": word}},
            UpdateExpression="ADD times :times",
            ExpressionAttributeValues={":times": {"N": str(times)}},
        )
    print(f"{request['key']}: {words.total()} words")
    return {"words": words.total()}


def read(event: dict[str, Any]) -> str:
    """The text of a document: in the event itself, or of the object that S3 tells of."""
    if "text" in event:
        return str(event["text"])
    found = s3.get_object(Bucket=event["s3"]["bucket"]["name"], Key=event["s3"]["object"]["key"])
    return str(found["Body"].read().decode())
