"""The rights of the roles, each with the call or state that needs it, and of those who send to the queues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.plan.rights import FUNCTION, UNKNOWN, On, Role
from tests.plan.roles import OPERATION, PIPELINE, ROLES
from tests.plan.sources import EVERYWHERE
from tests.plan.support import Plan, plan
from tests.plan.workflow_roles import STATE_MACHINE

# What the modules would learn from AWS, and pass on to the roles.
KNOWN_ARNS = {
    "function": {"function_arn": f"{FUNCTION}:${{var.name}}"},
    "queue": {"dead_letter_queue_arn": On.DEAD_LETTERS.arn, "queue_arn": On.QUEUE.arn},
    "tables": {"business_table_arn": On.BUSINESS.arn, "ledger_table_arn": On.LEDGER.arn},
}
VARIANTS = [(role, variant) for role in ROLES for variant in role.variants]
FUNCTIONS = [
    ("pipeline", "function"),
    ("pipeline", "reconciler", "function"),
    ("operation", "function"),
    ("workflow", "starter"),
    ("workflow", "guard"),
]


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("roles")
    for module, arns in KNOWN_ARNS.items():
        name_arns(folder / "modules" / module, arns)
    return plan("tests/fixtures/roles", folder)


def name_arns(module: Path, arns: Mapping[str, str]) -> None:
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
                yield action, UNKNOWN if resource is None else resource


@pytest.mark.parametrize(("role", "variant"), VARIANTS, ids=[role.address(variant) for role, variant in VARIANTS])
@pytest.mark.case("T04", "T13", "T16", "T21")
def test_the_role_has_the_rights_that_its_calls_need_and_no_more(roles: Plan, role: Role, variant: str) -> None:
    assert sorted(rights(roles.after(role.address(variant))["statement"])) == role.needed(variant)


def test_the_rights_have_names_that_say_what_they_are_for(roles: Plan) -> None:
    def names(module: str, function: str = "function") -> list[str]:
        address = f"module.{module}.module.{function}.data.aws_iam_policy_document.worker"
        return [statement["sid"] for statement in roles.after(address)["statement"]]

    common = (["ReadIntake", "DeadLetter"], ["Log", "Trace"])
    pipeline = ["CommitToLedger", "WriteRows", "ReadAndMarkLedger", "Publish"]
    assert names('pipeline["default"]') == [*common[0], *pipeline, *common[1]]
    assert names('pipeline["key"]') == [*common[0], *pipeline, "UseKey", *common[1]]
    assert names('pipeline["key"]', "reconciler[0].module.function") == [
        "FindPending",
        "ReadAndMarkLedger",
        "Publish",
        "UseKey",
        *common[1],
    ]
    assert names('operation["http"]') == [*common[0], "ClaimInLedger", *common[1]]
    assert names('operation["secret"]') == [*common[0], "ClaimInLedger", "ReadSecret", *common[1]]
    assert names('operation["vpc"]') == [*common[0], "ClaimInLedger", *common[1], "JoinVpc"]
    assert names('workflow["function"]', "starter") == [*common[0], "StartWorkflow", *common[1]]
    assert names('workflow["function"]', "guard[0]") == ["Claim", *common[1]]


@pytest.mark.parametrize("variant", PIPELINE.variants)
def test_the_roles_have_no_other_policy(roles: Plan, variant: str) -> None:
    created = roles.created(f'module.pipeline["{variant}"]')
    assert [address for address in created if "iam" in address] == [
        "module.function.aws_iam_role.worker",
        "module.function.aws_iam_role_policy.worker",
        "module.reconciler[0].aws_iam_role.schedule",
        "module.reconciler[0].aws_iam_role_policy.schedule",
        "module.reconciler[0].module.function.aws_iam_role.worker",
        "module.reconciler[0].module.function.aws_iam_role_policy.worker",
    ]


@pytest.mark.parametrize("variant", OPERATION.variants)
def test_the_role_of_an_operation_has_no_other_policy(roles: Plan, variant: str) -> None:
    created = roles.created(f'module.operation["{variant}"]')
    assert [address for address in created if "iam" in address] == [
        "module.function.aws_iam_role.worker",
        "module.function.aws_iam_role_policy.worker",
    ]


@pytest.mark.parametrize("variant", STATE_MACHINE.variants)
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


@pytest.mark.parametrize("modules", FUNCTIONS, ids=".".join)
def test_the_rights_on_the_log_are_on_the_streams_of_the_functions_own_group(
    roles: Plan, modules: tuple[str, ...]
) -> None:
    statements = document_of(roles, modules, "worker")["statement"]
    log = next(statement for statement in statements if statement["sid"] == {"constant_value": "Log"})
    assert log["resources"]["references"] == [
        "aws_cloudwatch_log_group.worker.arn",
        "aws_cloudwatch_log_group.worker",
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
    assert (statement["actions"], statement["resources"]) == (["sqs:SendMessage"], [On.DEAD_LETTERS.arn])
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
        "resources": {"references": ["module.function.function_arn", "module.function"]},
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


def test_no_action_but_those_that_are_listed_is_allowed_on_everything() -> None:
    everything = [(right.action, right.on) for role in ROLES for right in role.all]
    listed = [action for each in EVERYWHERE for action in each.actions]
    assert sorted({action for action, on in everything if on is On.ANYTHING}) == sorted(listed)
    assert [on for on in On if "*" in on.arn] == [On.ANYTHING]
    assert not any("*" in action for action, _ in everything)


@pytest.mark.parametrize(
    "role",
    [
        'module.pipeline["default"].module.function.aws_iam_role.worker',
        'module.pipeline["default"].module.reconciler[0].module.function.aws_iam_role.worker',
        'module.operation["http"].module.function.aws_iam_role.worker',
        'module.workflow["function"].module.guard[0].aws_iam_role.worker',
        'module.workflow["function"].module.starter.aws_iam_role.worker',
    ],
)
def test_lambda_alone_takes_the_role(roles: Plan, role: str) -> None:
    assert_taken_by("lambda.amazonaws.com", roles, role)


def test_step_functions_of_this_account_alone_takes_the_role_of_a_state_machine(roles: Plan) -> None:
    (statement,) = document_of(roles, ("workflow",), "assume")["statement"]
    (principal,) = statement["principals"]
    assert principal["identifiers"] == {"constant_value": ["states.amazonaws.com"]}
    (condition,) = statement["condition"]
    assert condition == {
        "test": {"constant_value": "StringEquals"},
        "values": {"references": ["aws_dynamodb_table.idempotency.arn", "aws_dynamodb_table.idempotency"]},
        "variable": {"constant_value": "aws:SourceAccount"},
    }
    planned = roles.after('module.workflow["function"].data.aws_iam_policy_document.assume')["statement"]
    assert [(each["actions"], each["effect"], len(each["condition"])) for each in planned] == [
        (["sts:AssumeRole"], None, 1)
    ]


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


@pytest.mark.parametrize("document", ["function.data.{}.worker", "reconciler[0].module.function.data.{}.worker"])
def test_a_topic_that_exists_is_the_one_that_may_be_published_to(pipeline: Plan, document: str) -> None:
    address = f"module.existing_topic.module.{document.format('aws_iam_policy_document')}"
    statements = pipeline.after(address)["statement"]
    assert [s["resources"] for s in statements if s["actions"] == ["sns:Publish"]] == [
        ["arn:aws:sns:eu-central-1:111122223333:refunds"]
    ]


def test_documents_of_the_caller_are_for_the_role_that_they_are_given_to(pipeline: Plan) -> None:
    assert [address for address in pipeline.created("module.full") if "aws_iam_role_policy.additional" in address] == [
        "module.function.aws_iam_role_policy.additional[0]",
        "module.reconciler[0].module.function.aws_iam_role_policy.additional[0]",
    ]
    for module, role in [("function", "uploads-worker"), ("reconciler[0].module.function", "uploads-reconciler")]:
        address = f"module.full.module.{module}.aws_iam_role_policy.additional[0]"
        policy, given_to = pipeline.values(address, "policy", "role")
        assert (json.loads(policy), given_to) == ({"Statement": [], "Version": "2012-10-17"}, role)


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


def test_a_rule_sends_to_a_queue_from_its_own_arn_only(pipeline: Plan) -> None:
    address = "module.fifo.module.queue.data.aws_iam_policy_document.producers[0]"
    (statement,) = pipeline.after(address)["statement"]
    assert (statement["actions"], statement["principals"]) == (
        ["sqs:SendMessage"],
        [{"identifiers": ["events.amazonaws.com"], "type": "Service"}],
    )
    (condition,) = statement["condition"]
    assert (condition["test"], condition["variable"], condition["values"]) == (
        "ArnEquals",
        "aws:SourceArn",
        ["arn:aws:events:eu-central-1:111122223333:rule/payments"],
    )
