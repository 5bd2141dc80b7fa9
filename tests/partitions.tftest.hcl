# ARNs of each partition are taken: nothing in the module says that an ARN begins with arn:aws: or a Region with eu-.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  business_table_name = "order_records"
  name                = "orders"
}

run "aws_cn" {
  command = plan

  variables {
    alarms     = { actions = ["arn:aws-cn:sns:cn-north-1:111122223333:pager"] }
    encryption = { kms_key_arn = "arn:aws-cn:kms:cn-north-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab" }
    function = {
      layers               = ["arn:aws-cn:lambda:cn-north-1:111122223333:layer:tools:1"]
      permissions_boundary = "arn:aws-cn:iam::111122223333:policy/boundary"
      table_arns           = ["arn:aws-cn:dynamodb:cn-north-1:111122223333:table/stock"]
    }
    notification = { create_topic = false, topic_arn = "arn:aws-cn:sns:cn-north-1:111122223333:orders" }
    queue = {
      producers = [
        { service = "events.amazonaws.com", source_arn = "arn:aws-cn:events:cn-north-1:111122223333:rule/orders" },
        { service = "s3.amazonaws.com", source_arn = "arn:aws-cn:s3:::uploads" },
        { service = "sns.amazonaws.com", source_arn = "arn:aws-cn:sns:cn-north-1:111122223333:orders" },
      ]
    }
  }

  assert {
    condition     = output.topic_arn == "arn:aws-cn:sns:cn-north-1:111122223333:orders"
    error_message = "topic_arn is ${output.topic_arn}"
  }
}

# Without alarm actions, a key and a layer: provider 5 does not know this Region, and refuses those ARNs itself.
run "aws_eusc" {
  command = plan

  variables {
    function     = { permissions_boundary = "arn:aws-eusc:iam::111122223333:policy/boundary", handler = "mine.handler", package = "./main.tf", table_arns = ["arn:aws-eusc:dynamodb:eusc-de-east-1:111122223333:table/stock"] } # any file
    notification = { create_topic = false, topic_arn = "arn:aws-eusc:sns:eusc-de-east-1:111122223333:orders" }
    queue = {
      producers = [
        { service = "events.amazonaws.com", source_arn = "arn:aws-eusc:events:eusc-de-east-1:111122223333:rule/orders" },
        { service = "s3.amazonaws.com", source_arn = "arn:aws-eusc:s3:::uploads" },
        { service = "sns.amazonaws.com", source_arn = "arn:aws-eusc:sns:eusc-de-east-1:111122223333:orders" },
      ]
    }
  }

  assert {
    condition     = output.topic_arn == "arn:aws-eusc:sns:eusc-de-east-1:111122223333:orders"
    error_message = "topic_arn is ${output.topic_arn}"
  }
}

run "aws_us_gov" {
  command = plan

  variables {
    alarms     = { actions = ["arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"] }
    encryption = { kms_key_arn = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab" }
    function = {
      layers               = ["arn:aws-us-gov:lambda:us-gov-west-1:111122223333:layer:tools:1"]
      permissions_boundary = "arn:aws-us-gov:iam::111122223333:policy/boundary"
      table_arns           = ["arn:aws-us-gov:dynamodb:us-gov-west-1:111122223333:table/stock"]
    }
    notification = { create_topic = false, topic_arn = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:orders" }
    queue = {
      producers = [
        { service = "events.amazonaws.com", source_arn = "arn:aws-us-gov:events:us-gov-west-1:111122223333:rule/orders" },
        { service = "s3.amazonaws.com", source_arn = "arn:aws-us-gov:s3:::uploads" },
        { service = "sns.amazonaws.com", source_arn = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:orders" },
      ]
    }
  }

  assert {
    condition     = output.topic_arn == "arn:aws-us-gov:sns:us-gov-west-1:111122223333:orders"
    error_message = "topic_arn is ${output.topic_arn}"
  }
}
