# The effect: a function like any other, with a role of its own. It knows nothing of keys and claims.
data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      identifiers = ["lambda.amazonaws.com"]
      type        = "Service"
    }
  }
}

data "aws_iam_policy_document" "ingest" {
  statement {
    sid       = "CountWords"
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.words.arn]
  }

  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.ingest.arn}:*"]
  }

  dynamic "statement" {
    for_each = aws_s3_bucket.documents

    content {
      sid       = "ReadDocuments"
      actions   = ["s3:GetObject"]
      resources = ["${statement.value.arn}/*"]
    }
  }
}

resource "aws_iam_role" "ingest" {
  assume_role_policy = data.aws_iam_policy_document.assume.json
  name               = "ingestion-ingest"
}

resource "aws_iam_role_policy" "ingest" {
  name   = "ingest"
  policy = data.aws_iam_policy_document.ingest.json
  role   = aws_iam_role.ingest.name
}

resource "aws_cloudwatch_log_group" "ingest" {
  # checkov:skip=CKV_AWS_158:It holds the names of documents and how many words they have. CloudWatch's own key encrypts it.
  # checkov:skip=CKV_AWS_338:An example, looked at while it is tried.

  name              = "/aws/lambda/ingestion-ingest"
  retention_in_days = 30
}

resource "aws_lambda_function" "ingest" {
  # checkov:skip=CKV_AWS_50:The state machine's trace shows the call, and how long it took.
  # checkov:skip=CKV_AWS_115:An example: it shares the account's concurrency.
  # checkov:skip=CKV_AWS_116:A dead-letter queue of a function is for asynchronous calls. Step Functions waits for the answer, and dead-letters what fails.
  # checkov:skip=CKV_AWS_117:It calls S3 and DynamoDB alone, which are in no VPC.
  # checkov:skip=CKV_AWS_173:Its one variable is a table's name.
  # checkov:skip=CKV_AWS_272:A signing profile belongs to an account. The zip's hash is in each plan.

  filename         = coalesce(var.package, "${path.module}/ingestion.zip")
  function_name    = "ingestion-ingest"
  handler          = "ingestion.handler"
  role             = aws_iam_role.ingest.arn
  runtime          = "python3.13"
  source_code_hash = filebase64sha256(coalesce(var.package, "${path.module}/ingestion.zip"))
  timeout          = 60

  environment {
    variables = { WORDS_TABLE = aws_dynamodb_table.words.name }
  }

  depends_on = [aws_cloudwatch_log_group.ingest, aws_iam_role_policy.ingest]
}

# How often each word stands in all documents: a counter tells if a document is ingested twice.
resource "aws_dynamodb_table" "words" {
  # checkov:skip=CKV_AWS_119:Counts of words. DynamoDB's own key encrypts them.

  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = var.deletion_protection
  hash_key                    = "word"
  name                        = "ingested_words"

  attribute {
    name = "word"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }
}
