"""The operators' command line: what is stuck, why, and how to put it right."""
