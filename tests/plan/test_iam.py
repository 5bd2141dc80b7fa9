"""The rights of the functions' roles, each with the call that needs it, of the schedule's, and of the producers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plan.support import Plan, plan

QUEUE = "arn:aws:sqs:eu-central-1:111122223333:orders"
DEAD_LETTER_QUEUE = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
LEDGER = "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events"
BUSINESS = "arn:aws:dynamodb:eu-central-1:111122223333:table/order_records"
STOCK = "arn:aws:dynamodb:eu-central-1:111122223333:table/stock"
TOPIC = "arn:aws:sns:eu-central-1:111122223333:orders-notifications"
KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PENDING_INDEX = "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events/index/pending"
LOG_GROUP = "(known after apply)"  # with ":*": a policy on a log group names its streams
ANYTHING = "*"

# AWS checks batch calls under the names of the single ones; there is no action for BatchExecuteStatement,
# PublishBatch or DeleteMessageBatch.
DEFAULT = {
    ("sqs:ReceiveMessage", QUEUE): "the event source mapping polls",
    ("sqs:ChangeMessageVisibility", QUEUE): "ChangeMessageVisibilityBatch hides what has to be tried again",
    ("sqs:DeleteMessage", QUEUE): "the event source mapping deletes what is settled",
    ("sqs:GetQueueAttributes", QUEUE): "the event source mapping scales by the queue's length",
    ("sqs:SendMessage", DEAD_LETTER_QUEUE): "SendMessage(Batch) of rejected and conflicting messages",
    ("dynamodb:PutItem", LEDGER): "TransactWriteItems: the ledger row; PutItem of superseded events",
    ("dynamodb:PutItem", BUSINESS): "TransactWriteItems: the business row",
    ("dynamodb:BatchGetItem", LEDGER): "BatchGetItem: what was decided before",
    ("dynamodb:PartiQLUpdate", LEDGER): "BatchExecuteStatement: UPDATE marks rows as sent",
    ("sns:Publish", TOPIC): "PublishBatch",
    ("logs:CreateLogStream", LOG_GROUP): "Lambda opens a stream for each environment of the function",
    ("logs:PutLogEvents", LOG_GROUP): "Lambda writes the log, metrics included",
    ("xray:PutTraceSegments", ANYTHING): "the function sends its trace",
    ("xray:PutTelemetryRecords", ANYTHING): "the X-Ray daemon reports about itself",
}
USE_OF_THE_KEY = {
    ("kms:Decrypt", KEY): "reading the queue and the tables, publishing to the topic",
    ("kms:GenerateDataKey", KEY): "sending to the dead-letter queue, publishing to the topic",
}
USE_OF_A_VPC = {
    ("ec2:AssignPrivateIpAddresses", ANYTHING): "Lambda connects the function to the subnets",
    ("ec2:CreateNetworkInterface", ANYTHING): "Lambda connects the function to the subnets",
    ("ec2:DeleteNetworkInterface", ANYTHING): "Lambda tidies up",
    ("ec2:DescribeNetworkInterfaces", ANYTHING): "Lambda looks for an interface it can share",
    ("ec2:DescribeSubnets", ANYTHING): "Lambda checks the subnets",
    ("ec2:UnassignPrivateIpAddresses", ANYTHING): "Lambda tidies up",
}
OWN_CODE = {
    (f"dynamodb:{action}", BUSINESS): f"TransactWriteItems: {what} in a plan of the user's own"
    for action, what in [("ConditionCheckItem", "Check"), ("DeleteItem", "Delete"), ("UpdateItem", "Update")]
}
OWN_TABLE = {(action, STOCK): call for (action, _), call in OWN_CODE.items()} | {
    ("dynamodb:PutItem", STOCK): "TransactWriteItems: Put in a plan of the user's own"
}
RECONCILER = {
    ("dynamodb:Query", PENDING_INDEX): "Query: the pending rows of a shard, oldest first",
    ("dynamodb:BatchGetItem", LEDGER): "BatchGetItem: whether they still are, and what to publish",
    ("dynamodb:PartiQLUpdate", LEDGER): "BatchExecuteStatement: UPDATE marks rows as sent",
    ("sns:Publish", TOPIC): "PublishBatch",
    ("logs:CreateLogStream", LOG_GROUP): "Lambda opens a stream for each environment of the function",
    ("logs:PutLogEvents", LOG_GROUP): "Lambda writes the log, metrics included",
    ("xray:PutTraceSegments", ANYTHING): "the function sends its trace",
    ("xray:PutTelemetryRecords", ANYTHING): "the X-Ray daemon reports about itself",
}


def variants(default: dict[tuple[str, str], str]) -> dict[str, dict[tuple[str, str], str]]:
    """What each variant of tests/fixtures/function_role adds or leaves out."""
    return {
        "default": default,
        "key": default | USE_OF_THE_KEY,
        "no_topic": {right: call for right, call in default.items() if right[0] != "sns:Publish"},
        "own_code": default | (OWN_CODE | OWN_TABLE if default is DEFAULT else {}),
        "own_layer": default | (OWN_CODE if default is DEFAULT else {}),
        "shipped_code_by_name": default,
        "vpc": default | USE_OF_A_VPC,
    }


# By module and role: they have one name.
VARIANTS = {
    (module, role, variant): needed
    for module, role, default in [("function", "worker", DEFAULT), ("reconciler", "reconciler", RECONCILER)]
    for variant, needed in variants(default).items()
}


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan("tests/fixtures/function_role", tmp_path_factory.mktemp("roles"))


def rights(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each action on each resource. The role needs no condition, Deny or NotAction, so none may be there."""
    for statement in statements:
        assert statement["effect"] in (None, "Allow")
        assert not any(statement[name] for name in ("condition", "not_actions", "not_resources", "principals"))
        for action in statement["actions"]:
            for resource in statement["resources"]:
                yield action, LOG_GROUP if resource is None else resource


