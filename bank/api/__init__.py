"""The bank's API."""
