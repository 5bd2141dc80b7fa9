"""`python -m idempotent_consumer_cli`."""

from idempotent_consumer_cli.main import run

if __name__ == "__main__":
    run()
