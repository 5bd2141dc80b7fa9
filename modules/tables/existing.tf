# An existing table is compared with what the worker will write: a wrong key would reject every event.
data "aws_dynamodb_table" "business" {
  count = local.existing_tables

  name = var.business_table_name

  lifecycle {
    postcondition {
      condition     = self.hash_key == var.business_table.hash_key
      error_message = "business_table.hash_key is ${jsonencode(var.business_table.hash_key)}, but the hash key of the existing table ${self.name} is ${jsonencode(self.hash_key)}: name the table's own key."
    }

    postcondition {
      condition     = contains([for a in self.attribute : "${a.name}/${a.type}"], "${self.hash_key}/${var.business_table.hash_key_type}")
      error_message = "business_table.hash_key_type is ${jsonencode(var.business_table.hash_key_type)}, but the existing table ${self.name} holds ${join(", ", [for a in self.attribute : "${a.name} as ${a.type}"])}: name the table's own type."
    }

    postcondition {
      condition     = join("", compact([self.range_key])) == join("", compact([var.business_table.range_key]))
      error_message = "business_table.range_key is ${jsonencode(var.business_table.range_key)}, but the range key of the existing table ${self.name} is ${jsonencode(self.range_key)}: name the table's own key, or leave it null if the table has none."
    }

    postcondition {
      condition = (
        var.business_table.range_key == null ? true :
        contains([for a in self.attribute : "${a.name}/${a.type}"], "${var.business_table.range_key}/${var.business_table.range_key_type}")
      )
      error_message = "business_table.range_key_type is ${jsonencode(var.business_table.range_key_type)}, but the existing table ${self.name} holds ${join(", ", [for a in self.attribute : "${a.name} as ${a.type}"])}: name the table's own type."
    }
  }
}
