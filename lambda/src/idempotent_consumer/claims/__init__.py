"""At most one worker is at an operation."""
