"""The rights of the roles, each with the call or state that needs it, and of those who send to the queues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
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
SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd"
PARAMETER = "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token"
PENDING_INDEX = "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events/index/pending"
GUARD = "arn:aws:lambda:eu-central-1:111122223333:function:orders-guard"
EFFECT = "arn:aws:lambda:eu-central-1:111122223333:function:charge"
# What a module makes itself has no ARN yet; further tests look at how such a right is written.
LOG_GROUP = "(known after apply)"  # with ":*": a policy on a log group names its streams
CLAIMS = STATE_MACHINE = LOG_GROUP
ANYTHING = "*"

# What the modules would learn from AWS, and pass on to the roles.
KNOWN_ARNS = {
    "function": {"function_arn": GUARD},
    "queue": {"dead_letter_queue_arn": DEAD_LETTER_QUEUE, "queue_arn": QUEUE},
    "tables": {"business_table_arn": BUSINESS, "ledger_table_arn": LEDGER},
}

# AWS checks batch calls under the names of the single ones; there is no action for BatchExecuteStatement,
# PublishBatch or DeleteMessageBatch.
FUNCTION = {
    ("sqs:ReceiveMessage", QUEUE): "the event source mapping polls",
    ("sqs:ChangeMessageVisibility", QUEUE): "ChangeMessageVisibilityBatch hides what has to be tried again",
    ("sqs:DeleteMessage", QUEUE): "the event source mapping deletes what is settled",
    ("sqs:GetQueueAttributes", QUEUE): "the event source mapping scales by the queue's length",
    ("sqs:SendMessage", DEAD_LETTER_QUEUE): "SendMessage(Batch) of what can never succeed, or waits for a person",
    ("logs:CreateLogStream", LOG_GROUP): "Lambda opens a stream for each environment of the function",
    ("logs:PutLogEvents", LOG_GROUP): "Lambda writes the log, metrics included",
    ("xray:PutTraceSegments", ANYTHING): "the function sends its trace",
    ("xray:PutTelemetryRecords", ANYTHING): "the X-Ray daemon reports about itself",
}
PIPELINE = FUNCTION | {
    ("dynamodb:PutItem", LEDGER): "TransactWriteItems: the ledger row; PutItem of superseded events",
    ("dynamodb:PutItem", BUSINESS): "TransactWriteItems: the business row",
    ("dynamodb:BatchGetItem", LEDGER): "BatchGetItem: what was decided before",
    ("dynamodb:PartiQLUpdate", LEDGER): "BatchExecuteStatement: UPDATE marks rows as sent",
    ("sns:Publish", TOPIC): "PublishBatch",
}
OPERATION = FUNCTION | {
    (
        "dynamodb:UpdateItem",
        LEDGER,
    ): "UpdateItem claims, completes, fails and parks; the row it finds comes with its answer",
}
STARTER = FUNCTION | {("states:StartExecution", STATE_MACHINE): "StartExecution for each event of a message"}
# Of functions that nothing but Step Functions calls.
CALLED_FUNCTION = {right: call for right, call in FUNCTION.items() if not right[0].startswith("sqs:")}
WORKFLOW_GUARD = CALLED_FUNCTION | {
    ("dynamodb:UpdateItem", CLAIMS): "UpdateItem claims a key; the row it finds comes with its answer"
}
# https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
# https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html
LOG_DELIVERY = {
    (f"logs:{action}", ANYTHING): "Step Functions has CloudWatch deliver the log to its group"
    for action in (
        "CreateLogDelivery",
        "DeleteLogDelivery",
        "DescribeLogGroups",
        "DescribeResourcePolicies",
        "GetLogDelivery",
        "ListLogDeliveries",
        "PutResourcePolicy",
        "UpdateLogDelivery",
    )
}
TRACES = {
    ("xray:GetSamplingRules", ANYTHING): "Step Functions asks which executions are traced",
    ("xray:GetSamplingTargets", ANYTHING): "Step Functions asks how many executions are traced",
    ("xray:PutTelemetryRecords", ANYTHING): "Step Functions reports about its tracing",
    ("xray:PutTraceSegments", ANYTHING): "Step Functions sends the trace",
}
STATE_MACHINE_ALONE = (
    LOG_DELIVERY
    | TRACES
    | {
        ("dynamodb:UpdateItem", CLAIMS): "states Complete, Park and Release",
        ("sqs:SendMessage", DEAD_LETTER_QUEUE): "state Dead letter",
    }
)
CALL_OF_THE_GUARD = {("lambda:InvokeFunction", GUARD): "state Guard"}
CALL_OF_THE_EFFECT = {("lambda:InvokeFunction", EFFECT): "state Effect"}
# The direct state Guard is an UpdateItem, as others are.
LOOK_UP = {("dynamodb:GetItem", CLAIMS): "state Look up claim"}
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


PIPELINES = {
    "default": PIPELINE,
    "key": PIPELINE | USE_OF_THE_KEY,
    "no_topic": {right: call for right, call in PIPELINE.items() if right[0] != "sns:Publish"},
    "own_code": PIPELINE | OWN_CODE | OWN_TABLE,
    "own_layer": PIPELINE | OWN_CODE,
    "shipped_code_by_name": PIPELINE,
    "vpc": PIPELINE | USE_OF_A_VPC,
}
RECONCILERS = {
    "default": RECONCILER,
    "key": RECONCILER | USE_OF_THE_KEY,
    "no_topic": {right: call for right, call in RECONCILER.items() if right[0] != "sns:Publish"},
    "own_code": RECONCILER,
    "own_layer": RECONCILER,
    "shipped_code_by_name": RECONCILER,
    "vpc": RECONCILER | USE_OF_A_VPC,
}
OPERATIONS = {
    "http": OPERATION,
    "key": OPERATION | USE_OF_THE_KEY,
    "own_code": OPERATION,
    "parameter": OPERATION | {("ssm:GetParameter", PARAMETER): "GetParameter: what the provider knows the caller by"},
    "secret": OPERATION | {("secretsmanager:GetSecretValue", SECRET): "GetSecretValue: as GetParameter"},
    "vpc": OPERATION | USE_OF_A_VPC,
}
WORKFLOWS = {
    "direct": STATE_MACHINE_ALONE | LOOK_UP | CALL_OF_THE_EFFECT,
    "direct_fragment": STATE_MACHINE_ALONE | LOOK_UP,
    "fragment": STATE_MACHINE_ALONE | CALL_OF_THE_GUARD,
    "function": STATE_MACHINE_ALONE | CALL_OF_THE_GUARD | CALL_OF_THE_EFFECT,
    "key": STATE_MACHINE_ALONE | CALL_OF_THE_GUARD | CALL_OF_THE_EFFECT | USE_OF_THE_KEY,
    "vpc": STATE_MACHINE_ALONE | CALL_OF_THE_GUARD | CALL_OF_THE_EFFECT,
}
WITH_A_GUARD = [variant for variant in WORKFLOWS if not variant.startswith("direct")]
OF_A_VARIANT: dict[str, dict[tuple[str, str], str]] = {"key": USE_OF_THE_KEY, "vpc": USE_OF_A_VPC}
STARTERS = {variant: STARTER | OF_A_VARIANT.get(variant, {}) for variant in WORKFLOWS}
GUARDS = {variant: WORKFLOW_GUARD | OF_A_VARIANT.get(variant, {}) for variant in WITH_A_GUARD}
# By the policy's address, after tests/fixtures/roles.
NEEDED = {
    f'module.{module}["{variant}"].{part}data.aws_iam_policy_document.{role}': needed
    for module, part, role, variants in [
        ("pipeline", "module.function.", "worker", PIPELINES),
        ("pipeline", "module.reconciler[0].", "reconciler", RECONCILERS),
        ("operation", "module.function.", "worker", OPERATIONS),
        ("workflow", "module.starter.", "worker", STARTERS),
        ("workflow", "module.guard[0].", "worker", GUARDS),
        ("workflow", "", "workflow", WORKFLOWS),
    ]
    for variant, needed in variants.items()
}
FUNCTIONS = [
    (("pipeline", "function"), "worker"),
    (("pipeline", "reconciler"), "reconciler"),
    (("operation", "function"), "worker"),
    (("workflow", "starter"), "worker"),
    (("workflow", "guard"), "worker"),
]


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("roles")
    for module, arns in KNOWN_ARNS.items():
        name_arns(folder / "modules" / module, arns)
    return plan("tests/fixtures/roles", folder)


def name_arns(module: Path, arns: dict[str, str]) -> None:
    """Let a module's outputs say ARNs before there is anything to have one."""
    outputs = [f'output "{name}" {{\n  value = "{arn}"\n}}\n' for name, arn in arns.items()]
    module.mkdir(parents=True)
    (module / "arns_override.tf").write_text("".join(outputs))


