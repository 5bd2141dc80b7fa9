output "alarm_names" {
  description = "Names of the alarms, sorted."
  value       = sort([for alarm in aws_cloudwatch_metric_alarm.consumer : alarm.alarm_name])
}