@pytest.mark.parametrize(("module", "role", "variant"), VARIANTS)
@pytest.mark.case("T04", "T13", "T16", "T21")
def test_the_role_has_the_rights_that_its_calls_need_and_no_more(
    roles: Plan, module: str, role: str, variant: str
) -> None:
    document = roles.after(f'module.{module}["{variant}"].data.aws_iam_policy_document.{role}')
    assert sorted(rights(document["statement"])) == sorted(VARIANTS[module, role, variant])


@pytest.mark.parametrize("variant", variants({}))
def test_the_roles_have_no_other_policy(roles: Plan, variant: str) -> None:
    def of_iam(module: str) -> list[str]:
        return [address for address in roles.created(f'module.{module}["{variant}"]') if "iam" in address]

    assert of_iam("function") == ["aws_iam_role.worker", "aws_iam_role_policy.worker"]
    assert of_iam("reconciler") == [
        "aws_iam_role.reconciler",
        "aws_iam_role.schedule",
        "aws_iam_role_policy.reconciler",
        "aws_iam_role_policy.schedule",
    ]


def document_of(plan: Plan, module: str, name: str) -> dict[str, Any]:
    """How a policy document is written."""
    return next(
        resource["expressions"]
        for resource in plan.configuration(module)["resources"]
        if resource["address"] == f"data.aws_iam_policy_document.{name}"
    )


@pytest.mark.parametrize(("module", "role"), [("function", "worker"), ("reconciler", "reconciler")])
def test_the_rights_on_the_log_are_on_the_streams_of_the_functions_own_group(
    roles: Plan, module: str, role: str
) -> None:
    statements = document_of(roles, module, role)["statement"]
    log = next(statement for statement in statements if statement["sid"] == {"constant_value": "Log"})
    assert log["resources"]["references"] == [
        f"aws_cloudwatch_log_group.{role}.arn",
        f"aws_cloudwatch_log_group.{role}",
    ]


def test_the_schedule_may_call_the_reconciler_and_nothing_else(roles: Plan) -> None:
    (statement,) = document_of(roles, "reconciler", "schedule")["statement"]
    assert statement == {
        "actions": {"constant_value": ["lambda:InvokeFunction"]},
        "resources": {"references": ["aws_lambda_function.reconciler.arn", "aws_lambda_function.reconciler"]},
        "sid": {"constant_value": "Run"},
    }


