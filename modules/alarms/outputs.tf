output "alarm_names" {
  description = "Names of the alarms, the composite one included, sorted."
  value       = sort(concat([for alarm in aws_cloudwatch_metric_alarm.consumer : alarm.alarm_name], [aws_cloudwatch_composite_alarm.at_risk.alarm_name]))
}

output "dashboard_name" {
  description = "Name of the dashboard; null without one."
  value       = one(aws_cloudwatch_dashboard.consumer[*].dashboard_name)
}
