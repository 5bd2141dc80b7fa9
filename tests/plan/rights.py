"""The rights of each role: what they are on, the call or state that needs each, and the test that takes it away.

AWS checks batch calls under the names of the single ones: there is no action for BatchExecuteStatement, PublishBatch or
DeleteMessageBatch. tests/plan/privileges.py makes docs/privileges.md of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

SQS = "arn:aws:sqs:eu-central-1:111122223333"
TABLE = "arn:aws:dynamodb:eu-central-1:111122223333:table"
FUNCTION = "arn:aws:lambda:eu-central-1:111122223333:function"
# What a module makes itself has no ARN yet; further tests look at how such a right is written.
UNKNOWN = "(known after apply)"


class On(Enum):
    """What a right is on: in words, and its ARN in the plan of tests/fixtures/roles."""

    QUEUE = ("the queue", f"{SQS}:orders")
    DEAD_LETTERS = ("the dead-letter queue", f"{SQS}:orders-dlq")
    LEDGER = ("the ledger", f"{TABLE}/orders-processed-events")
    PENDING = ("the ledger's index `pending`", f"{TABLE}/orders-processed-events/index/pending")
    BUSINESS = ("the business table", f"{TABLE}/order_records")
    OWN_TABLES = ("the tables of `function.table_arns`", f"{TABLE}/stock")
    CLAIMS = ("the table of claims", UNKNOWN)
    TOPIC = ("the topic", "arn:aws:sns:eu-central-1:111122223333:orders-notifications")
    KEY = ("the key", "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab")
    SECRET = ("the secret", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd")
    PARAMETER = ("the parameter", "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token")
    STATE_MACHINE = ("the state machine", UNKNOWN)
    GUARD = ("the guard", f"{FUNCTION}:orders-guard")
    EFFECT = ("the effect's function", f"{FUNCTION}:charge")
    RECONCILER = ("the reconciler", f"{FUNCTION}:orders-reconciler")
    # With ":*": a policy on a log group names its streams.
    LOG = ("the streams of the function's log group", UNKNOWN)
    ANYTHING = ("`*`", "*")

    def __init__(self, words: str, arn: str) -> None:
        self.words = words
        self.arn = arn


@dataclass(frozen=True)
class Right:
    """taken_away: the end-to-end test that does so; empty where the emulator does not ask for the right."""

    action: str
    on: On
    call: str
    taken_away: str = ""


Rights = Sequence[Right]

# When a role has some of its rights.
ALWAYS = ""
GIVEN_TOPIC = "a topic"
GIVEN_KEY = "`encryption.kms_key_arn`"
GIVEN_VPC = "`function.vpc`"
OWN_CODE = "code of your own"
OWN_TABLES = "code of your own and `function.table_arns`"
GIVEN_SECRET = "`http.secret.secret_arn`"
GIVEN_PARAMETER = "`http.secret.parameter_arn`"
FUNCTION_GUARD = '`guard = "function"`'
DIRECT_GUARD = '`guard = "direct"`'
EFFECT_FUNCTION = "`effect.function`"


@dataclass(frozen=True)
class Role:
    """A role's rights, by when it has them.

    policy: the address of its policy document, with {} for the variant. variants: of tests/fixtures/roles, each with
    what is given there.
    """

    title: str
    policy: str
    rights: Mapping[str, Rights]
    variants: Mapping[str, Sequence[str]]

    @property
    def all(self) -> list[Right]:
        return [right for rights in self.rights.values() for right in rights]

    def needed(self, variant: str) -> list[tuple[str, str]]:
        given = (ALWAYS, *self.variants[variant])
        return sorted((right.action, right.on.arn) for when in given for right in self.rights[when])

    def address(self, variant: str) -> str:
        return self.policy.format(variant)

    def checked(self, *given: str) -> set[str]:
        """The actions that end-to-end tests take away from the role that has what is given."""
        return {right.action for when in (ALWAYS, *given) for right in self.rights[when] if right.taken_away}


def queue_rights(hidden: str, sent: str) -> Rights:
    """Of a function that reads the queue. hidden, sent: the tests that take two of the rights away."""
    return (
        Right("sqs:ReceiveMessage", On.QUEUE, "the event source mapping polls"),
        Right("sqs:DeleteMessage", On.QUEUE, "the event source mapping deletes what is settled"),
        Right("sqs:GetQueueAttributes", On.QUEUE, "the event source mapping scales by the queue's length"),
        Right(
            "sqs:ChangeMessageVisibility",
            On.QUEUE,
            "`ChangeMessageVisibilityBatch` hides what has to be tried again",
            hidden,
        ),
        Right(
            "sqs:SendMessage",
            On.DEAD_LETTERS,
            "`SendMessage` of what can never succeed, or waits for a person",
            sent,
        ),
    )


LOG_AND_TRACE = (
    Right("logs:CreateLogStream", On.LOG, "Lambda opens a stream for each environment of the function"),
    Right("logs:PutLogEvents", On.LOG, "Lambda writes the log, metrics included"),
    Right("xray:PutTraceSegments", On.ANYTHING, "the function sends its trace"),
    Right("xray:PutTelemetryRecords", On.ANYTHING, "the X-Ray daemon reports about itself"),
)
JOIN_VPC = (
    Right("ec2:AssignPrivateIpAddresses", On.ANYTHING, "Lambda connects the function to the subnets"),
    Right("ec2:CreateNetworkInterface", On.ANYTHING, "Lambda connects the function to the subnets"),
    Right("ec2:DeleteNetworkInterface", On.ANYTHING, "Lambda tidies up"),
    Right("ec2:DescribeNetworkInterfaces", On.ANYTHING, "Lambda looks for an interface it can share"),
    Right("ec2:DescribeSubnets", On.ANYTHING, "Lambda checks the subnets"),
    Right("ec2:UnassignPrivateIpAddresses", On.ANYTHING, "Lambda tidies up"),
)
# What DynamoDB asks of those who use a table with a key of the account's own, whatever they do with it:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
USES_A_TABLE = "using an encrypted table"


def key_rights(decrypted: str, generated: str) -> Rights:
    return (
        Right("kms:Decrypt", On.KEY, f"{decrypted}; Lambda reads the function's variables"),
        Right("kms:GenerateDataKey", On.KEY, generated),
    )