def test_a_schedule_of_this_account_alone_takes_the_schedules_role(roles: Plan) -> None:
    (policy,) = roles.values('module.reconciler["default"].aws_iam_role.schedule', "assume_role_policy")
    assert json.loads(policy) == {
        "Statement": [
            {
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"aws:SourceAccount": "111122223333"}},
                "Effect": "Allow",
                "Principal": {"Service": "scheduler.amazonaws.com"},
            }
        ],
        "Version": "2012-10-17",
    }


def test_only_tracing_and_the_vpc_know_no_resource_to_name() -> None:
    everything = [right for variant in VARIANTS.values() for right in variant]
    assert {action.split(":")[0] for action, resource in everything if "*" in resource} == {"ec2", "xray"}
    assert not any("*" in action for action, _ in everything)


@pytest.mark.parametrize(("module", "role"), [("function", "worker"), ("reconciler", "reconciler")])
def test_lambda_alone_takes_the_role(roles: Plan, module: str, role: str) -> None:
    (policy,) = roles.values(f'module.{module}["default"].aws_iam_role.{role}', "assume_role_policy")
    assert json.loads(policy) == {
        "Statement": [
            {"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}
        ],
        "Version": "2012-10-17",
    }


def test_the_module_gives_each_right_on_the_right_resource(pipeline: Plan) -> None:
    def arguments(module: str) -> dict[str, str]:
        call = pipeline.configuration("minimal")["module_calls"][module]["expressions"]
        return {
            name: call[name]["references"][0]
            for name in call
            if name.endswith(("_arn", "_arns")) and "references" in call[name]
        }

    assert arguments("function") == {
        "business_table_arn": "module.tables.business_table_arn",
        "dead_letter_queue_arn": "module.queue.dead_letter_queue_arn",
        "kms_key_arn": "var.encryption.kms_key_arn",
        "ledger_table_arn": "module.tables.ledger_table_arn",
        "queue_arn": "module.queue.queue_arn",
        "topic_arns": "local.topic_arns",
    }
    assert arguments("reconciler") == {
        "kms_key_arn": "var.encryption.kms_key_arn",
        "ledger_table_arn": "module.tables.ledger_table_arn",
        "topic_arns": "local.topic_arns",
    }


@pytest.mark.parametrize("document", ["function.data.{}.worker", "reconciler[0].data.{}.reconciler"])
def test_a_topic_that_exists_is_the_one_that_may_be_published_to(pipeline: Plan, document: str) -> None:
    address = f"module.existing_topic.module.{document.format('aws_iam_policy_document')}"
    statements = pipeline.after(address)["statement"]
    assert [s["resources"] for s in statements if s["actions"] == ["sns:Publish"]] == [
        ["arn:aws:sns:eu-central-1:111122223333:refunds"]
    ]


def test_documents_of_the_caller_are_for_the_role_that_they_are_given_to(pipeline: Plan) -> None:
    assert [address for address in pipeline.created("module.full") if "aws_iam_role_policy.additional" in address] == [
        "module.function.aws_iam_role_policy.additional[0]",
        "module.reconciler[0].aws_iam_role_policy.additional[0]",
    ]


def test_each_producer_sends_from_its_own_source_only(pipeline: Plan) -> None:
    statements = pipeline.after("module.full.module.queue.data.aws_iam_policy_document.producers[0]")["statement"]
    assert [
        (
            statement["actions"],
            statement["principals"],
            [(condition["test"], condition["variable"], condition["values"]) for condition in statement["condition"]],
        )
        for statement in statements
    ] == [
        (
            ["sqs:SendMessage"],
            [{"identifiers": ["s3.amazonaws.com"], "type": "Service"}],
            [
                ("ArnEquals", "aws:SourceArn", ["arn:aws-us-gov:s3:::uploads"]),
                ("StringEquals", "aws:SourceAccount", [None]),  # the queue's, known after apply
            ],
        ),
        (
            ["sqs:SendMessage"],
            [{"identifiers": ["s3.amazonaws.com"], "type": "Service"}],
            [
                ("ArnEquals", "aws:SourceArn", ["arn:aws-us-gov:s3:::theirs"]),
                ("StringEquals", "aws:SourceAccount", ["444455556666"]),
            ],
        ),
        (
            ["sqs:SendMessage"],
            [{"identifiers": ["sns.amazonaws.com"], "type": "Service"}],
            [("ArnEquals", "aws:SourceArn", ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:uploads"])],
        ),
    ]
