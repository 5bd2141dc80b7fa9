"""What modules/workflow makes of its variables, and the state machine above all."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from jsonata.jexception import JException

from idempotent_consumer.workflow.claim import ClaimRequest, claim
from idempotent_consumer.workflow.input import failed_execution
from tests.plan.asl import evaluate, problems, states_of
from tests.plan.support import Plan, plan

KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
DEAD_LETTER_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/dlq"
VARIANTS = ("direct", "fragment", "full", "minimal")
# What a module would learn from AWS, told before there is anything: so that the definitions can be read from a plan.
KNOWN = {
    "modules/function/known_override.tf": """
        output "function_arn" {
          value = "arn:aws:lambda:eu-central-1:111122223333:function:${var.name}"
        }
    """,
    "modules/queue/known_override.tf": f"""
        output "dead_letter_queue_url" {{
          value = "{DEAD_LETTER_QUEUE}"
        }}
    """,
    # The provider asks AWS about a definition that it knows.
    "modules/workflow/known_override.tf": """
        resource "aws_sfn_state_machine" "workflow" {
          definition = aws_dynamodb_table.idempotency.arn
        }
    """,
    "modules/workflow/shown.tf": """
        output "definition" {
          value = local.definition
        }
    """,
    "tests/fixtures/workflow_variants/shown.tf": "\n".join(
        f'output "{name}" {{\n  value = module.{name}.definition\n}}' for name in VARIANTS
    ),
}
SHARED_STATES = {
    "Claim kept",
    "Claimed?",
    "Complete",
    "Conflict",
    "Dead letter",
    "Effect",
    "Extend claim",
    "Failed",
    "Guard",
    "Guard failed",
    "Not applied",
    "Outcome not recorded",
    "Outcome unknown",
    "Park",
    "Release",
    "Skipped",
}
# What is done first about a failure, and why the letter is there.
FAILURES = {
    "Claim kept": ("Extend claim", "claim-kept"),
    "Conflict": ("Dead letter", "id-reused"),
    "Guard failed": ("Release", "guard-failed"),
    "Not applied": ("Release", "not-applied"),
    "Outcome not recorded": ("Dead letter", "outcome-not-recorded"),
    "Outcome unknown": ("Park", "outcome-unknown"),
}
MINIMAL = [
    "aws_cloudwatch_event_rule.failure",
    "aws_cloudwatch_event_target.failure",
    "aws_cloudwatch_log_group.workflow",
    "aws_dynamodb_table.idempotency",
    "aws_iam_role.workflow",
    "aws_iam_role_policy.workflow",
    "aws_sfn_state_machine.workflow",
    "aws_sqs_queue_policy.dead_letter",
    "module.guard[0].aws_cloudwatch_log_group.worker",
    "module.guard[0].aws_iam_role.worker",
    "module.guard[0].aws_iam_role_policy.worker",
    "module.guard[0].aws_lambda_function.worker",
    "module.queue.aws_sqs_queue.dead_letter",
    "module.queue.aws_sqs_queue.intake",
    "module.queue.aws_sqs_queue_redrive_allow_policy.dead_letter",
    "module.queue.aws_sqs_queue_redrive_policy.intake",
    "module.starter.aws_cloudwatch_log_group.worker",
    "module.starter.aws_iam_role.worker",
    "module.starter.aws_iam_role_policy.worker",
    "module.starter.aws_lambda_event_source_mapping.intake[0]",
    "module.starter.aws_lambda_function.worker",
]


@pytest.fixture(scope="module")
def workflows(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The workflows of tests/fixtures/workflow_variants, each configured in another way."""
    folder = tmp_path_factory.mktemp("workflows")
    for path, text in KNOWN.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return plan("tests/fixtures/workflow_variants", folder)


@pytest.fixture(scope="module")
def machines(workflows: Plan) -> Mapping[str, Mapping[str, Any]]:
    """The state machines' definitions, by the workflow."""
    return {name: json.loads(output["value"]) for name, output in workflows.json["planned_values"]["outputs"].items()}


