"""`make demo`: over a thousand messages through an example while its processes are killed, and its page."""
