"""Forms of the bank's pages."""
