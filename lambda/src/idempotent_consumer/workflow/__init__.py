"""What a workflow's starter and guard are made of."""
