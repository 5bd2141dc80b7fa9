from __future__ import annotations

import pytest

from checks.hcl import forbidden, problems
from checks.tree import Tree
from tests.checks.support import module

GOOD = """\
variable "topic" {
  description = "An ARN such as arn:aws:sns:eu-west-1:123456789012:orders."
}

data "aws_partition" "current" {}

locals {
  # Not arn:aws:s3:::bucket.
  bucket  = "arn:${data.aws_partition.current.partition}:s3:::uploads"
  pattern = "^arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:.*$"
  is_on   = var.is_on
}

resource "aws_sqs_queue" "intake" {
  count = local.is_on ? 1 : 0

  name = "intake"
}

resource "aws_sqs_queue_policy" "intake" {
  count = length(aws_sqs_queue.intake)

  queue_url = aws_sqs_queue.intake[0].url

  dynamic "statement" {
    for_each = var.kms_key_arn[*]

    content {
      service = "sns.amazonaws.com"
    }
  }
}
"""


def found(text: str, folder: str = "") -> list[str]:
    return [problem for rule in forbidden.RULES for problem in rule(module(text, folder))]


def test_what_holds_everywhere_passes() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("arn:aws:s3:::uploads", "arn:aws:: an ARN of one partition does not hold in China, GovCloud or the EU's own"),
        ("arn:aws-cn:s3:::uploads", "arn:aws-cn:: an ARN of one partition does not hold in China"),
        ("https://sqs.${var.r}.amazonaws.com/", "https://sqs.${var.r}.amazonaws.com: a host's DNS suffix belongs to"),
        ("sns.amazonaws.com.cn", "amazonaws.com.cn: a host's DNS suffix belongs to a partition"),
        ("dynamodb.${var.r}.api.aws", ".api.aws: a host's DNS suffix belongs to a partition"),
        ("${timestamp()}", "timestamp(): with the time of the plan each plan shows a change"),
        ("${plantimestamp()}", "plantimestamp(): with the time of the plan each plan shows a change"),
        ("${uuid()}", "uuid(): with a random value each plan shows a change"),
        ("123456789012", "123456789012: this looks like an account's id"),
        ("eu-central-1", "eu-central-1: a Region is written out"),
        ("us-gov-west-1", "us-gov-west-1: a Region is written out"),
        ("ap-southeast-2a", "ap-southeast-2: a Region is written out"),
        ("${data.aws_region.current.name}", "data.aws_region.: aws_region has its attribute as name in provider 5"),
        (
            "${aws_s3_bucket.documents[0].region}",
            "aws_s3_bucket.documents[0].region: a bucket's region is bucket_region in provider 6",
        ),
    ],
)
@pytest.mark.case("T10", "T15")
def test_a_text_that_holds_in_one_place_only_is_found(text: str, problem: str) -> None:
    (said,) = found(f'locals {{\n  a = 1\n  b = "{text}"\n}}\n')
    assert said.startswith(f"main.tf:3: {problem}")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('resource "null_resource" "a" {}\n', 1, "null_resource is of another provider: aws is enough"),
        ('data "external" "a" {}\n', 1, "external is of another provider: aws is enough"),
        ('data "aws_region" "a" {}\n', 1, "aws_region says its Region by another name in provider 6"),
        (
            'check "a" {\n  data "aws_region" "b" {}\n}\n',
            2,
            "aws_region says its Region by another name in provider 6",
        ),
        ('ephemeral "random_password" "a" {}\n', 1, "random_password is of another provider: aws is enough"),
        (
            'variable "a" {\n  validation {\n    error_message = local.said\n  }\n}\n',
            3,
            "docs/errors.md is made from messages: write it here, in quotes",
        ),
        (
            'resource "aws_sqs_queue" "a" {\n  region = var.region\n}\n',
            2,
            "a resource has an argument region only in provider 6: leave it out",
        ),
        (
            'resource "aws_iam_role" "a" {\n  managed_policy_arns = []\n}\n',
            2,
            "aws_iam_role's managed_policy_arns is deprecated: use aws_iam_role_policy_attachment",
        ),
        (
            'resource "aws_iam_role" "a" {\n  inline_policy {}\n}\n',
            2,
            "aws_iam_role's inline_policy is deprecated: use aws_iam_role_policy",
        ),
        (
            'resource "aws_s3_bucket" "a" {\n  dynamic "lifecycle_rule" {\n    for_each = []\n    content {}\n  }\n}\n',
            2,
            "aws_s3_bucket's lifecycle_rule is deprecated: use aws_s3_bucket_lifecycle_configuration",
        ),
        (
            'terraform {\n  required_providers {\n    random = { source = "hashicorp/random" }\n  }\n}\n',
            3,
            "random is another provider: aws is enough",
        ),
        ('provider "aws" {}\n', 1, "a module configures no provider: it takes its caller's"),
        (
            'resource "aws_sqs_queue" "a" {\n  provisioner "local-exec" {}\n}\n',
            2,
            "what a provisioner does is in no plan: use a resource",
        ),
        ('resource "aws_sqs_queue" "this" {}\n', 1, 'resource "this" is no name: call it by its role, such as intake'),
    ],
)
def test_a_block_that_is_a_trap_is_found(text: str, line: int, problem: str) -> None:
    (said,) = found(text)
    assert said.startswith(f"main.tf:{line}: {problem}")


@pytest.mark.parametrize(
    ("decision", "unknown"),
    [
        ("var.kms_key_arn == null ? 0 : 1", "var.kms_key_arn"),
        ("var.encryption.kms_key_arn == null ? 0 : 1", "var.encryption.kms_key_arn"),
        ("aws_sns_topic.a.arn == null ? 0 : 1", "aws_sns_topic.a"),
        ("module.topic.is_on ? 1 : 0", "module.topic"),
        ("local.decided ? 1 : 0", "data.aws_sns_topic.a"),
    ],
)
def test_a_count_that_can_be_unknown_at_plan_is_found(decision: str, unknown: str) -> None:
    text = f"""\
locals {{
  decided = local.further
  further = data.aws_sns_topic.a.arn != null
}}

resource "aws_sqs_queue" "a" {{
  count = {decision}
}}
"""
    assert found(text) == [
        f"main.tf:7: count is decided by {unknown}, which can be unknown at plan: decide it by a flag"
    ]


def test_an_example_may_configure_its_provider() -> None:
    assert found('provider "aws" {}\n', "examples/orders") == []


def test_a_form_that_no_rule_reads_is_refused() -> None:
    tree = Tree({"main.tf.json": "{}", "examples/a/main.tofu": ""})
    assert problems(tree) == [
        "examples/a/main.tofu:1: no rule reads this form: write it as .tf",
        "main.tf.json:1: no rule reads this form: write it as .tf",
    ]
