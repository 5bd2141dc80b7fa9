"""Rows of ledgers, and what a person decides about them."""
