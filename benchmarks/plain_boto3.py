"""What the import budget is a multiple of: boto3 with the three clients that the function has, as users make them."""

import boto3

CLIENTS = [boto3.client(service) for service in ("dynamodb", "sns", "sqs")]
