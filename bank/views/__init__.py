"""Pages of the bank, for curators and administrators."""