# --- The state machine.


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_state_machine_is_sound(machines: Mapping[str, Mapping[str, Any]], variant: str) -> None:
    assert problems(machines[variant]) == []


@pytest.mark.parametrize(
    ("variant", "more"),
    [
        ("direct", {"Look up claim"}),
        ("full", {"Charge", "Charged", "Payable?", "Position", "Refuse"}),
        ("minimal", set()),
    ],
)
def test_it_has_the_modules_states_and_the_fragments(
    machines: Mapping[str, Mapping[str, Any]], variant: str, more: set[str]
) -> None:
    assert {name for name, _ in states_of(machines[variant])} == SHARED_STATES | more


def test_a_state_that_nothing_could_lead_to_is_left_out_since_aws_refuses_it(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    names = {name for name, _ in states_of(machines["fragment"])}
    assert names == (SHARED_STATES - {"Not applied"}) | {"Look up claim", "Publish"}


def test_the_whole_machine_speaks_jsonpath_so_that_a_fragment_may(machines: Mapping[str, Mapping[str, Any]]) -> None:
    machine = machines["minimal"]
    assert "QueryLanguage" not in machine
    assert {state["QueryLanguage"] for state in machine["States"].values()} == {"JSONata"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_guard_comes_first_and_nothing_else_leads_to_the_effect_but_its_answer(
    machines: Mapping[str, Mapping[str, Any]], variant: str
) -> None:
    machine = machines[variant]
    leading = {
        (name, "Next" if state.get("Next") == "Effect" else choice["Condition"])
        for name, state in machine["States"].items()
        for choice in [state, *state.get("Choices", []), *state.get("Catch", []), {"Next": state.get("Default")}]
        if choice.get("Next") == "Effect"
    }
    claimed = {("Claimed?", "{% $states.input.proceed %}")}
    direct = {("Guard", "Next")} if "Look up claim" in machine["States"] else set()
    assert machine["StartAt"] == "Guard"
    assert leading == claimed | direct


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_call_of_the_modules_own_ends_in_time_and_is_made_again(
    machines: Mapping[str, Mapping[str, Any]], variant: str
) -> None:
    calls = {name: state for name, state in machines[variant]["States"].items() if state["Type"] == "Task"}
    own = {name: state for name, state in calls.items() if name != "Effect"}
    assert set(own) - {"Look up claim"} == {"Complete", "Dead letter", "Extend claim", "Guard", "Park", "Release"}
    assert {state["TimeoutSeconds"] for state in own.values()} == {60}
    for name, state in own.items():
        *refused, last = state["Retry"]
        assert refused in ([], [{"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "MaxAttempts": 0}])
        assert last == {
            "BackoffRate": 2,
            "ErrorEquals": ["States.ALL"],
            "IntervalSeconds": 1,
            "JitterStrategy": "FULL",
            "MaxAttempts": 100 if name in ("Complete", "Dead letter", "Park") else 20,
            "MaxDelaySeconds": 300,
        }


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_fails_leads_to_a_dead_letter_and_a_dead_letter_that_fails_to_the_rule_of_failures(
    machines: Mapping[str, Mapping[str, Any]], variant: str
) -> None:
    states = machines[variant]["States"]

    def after(name: str) -> str:
        """Where an error leads that no other catcher names."""
        catchers = states[name].get("Catch", [])
        return str(catchers[-1]["Next"]) if catchers and catchers[-1]["ErrorEquals"] == ["States.ALL"] else ""

    calling = [name for name, state in states.items() if state["Type"] in ("Task", "Parallel")]
    assert {name: after(name) for name in calling if name != "Look up claim"} == {
        "Complete": "Outcome not recorded",
        "Dead letter": "",
        "Effect": "Outcome unknown",
        "Extend claim": "Dead letter",
        "Guard": "Guard failed",
        "Park": "Dead letter",
        "Release": "Dead letter",
    }
    if "Look up claim" in states:
        assert after("Look up claim") == "Guard failed"
    for name in FAILURES.keys() & states.keys():
        assert (states[name]["Next"], states[name]["Output"]["reason"]) == FAILURES[name]
    assert [states["Dead letter"]["Next"], states["Failed"]["Type"]] == ["Failed", "Fail"]


def test_the_net_of_failures_lets_out_what_the_module_has_dead_lettered_itself(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    """modules/workflow/failures.tf looks at the beginning of the error."""
    assert machines["minimal"]["States"]["Failed"]["Error"] == "{% 'IdempotentConsumer.' & $states.input.reason %}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_states_all_does_not_stand_for_is_caught_where_a_result_could_be_too_large(
    machines: Mapping[str, Mapping[str, Any]], variant: str
) -> None:
    states = machines[variant]["States"]
    for name in {"Complete", "Effect", "Guard", "Look up claim"} & states.keys():
        caught = {error: catcher["Next"] for catcher in states[name]["Catch"] for error in catcher["ErrorEquals"]}
        assert caught["States.DataLimitExceeded"] == caught["States.ALL"], name


# --- The effect.


def test_a_function_is_called_again_only_where_it_has_certainly_not_begun(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    effect = machines["minimal"]["States"]["Effect"]
    certain = ["Lambda.ResourceNotFoundException", "Lambda.TooManyRequestsException"]
    assert [(retrier["ErrorEquals"], retrier["MaxAttempts"]) for retrier in effect["Retry"]] == [(certain, 19)]
    assert effect["Catch"][0] == {"ErrorEquals": certain, "Next": "Not applied"}
    assert effect["TimeoutSeconds"] == 900


@pytest.mark.parametrize(("variant", "arn"), [("minimal", "ingest"), ("direct", "ingest:live")])
def test_a_function_is_given_the_executions_input_and_its_answer_is_the_result(
    machines: Mapping[str, Mapping[str, Any]], variant: str, arn: str
) -> None:
    effect = machines[variant]["States"]["Effect"]
    assert effect["Resource"] == "arn:aws:states:::lambda:invoke"
    assert effect["Arguments"]["Payload"] == "{% $states.context.Execution.Input %}"
    name = evaluate(effect["Arguments"]["FunctionName"], {"context": {"Execution": {"RedriveCount": 0}}})
    assert name == f"arn:aws:lambda:eu-central-1:111122223333:function:{arn}"
    assert effect["Output"] == "{% $states.result.Payload %}"


def test_a_function_is_not_called_by_a_redrive_which_begins_past_the_guard(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    name = machines["minimal"]["States"]["Effect"]["Arguments"]["FunctionName"]
    with pytest.raises(JException, match="redriven in the effect"):
        evaluate(name, {"context": {"Execution": {"RedriveCount": 1}}})


def test_a_fragment_is_one_branch_that_is_never_run_again(machines: Mapping[str, Mapping[str, Any]]) -> None:
    effect = machines["fragment"]["States"]["Effect"]
    assert effect == {
        "Branches": [
            {
                "StartAt": "Publish",
                "States": {
                    "Publish": {
                        "End": True,
                        "Parameters": {
                            "Message.$": "$.body",
                            "TopicArn": "arn:aws:sns:eu-central-1:111122223333:reports",
                        },
                        "Resource": "arn:aws:states:::sns:publish",
                        "TimeoutSeconds": 60,
                        "Type": "Task",
                    }
                },
            }
        ],
        "Catch": [
            {"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Outcome unknown"},
            {"ErrorEquals": ["States.ALL"], "Next": "Outcome unknown"},
        ],
        "InputPath": "$$.Execution.Input",
        "Next": "Complete",
        "OutputPath": "$[0]",
        "Type": "Parallel",
    }


def test_a_fragments_states_speak_its_language_unless_they_name_their_own(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    effect = machines["full"]["States"]["Effect"]
    (branch,) = effect["Branches"]
    assert branch.keys() == {"StartAt", "States"}
    assert branch["StartAt"] == "Payable?"
    assert {name: state["QueryLanguage"] for name, state in states_of(branch)} == {
        "Charge": "JSONata",
        "Charged": "JSONPath",
        "Payable?": "JSONata",
        "Position": "JSONata",
        "Refuse": "JSONata",
    }
    assert "Retry" not in effect
    assert effect["Catch"][0] == {"ErrorEquals": ["Refused", "NotSent"], "Next": "Not applied"}


# --- The claim.


class Table:
    """Takes the guard's call, as DynamoDB's client does."""

    def __init__(self) -> None:
        self.call: dict[str, Any] = {}

    def update_item(self, **call: Any) -> None:
        self.call = call


def spelled(call: Mapping[str, Any], expression: str) -> str:
    """An expression with the names and values of its placeholders, those apart that each call has anew."""
    values = call["ExpressionAttributeValues"].items()
    texts = {place: value.get("S", "") if isinstance(value, dict) else value for place, value in values}
    same = {"{% $states.context.Execution.Id %}": "<owner>", "execution": "<owner>"}
    written = {place: same.get(text, text if text.isupper() else "<value>") for place, text in texts.items()}
    names = call["ExpressionAttributeNames"]
    text = re.sub(r"#\w+", lambda place: names[place[0]], call[expression])
    return re.sub(r":\w+", lambda place: written[place[0]], text)


def parts_of(update: str) -> tuple[list[str], list[str]]:
    """What an update sets and what it removes, sorted."""
    sets, removes = update.removeprefix("SET ").split(" REMOVE ")
    return sorted(sets.split(", ")), sorted(removes.split(", "))


def test_both_guards_write_the_same_row_under_the_same_condition(machines: Mapping[str, Mapping[str, Any]]) -> None:
    table = Table()
    request = {
        "fingerprint": "f",
        "key": "order-17",
        "messageId": "m",
        "namespace": "ingestion",
        "owner": "execution",
        "retentionSeconds": 1555200,
    }
    claim(table, "ingestion-idempotency", ClaimRequest.read(request), 1_700_000_000_000)
    direct = machines["direct"]["States"]["Guard"]["Arguments"]
    assert spelled(direct, "ConditionExpression") == spelled(table.call, "ConditionExpression")
    assert parts_of(spelled(direct, "UpdateExpression")) == parts_of(spelled(table.call, "UpdateExpression"))
    assert direct["TableName"] == table.call["TableName"]
    assert direct["Key"] == {"pk": {"S": "{% $states.context.Execution.Input.key %}"}, "sk": {"S": "ingestion"}}
    assert table.call["Key"] == {"pk": {"S": "order-17"}, "sk": {"S": "ingestion"}}


def test_the_guards_function_is_asked_for_all_that_the_direct_one_writes(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    guard = machines["full"]["States"]["Guard"]
    assert guard["Resource"] == "arn:aws:states:::lambda:invoke"
    assert guard["Arguments"] == {
        "FunctionName": "arn:aws:lambda:eu-central-1:111122223333:function:charges-guard",
        "Payload": {
            "fingerprint": "{% $states.context.Execution.Input.fingerprint %}",
            "key": "{% $states.context.Execution.Input.key %}",
            "messageId": "{% $states.context.Execution.Input.messageId %}",
            "namespace": "charges <of today> & tomorrow",
            "owner": "{% $states.context.Execution.Id %}",
            "retentionSeconds": 2592000,
            "returnResult": True,
        },
    }


@pytest.mark.parametrize(("variant", "seconds"), [("direct", 1555200), ("full", 2592000)])
def test_a_key_is_remembered_from_each_write_that_matters(
    machines: Mapping[str, Mapping[str, Any]], variant: str, seconds: int
) -> None:
    expiry = {"N": f"{{% $string($floor($millis() / 1000) + {seconds}) %}}"}
    states = machines[variant]["States"]
    writing = [states[name]["Arguments"] for name in ("Complete", "Park")]
    writing += [states["Guard"]["Arguments"]] if variant == "direct" else []
    for arguments in writing:
        assert arguments["ExpressionAttributeValues"][":expires"] == expiry
        assert "expiresAt = :expires" in arguments["UpdateExpression"]


def test_no_write_after_the_claim_changes_a_row_of_another_owner(machines: Mapping[str, Mapping[str, Any]]) -> None:
    states = machines["minimal"]["States"]
    conditions = {
        name: spelled(states[name]["Arguments"], "ConditionExpression") for name in ("Complete", "Park", "Release")
    }
    # A row that is gone is written anew: what is known of the effect must not be lost.
    assert conditions == {
        "Complete": "attribute_not_exists(pk) OR owner = <owner>",
        "Park": "attribute_not_exists(pk) OR owner = <owner>",
        "Release": "owner = <owner> AND status IN (IN_PROGRESS, RELEASED) AND attribute_not_exists(parkedAt)",
    }


def test_a_letter_that_finds_its_claim_kept_keeps_it_for_as_long_as_itself_and_changes_nothing_else(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    arguments = machines["minimal"]["States"]["Extend claim"]["Arguments"]
    assert (arguments["ConditionExpression"], arguments["UpdateExpression"]) == (
        "attribute_exists(pk)",
        "SET expiresAt = :expires",
    )


@pytest.mark.parametrize(("variant", "returned"), [("minimal", "false"), ("full", "true")])
def test_a_duplicate_is_told_the_result_where_that_is_asked_for(
    machines: Mapping[str, Mapping[str, Any]], variant: str, returned: str
) -> None:
    output = machines[variant]["States"]["Skipped"]["Output"]
    assert f"{returned} and $exists($states.input.result)" in output


def letter(machine: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The body and attributes of the dead letter of a message with these attributes."""
    execution = {
        "Id": "arn:aws:states:eu-central-1:111122223333:execution:ingestion:1",
        "Input": {"attributes": attributes, "body": '{"id": "order-17"}', "key": "order-17"},
    }
    machine_id = "arn:aws:states:eu-central-1:111122223333:stateMachine:ingestion"
    states = {
        "context": {"Execution": execution, "StateMachine": {"Id": machine_id}},
        "input": {"detail": "Boom: no", "reason": "outcome-unknown"},
    }
    arguments = machine["States"]["Dead letter"]["Arguments"]
    assert arguments["QueueUrl"] == DEAD_LETTER_QUEUE
    return evaluate(arguments["MessageBody"], states), evaluate(arguments["MessageAttributes"], states)


OWN_ATTRIBUTES = ["dead_letter_detail", "dead_letter_execution", "dead_letter_key", "dead_letter_reason"]


def text(value: str) -> dict[str, str]:
    """A message attribute."""
    return {"DataType": "String", "StringValue": value}


def test_a_dead_letter_is_the_message_with_its_key_and_why_it_is_there(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    body, attributes = letter(machines["minimal"], {"kind": text("order"), "dead_letter_reason": text("before")})
    assert body == '{"id": "order-17"}'
    assert attributes == {
        "dead_letter_detail": text("Boom: no"),
        "dead_letter_execution": text("arn:aws:states:eu-central-1:111122223333:execution:ingestion:1"),
        "dead_letter_key": text("order-17"),
        "dead_letter_reason": text("outcome-unknown"),
        "kind": text("order"),
    }


def test_six_attributes_of_the_producers_fit_beside_the_modules_four(
    machines: Mapping[str, Mapping[str, Any]],
) -> None:
    six = {f"own_{number}": text("x") for number in range(6)}
    body, attributes = letter(machines["minimal"], six)
    assert body == '{"id": "order-17"}'
    assert sorted(attributes) == sorted([*six, *OWN_ATTRIBUTES])


def test_more_go_into_the_body_as_those_of_a_stopped_execution_do(machines: Mapping[str, Mapping[str, Any]]) -> None:
    seven = {f"own_{number}": text("x") for number in range(7)}
    body, attributes = letter(machines["minimal"], seven)
    failed = failed_execution(body, "arn:aws:states:eu-central-1:111122223333:stateMachine:ingestion")
    assert failed is not None
    assert (failed.key, failed.body, failed.error) == (
        "order-17",
        '{"id": "order-17"}',
        "IdempotentConsumer.outcome-unknown",
    )
    assert failed.attributes == seven
    assert sorted(attributes) == OWN_ATTRIBUTES


# --- What is around it.


def created(workflows: Plan, variant: str) -> list[str]:
    """Without the alarms and the dashboard, which tests of their own look at."""
    return [address for address in workflows.created(f"module.{variant}") if not address.startswith("module.alarms.")]


def test_the_shortest_block_creates_twenty_one_resources_and_alarms(workflows: Plan) -> None:
    assert created(workflows, "minimal") == MINIMAL


def test_each_option_adds_or_leaves_out_what_it_names(workflows: Plan) -> None:
    assert sorted(set(MINIMAL) - set(created(workflows, "direct"))) == [
        "module.guard[0].aws_cloudwatch_log_group.worker",
        "module.guard[0].aws_iam_role.worker",
        "module.guard[0].aws_iam_role_policy.worker",
        "module.guard[0].aws_lambda_function.worker",
    ]
    assert sorted(set(created(workflows, "full")) - set(MINIMAL)) == [
        "aws_iam_role_policy.effect[0]",
        "module.queue.aws_sqs_queue_policy.intake[0]",
    ]
    assert set(MINIMAL) <= set(created(workflows, "full"))


def test_the_functions_are_as_configured(workflows: Plan) -> None:
    names = ("function_name", "handler", "architectures", "memory_size", "runtime", "timeout")

    def function(variant: str, module: str) -> tuple[Any, ...]:
        return workflows.values(f"module.{variant}.module.{module}.aws_lambda_function.worker", *names)

    starter, guard = "idempotent_consumer.starter.handler", "idempotent_consumer.guard.handler"
    assert function("minimal", "starter") == ("ingestion-worker", starter, ["arm64"], 512, "python3.13", 30)
    assert function("minimal", "guard[0]") == ("ingestion-guard", guard, ["arm64"], 512, "python3.13", 15)
    assert function("full", "starter") == ("charges-worker", starter, ["x86_64"], 1024, "python3.12", 60)
    assert function("full", "guard[0]") == ("charges-guard", guard, ["x86_64"], 256, "python3.12", 20)


def test_the_guard_is_not_held_back_by_the_starters_concurrency(workflows: Plan) -> None:
    def reserved(module: str) -> Any:
        address = f"module.full.module.{module}.aws_lambda_function.worker"
        return workflows.values(address, "reserved_concurrent_executions")[0]

    assert (reserved("starter"), reserved("guard[0]")) == (5, -1)


@pytest.mark.case("T01", "T02", "O03")
def test_the_queues_are_standard_ones_as_configured(workflows: Plan) -> None:
    names = ("name", "fifo_queue", "message_retention_seconds", "visibility_timeout_seconds")
    minimal, full = (f"module.{name}.module.queue.aws_sqs_queue" for name in ("minimal", "full"))
    assert workflows.values(f"{minimal}.intake", *names) == ("ingestion", False, 345600, 180)
    assert workflows.values(f"{minimal}.dead_letter", *names[:3]) == ("ingestion-dlq", False, 1209600)
    assert workflows.values(f"{full}.intake", *names) == ("charges", False, 172800, 362)
    assert workflows.values(f"{full}.dead_letter", *names[:3]) == ("charges-dlq", False, 604800)


def test_the_starter_answers_for_each_message(workflows: Plan) -> None:
    mapping = "module.{}.module.starter.aws_lambda_event_source_mapping.intake[0]"
    names = ("batch_size", "maximum_batching_window_in_seconds", "function_response_types", "scaling_config")
    assert workflows.values(mapping.format("minimal"), *names) == (10, None, ["ReportBatchItemFailures"], [])
    assert workflows.values(mapping.format("full"), *names) == (
        100,
        2,
        ["ReportBatchItemFailures"],
        [{"maximum_concurrency": 5}],
    )


@pytest.mark.case("T28", "T35")
def test_the_table_forgets_keys_by_itself(workflows: Plan) -> None:
    names = ("name", "hash_key", "range_key", "ttl", "deletion_protection_enabled")
    ttl = [{"attribute_name": "expiresAt", "enabled": True}]
    minimal, full = (f"module.{name}.aws_dynamodb_table.idempotency" for name in ("minimal", "full"))
    assert workflows.values(minimal, *names) == ("ingestion-idempotency", "pk", "sk", ttl, True)
    assert workflows.values(full, *names) == ("charges-idempotency", "pk", "sk", ttl, False)
    assert workflows.values(minimal, "point_in_time_recovery")[0][0]["enabled"] is True


def test_executions_are_standard_ones_that_are_logged_without_their_data_and_traced(workflows: Plan) -> None:
    machine = "module.minimal.aws_sfn_state_machine.workflow"
    (logging,) = workflows.values(machine, "logging_configuration")[0]
    assert workflows.values(machine, "name", "type", "tracing_configuration") == (
        "ingestion",
        "STANDARD",
        [{"enabled": True}],
    )
    assert (logging["include_execution_data"], logging["level"]) == (False, "ERROR")
    group = "module.minimal.aws_cloudwatch_log_group.workflow"
    assert workflows.values(group, "name", "retention_in_days") == ("/aws/vendedlogs/states/ingestion", 30)


@pytest.mark.case("T37")
def test_one_key_encrypts_all_but_the_executions_which_events_would_not_tell_then(workflows: Plan) -> None:
    full = "module.full"
    assert workflows.values(f"{full}.module.queue.aws_sqs_queue.intake", "kms_master_key_id") == (KEY,)
    assert workflows.values(f"{full}.module.queue.aws_sqs_queue.dead_letter", "kms_master_key_id") == (KEY,)
    encryption = workflows.values(f"{full}.aws_dynamodb_table.idempotency", "server_side_encryption")
    assert encryption == ([{"enabled": True, "kms_key_arn": KEY}],)
    assert workflows.values(f"{full}.aws_cloudwatch_log_group.workflow", "kms_key_id") == (KEY,)
    for module in ("starter", "guard[0]"):
        assert workflows.values(f"{full}.module.{module}.aws_cloudwatch_log_group.worker", "kms_key_id") == (KEY,)
        assert workflows.values(f"{full}.module.{module}.aws_lambda_function.worker", "kms_key_arn") == (KEY,)
    machine = workflows.configuration("full")["resources"]
    (written,) = [each["expressions"] for each in machine if each["address"] == "aws_sfn_state_machine.workflow"]
    assert "encryption_configuration" not in written


def test_one_boundary_bounds_all_roles(workflows: Plan) -> None:
    roles = ["aws_iam_role.workflow", *(f"module.{name}.aws_iam_role.worker" for name in ("starter", "guard[0]"))]
    bounds = {workflows.values(f"module.full.{role}", "permissions_boundary")[0] for role in roles}
    assert bounds == {"arn:aws-us-gov:iam::111122223333:policy/boundary"}


def test_all_that_takes_tags_has_them(workflows: Plan) -> None:
    tagged = {
        address: workflows.after(f"module.full.{address}")["tags"]
        for address in created(workflows, "full")
        if "tags" in workflows.after(f"module.full.{address}")
    }
    assert len(tagged) == 14
    assert set(map(str, tagged.values())) == {"{'team': 'payments'}"}


def test_the_functions_variables_are_the_callers_and_over_them_the_settings(workflows: Plan) -> None:
    calls = workflows.configuration("minimal")["module_calls"]
    settings = {name: calls[name]["expressions"]["environment"]["references"] for name in ("starter", "guard")}
    assert settings == {
        "guard": ["var.function.environment", "var.function", "local.guard_settings"],
        "starter": ["var.function.environment", "var.function", "local.starter_settings"],
    }
