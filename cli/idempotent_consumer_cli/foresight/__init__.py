"""What a replay will do with a letter."""
