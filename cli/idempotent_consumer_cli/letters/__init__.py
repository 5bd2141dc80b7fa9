"""Dead letters: read, chosen, sent back, and followed."""
