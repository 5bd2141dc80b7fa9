"""The roles of workflows. tests/fixtures/roles shows their policies."""

from __future__ import annotations

from tests.plan.rights import (
    ALWAYS,
    DIRECT_GUARD,
    EFFECT_FUNCTION,
    FUNCTION_GUARD,
    GIVEN_KEY,
    GIVEN_VPC,
    JOIN_VPC,
    LOG_AND_TRACE,
    USES_A_TABLE,
    On,
    Right,
    Role,
    key_rights,
    queue_rights,
)

_WORKFLOWS = "tests/e2e/test_workflows.py::test_"

# Which of the two guards, and whether the effect is a function, is told by the variants of the state machine's role.
STARTER = Role(
    "The workflow's starter",
    'module.workflow["{}"].module.starter.data.aws_iam_policy_document.worker',
    {
        ALWAYS: (
            *queue_rights(
                f"{_WORKFLOWS}without_the_right_to_hide_it_a_message_comes_back_after_the_queues_timeout",
                f"{_WORKFLOWS}without_send_message_poison_stays_in_the_queue",
            ),
            Right(
                "states:StartExecution",
                On.STATE_MACHINE,
                "`StartExecution` for each event of a message",
                f"{_WORKFLOWS}without_start_execution_a_message_stays_in_the_queue",
            ),
            *LOG_AND_TRACE,
        ),
        GIVEN_KEY: key_rights(
            "reading the queue, sending to the dead-letter queue", "sending to the dead-letter queue"
        ),
        GIVEN_VPC: JOIN_VPC,
    },
    {
        "direct": [],
        "direct_fragment": [],
        "fragment": [],
        "function": [],
        "key": [GIVEN_KEY],
        "vpc": [GIVEN_VPC],
    },
)

# Nothing but Step Functions calls it.
GUARD = Role(
    "The workflow's guard function",
    'module.workflow["{}"].module.guard[0].data.aws_iam_policy_document.worker',
    {
        ALWAYS: (
            Right(
                "dynamodb:UpdateItem",
                On.CLAIMS,
                "`UpdateItem` claims a key; the row it finds comes with its answer",
                f"{_WORKFLOWS}a_guard_that_may_not_write_runs_no_effect_and_loses_no_message",
            ),
            *LOG_AND_TRACE,
        ),
        GIVEN_KEY: key_rights(USES_A_TABLE, USES_A_TABLE),
        GIVEN_VPC: JOIN_VPC,
    },
    {"fragment": [], "function": [], "key": [GIVEN_KEY], "vpc": [GIVEN_VPC]},
)

STATE_MACHINE = Role(
    "The workflow's state machine",
    'module.workflow["{}"].data.aws_iam_policy_document.workflow',
    {
        ALWAYS: (
            Right("dynamodb:UpdateItem", On.CLAIMS, "states Complete, Park and Release"),
            Right("sqs:SendMessage", On.DEAD_LETTERS, "state Dead letter"),
            # https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
            *(
                Right(f"logs:{action}", On.ANYTHING, "Step Functions has CloudWatch deliver the log to its group")
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
            ),
            # https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html
            Right("xray:GetSamplingRules", On.ANYTHING, "Step Functions asks which executions are traced"),
            Right("xray:GetSamplingTargets", On.ANYTHING, "Step Functions asks how many executions are traced"),
            Right("xray:PutTelemetryRecords", On.ANYTHING, "Step Functions reports about its tracing"),
            Right("xray:PutTraceSegments", On.ANYTHING, "Step Functions sends the trace"),
        ),
        FUNCTION_GUARD: (Right("lambda:InvokeFunction", On.GUARD, "state Guard"),),
        DIRECT_GUARD: (Right("dynamodb:GetItem", On.CLAIMS, "state Look up claim; its Guard is an `UpdateItem` too"),),
        EFFECT_FUNCTION: (Right("lambda:InvokeFunction", On.EFFECT, "state Effect"),),
        GIVEN_KEY: (
            Right("kms:Decrypt", On.KEY, f"{USES_A_TABLE}, sending to the dead-letter queue"),
            Right("kms:GenerateDataKey", On.KEY, f"sending to the dead-letter queue, {USES_A_TABLE}"),
        ),
    },
    {
        "direct": [DIRECT_GUARD, EFFECT_FUNCTION],
        "direct_fragment": [DIRECT_GUARD],
        "fragment": [FUNCTION_GUARD],
        "function": [FUNCTION_GUARD, EFFECT_FUNCTION],
        "key": [FUNCTION_GUARD, EFFECT_FUNCTION, GIVEN_KEY],
        "vpc": [FUNCTION_GUARD, EFFECT_FUNCTION],
    },
)
