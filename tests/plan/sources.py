"""Who takes a role, who sends to a queue by its policy, and what is allowed on `*`: each with its condition or why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.plan.rights import On

_REFERENCE = "https://docs.aws.amazon.com/service-authorization/latest/reference"


@dataclass(frozen=True)
class Taker:
    """service: what may take roles. condition: of their trust policy, or why it has none."""

    service: str
    roles: str
    condition: str
    why: str


TAKERS: Sequence[Taker] = (
    Taker(
        "lambda.amazonaws.com",
        "all functions",
        "none",
        "Lambda's guide names no source for an execution role, and `iam:PassRole` gives no role to a function of "
        "another account ([execution role](https://docs.aws.amazon.com/lambda/latest/dg/lambda-intro-execution-role.html))",
    ),
    Taker(
        "scheduler.amazonaws.com",
        "the reconciler's schedule",
        "`StringEquals` `aws:SourceAccount`: this account",
        "`aws:SourceArn` would be a schedule group, here the default one, in which all schedules of the account are "
        "([confused deputy](https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html))",
    ),
    Taker(
        "states.amazonaws.com",
        "the workflow's state machine",
        "`StringEquals` `aws:SourceAccount`: this account",
        "the state machine's own ARN would be a circle: it needs the role first "
        "([role](https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html))",
    ),
)


@dataclass(frozen=True)
class Sender:
    """taken_away: the end-to-end test that takes the policy away; empty where the emulator does not ask for it."""

    service: str
    on: On
    condition: str
    taken_away: str = ""


_EXAMPLES = "tests/e2e/test_examples.py::test_"

SENDERS: Sequence[Sender] = (
    Sender(
        "sns.amazonaws.com",
        On.QUEUE,
        "`ArnEquals` `aws:SourceArn`: the topic of `queue.producers` (an opt-in Region's service is "
        "`sns.<region>.amazonaws.com`)",
        f"{_EXAMPLES}fan_out_hears_of_no_sale_without_the_policy_of_its_queue",
    ),
    Sender(
        "s3.amazonaws.com",
        On.QUEUE,
        "`ArnEquals` `aws:SourceArn`: the bucket; `StringEquals` `aws:SourceAccount`: its account, "
        "since its ARN names none",
        f"{_EXAMPLES}s3_ingest_hears_of_no_object_without_the_policy_of_its_queue",
    ),
    Sender("events.amazonaws.com", On.QUEUE, "`ArnEquals` `aws:SourceArn`: the rule of `queue.producers`"),
    Sender(
        "events.amazonaws.com",
        On.DEAD_LETTERS,
        "`ArnEquals` `aws:SourceArn`: the rule of the workflow's failures (workflows only)",
    ),
)


@dataclass(frozen=True)
class Everywhere:
    """Actions that are allowed on `*`."""

    actions: frozenset[str]
    why: str


EVERYWHERE: Sequence[Everywhere] = (
    Everywhere(
        frozenset(
            {
                "xray:GetSamplingRules",
                "xray:GetSamplingTargets",
                "xray:PutTelemetryRecords",
                "xray:PutTraceSegments",
            }
        ),
        f"AWS knows no resource for them ([X-Ray]({_REFERENCE}/list_awsx-ray.html))",
    ),
    Everywhere(
        frozenset(
            {
                "logs:CreateLogDelivery",
                "logs:DeleteLogDelivery",
                "logs:DescribeLogGroups",
                "logs:DescribeResourcePolicies",
                "logs:GetLogDelivery",
                "logs:ListLogDeliveries",
                "logs:PutResourcePolicy",
                "logs:UpdateLogDelivery",
            }
        ),
        f"AWS knows no resource for them ([CloudWatch Logs]({_REFERENCE}/list_amazoncloudwatchlogs.html))",
    ),
    Everywhere(
        frozenset({"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"}),
        f"AWS knows no resource for them ([EC2]({_REFERENCE}/list_amazonec2.html))",
    ),
    Everywhere(
        frozenset(
            {
                "ec2:AssignPrivateIpAddresses",
                "ec2:CreateNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:UnassignPrivateIpAddresses",
            }
        ),
        "they name interfaces that Lambda makes later, under ids of its own, and a shared subnet is another account's "
        "([Lambda in a VPC](https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html))",
    ),
)
