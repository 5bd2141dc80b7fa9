"""The ledger beside the business table."""