def rights(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each action on each resource. The role needs no condition, Deny or NotAction, so none may be there."""
    for statement in statements:
        assert statement["effect"] in (None, "Allow")
        assert not any(statement[name] for name in ("condition", "not_actions", "not_resources", "principals"))
        for action in statement["actions"]:
            for resource in statement["resources"]:
                yield action, LOG_GROUP if resource is None else resource


@pytest.mark.parametrize("address", NEEDED)
@pytest.mark.case("T04", "T13", "T16", "T21")
def test_the_role_has_the_rights_that_its_calls_need_and_no_more(roles: Plan, address: str) -> None:
    assert sorted(rights(roles.after(address)["statement"])) == sorted(NEEDED[address])


def test_the_rights_have_names_that_say_what_they_are_for(roles: Plan) -> None:
    def names(module: str, function: str = "function") -> list[str]:
        address = f"module.{module}.module.{function}.data.aws_iam_policy_document.worker"
        return [statement["sid"] for statement in roles.after(address)["statement"]]

    common = (["ReadIntake", "DeadLetter"], ["Log", "Trace"])
    pipeline = ["CommitToLedger", "WriteRows", "ReadAndMarkLedger", "Publish"]
    assert names('pipeline["default"]') == [*common[0], *pipeline, *common[1]]
    assert names('pipeline["key"]') == [*common[0], *pipeline, "UseKey", *common[1]]
    assert names('operation["http"]') == [*common[0], "ClaimInLedger", *common[1]]
    assert names('operation["secret"]') == [*common[0], "ClaimInLedger", "ReadSecret", *common[1]]
    assert names('operation["vpc"]') == [*common[0], "ClaimInLedger", *common[1], "JoinVpc"]
    assert names('workflow["function"]', "starter") == [*common[0], "StartWorkflow", *common[1]]
    assert names('workflow["function"]', "guard[0]") == ["Claim", *common[1]]


@pytest.mark.parametrize("variant", PIPELINES)
def test_the_roles_have_no_other_policy(roles: Plan, variant: str) -> None:
    created = roles.created(f'module.pipeline["{variant}"]')
    assert [address for address in created if "iam" in address] == [
        "module.function.aws_iam_role.worker",
        "module.function.aws_iam_role_policy.worker",
        "module.reconciler[0].aws_iam_role.reconciler",
        "module.reconciler[0].aws_iam_role.schedule",
        "module.reconciler[0].aws_iam_role_policy.reconciler",
        "module.reconciler[0].aws_iam_role_policy.schedule",
    ]


@pytest.mark.parametrize("variant", OPERATIONS)
def test_the_role_of_an_operation_has_no_other_policy(roles: Plan, variant: str) -> None:
    created = roles.created(f'module.operation["{variant}"]')
    assert [address for address in created if "iam" in address] == [
        "module.function.aws_iam_role.worker",
        "module.function.aws_iam_role_policy.worker",
    ]


@pytest.mark.parametrize("variant", WORKFLOWS)
def test_the_roles_of_a_workflow_have_no_other_policy_but_the_fragments(roles: Plan, variant: str) -> None:
    created = roles.created(f'module.workflow["{variant}"]')
    assert [address for address in created if "iam" in address] == [
        "aws_iam_role.workflow",
        *(["aws_iam_role_policy.effect[0]"] if "fragment" in variant else []),
        "aws_iam_role_policy.workflow",
        *([] if variant.startswith("direct") else ["module.guard[0].aws_iam_role.worker"]),
        *([] if variant.startswith("direct") else ["module.guard[0].aws_iam_role_policy.worker"]),
        "module.starter.aws_iam_role.worker",
        "module.starter.aws_iam_role_policy.worker",
    ]


def test_what_a_fragment_may_do_is_the_state_machines_right_alone(roles: Plan) -> None:
    policy, role = roles.values('module.workflow["fragment"].aws_iam_role_policy.effect[0]', "policy", "role")
    assert (json.loads(policy), role) == ({"Statement": [], "Version": "2012-10-17"}, "orders-workflow")


def document_of(plan: Plan, modules: tuple[str, ...], name: str) -> dict[str, Any]:
    """How a policy document is written."""
    return next(
        resource["expressions"]
        for resource in plan.configuration(*modules)["resources"]
        if resource["address"] == f"data.aws_iam_policy_document.{name}"
    )


@pytest.mark.parametrize(("modules", "role"), FUNCTIONS)
def test_the_rights_on_the_log_are_on_the_streams_of_the_functions_own_group(
    roles: Plan, modules: tuple[str, ...], role: str
) -> None:
    statements = document_of(roles, modules, role)["statement"]
    log = next(statement for statement in statements if statement["sid"] == {"constant_value": "Log"})
    assert log["resources"]["references"] == [
        f"aws_cloudwatch_log_group.{role}.arn",
        f"aws_cloudwatch_log_group.{role}",
    ]


def test_claims_are_rights_on_the_workflows_own_table_and_starting_on_its_own_state_machine(roles: Plan) -> None:
    written = roles.configuration("workflow")
    statements = document_of(roles, ("workflow",), "workflow")["statement"]
    claim = next(statement for statement in statements if statement["sid"] == {"constant_value": "Claim"})
    table = ["aws_dynamodb_table.idempotency.arn", "aws_dynamodb_table.idempotency"]
    machine = ["aws_sfn_state_machine.workflow.arn", "aws_sfn_state_machine.workflow"]
    assert claim["resources"]["references"] == table
    assert written["module_calls"]["guard"]["expressions"]["rights"]["references"] == table
    assert written["module_calls"]["starter"]["expressions"]["rights"]["references"] == machine


def test_nobody_but_the_rule_of_failures_sends_to_a_workflows_dead_letter_queue_by_its_policy(roles: Plan) -> None:
    (statement,) = roles.after('module.workflow["function"].data.aws_iam_policy_document.dead_letter')["statement"]
    assert (statement["actions"], statement["resources"]) == (["sqs:SendMessage"], [DEAD_LETTER_QUEUE])
    assert statement["principals"] == [{"identifiers": ["events.amazonaws.com"], "type": "Service"}]
    (condition,) = document_of(roles, ("workflow",), "dead_letter")["statement"][0]["condition"]
    assert (condition["test"], condition["variable"]) == (
        {"constant_value": "ArnEquals"},
        {"constant_value": "aws:SourceArn"},
    )
    assert condition["values"]["references"][0] == "aws_cloudwatch_event_rule.failure.arn"


def test_the_schedule_may_call_the_reconciler_and_nothing_else(roles: Plan) -> None:
    (statement,) = document_of(roles, ("pipeline", "reconciler"), "schedule")["statement"]
    assert statement == {
        "actions": {"constant_value": ["lambda:InvokeFunction"]},
        "resources": {"references": ["aws_lambda_function.reconciler.arn", "aws_lambda_function.reconciler"]},
        "sid": {"constant_value": "Run"},
    }


def test_a_schedule_of_this_account_alone_takes_the_schedules_role(roles: Plan) -> None:
    (policy,) = roles.values(
        'module.pipeline["default"].module.reconciler[0].aws_iam_role.schedule', "assume_role_policy"
    )
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


def test_only_tracing_log_deliveries_and_the_vpc_know_no_resource_to_name() -> None:
    everything = [right for variant in NEEDED.values() for right in variant]
    assert {action.split(":")[0] for action, resource in everything if "*" in resource} == {"ec2", "logs", "xray"}
    of_state_machines = [right for variant in WORKFLOWS.values() for right in variant if right[1] == ANYTHING]
    assert set(of_state_machines) == {*LOG_DELIVERY, *TRACES}
    assert not any("*" in action for action, _ in everything)


@pytest.mark.parametrize(
    "role",
    [
        'module.pipeline["default"].module.function.aws_iam_role.worker',
        'module.pipeline["default"].module.reconciler[0].aws_iam_role.reconciler',
        'module.operation["http"].module.function.aws_iam_role.worker',
        'module.workflow["function"].module.guard[0].aws_iam_role.worker',
        'module.workflow["function"].module.starter.aws_iam_role.worker',
    ],
)
def test_lambda_alone_takes_the_role(roles: Plan, role: str) -> None:
    assert_taken_by("lambda.amazonaws.com", roles, role)


def test_step_functions_alone_takes_the_role_of_a_state_machine(roles: Plan) -> None:
    assert_taken_by("states.amazonaws.com", roles, 'module.workflow["function"].aws_iam_role.workflow')


def assert_taken_by(service: str, roles: Plan, role: str) -> None:
    (policy,) = roles.values(role, "assume_role_policy")
    assert json.loads(policy) == {
        "Statement": [{"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": service}}],
        "Version": "2012-10-17",
    }


def test_the_module_gives_each_right_on_the_right_resource(pipeline: Plan) -> None:
    def expressions(module: str) -> dict[str, Any]:
        return dict(pipeline.configuration("minimal")["module_calls"][module]["expressions"])

    def arguments(module: str) -> dict[str, str]:
        return {
            name: written["references"][0]
            for name, written in expressions(module).items()
            if name.endswith(("_arn", "_arns")) and "references" in written
        }

    assert arguments("function") == {"kms_key_arn": "var.encryption.kms_key_arn"}
    # In the order of the object's names: batch_size, dead_letter_queue_arn, queue_arn.
    assert [name for name in expressions("function")["intake"]["references"] if name.count(".") > 1] == [
        "module.queue.dead_letter_queue_arn",
        "module.queue.queue_arn",
    ]
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
