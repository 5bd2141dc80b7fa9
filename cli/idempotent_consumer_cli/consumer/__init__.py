"""A deployed consumer, as AWS tells of it."""
