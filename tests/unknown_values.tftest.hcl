# Values that are not known yet never decide how many resources there are: tests/fixtures/unknown_values plans, and
# applies, with all of them made in the same run.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"

  mock_data "aws_dynamodb_table" {
    defaults = {
      arn       = "arn:aws:dynamodb:eu-central-1:111122223333:table/own-records"
      attribute = [{ name = "id", type = "S" }]
      hash_key  = "id"
      range_key = ""
    }
  }

  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-central-1:111122223333:rule/own-source" }
  }

  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::111122223333:policy/own-boundary" }
  }

  mock_resource "aws_lambda_layer_version" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:layer:own-tools:1" }
  }

  mock_resource "aws_s3_bucket" {
    defaults = {
      arn                         = "arn:aws:s3:::own-source-1"
      bucket_regional_domain_name = "own-source-1.s3.example.com"
      id                          = "own-source-1"
    }
  }

  mock_resource "aws_secretsmanager_secret" {
    defaults = { arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:own-token-Ab12Cd" }
  }
}

run "plan_with_nothing_known" {
  command = plan

  module {
    source = "./tests/fixtures/unknown_values"
  }

  assert {
    condition     = length(output.orders.alarm_names) == 13
    error_message = "the consumer is planned"
  }

  assert {
    condition     = length(output.charges.alarm_names) == 12
    error_message = "the operation is planned"
  }

  assert {
    condition     = output.ingestion.guard_function_name == "ingestion-guard" && output.reports.guard_function_name == null
    error_message = "the workflows are planned"
  }
}

run "apply_with_nothing_known_before" {
  module {
    source = "./tests/fixtures/unknown_values"
  }

  assert {
    condition     = output.orders.topic_arn == aws_sns_topic.notifications.arn
    error_message = "the caller's topic is used"
  }
}
