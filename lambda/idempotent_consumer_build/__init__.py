"""Builds the function's zip: the library with its pinned requirements, and a user's own code with its own."""
