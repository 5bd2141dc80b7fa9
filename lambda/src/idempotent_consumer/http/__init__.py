"""The shipped effect of an operation: an HTTP call."""
