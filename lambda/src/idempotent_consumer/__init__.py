"""Makes duplicate messages harmless: database writes once, notifications never lost."""
