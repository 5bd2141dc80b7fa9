"""The peer with the metrics and traces that the consumer always has: for the cold start alone.

Its calls are not patched, since the consumer traces its steps and not each call either.
"""

from aws_lambda_powertools import Metrics, Tracer
from orders_peer import handler

metrics = Metrics(namespace="Orders", service="orders")
tracer = Tracer(service="orders", auto_patch=False)

__all__ = ["handler", "metrics", "tracer"]
