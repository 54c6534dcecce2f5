"""Text: rendered, masked, and redacted."""
