# Each scan of a parcel, put on a bus of its own, becomes a row with the whole event in it.
module "parcels" {
  source = "../.."

  name                = "parcels"
  business_table_name = "parcel_scans"

  deletion_protection = var.deletion_protection

  business_table = {
    hash_key = "scan_id"
  }

  # The producer's id: a producer that puts an event again, as its first call timed out, gets a new one from EventBridge.
  event = {
    envelope = "eventbridge"
    id       = "detail.scan_id"
    item     = "{scan_id: detail.scan_id, parcel: detail.parcel, event: @}"
  }

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    producers                  = [{ service = "events.amazonaws.com", source_arn = aws_cloudwatch_event_rule.scans.arn }]
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

resource "aws_cloudwatch_event_bus" "parcels" {
  name = "parcels"
}

resource "aws_cloudwatch_event_rule" "scans" {
  event_bus_name = aws_cloudwatch_event_bus.parcels.name
  event_pattern  = jsonencode({ detail-type = ["Parcel Scanned"], source = ["warehouse"] })
  name           = "parcel-scans"
}

resource "aws_cloudwatch_event_target" "scans" {
  arn            = module.parcels.queue_arn
  event_bus_name = aws_cloudwatch_event_bus.parcels.name
  rule           = aws_cloudwatch_event_rule.scans.name
}
