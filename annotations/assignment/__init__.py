"""Who gets which item: slots and leases, practice and gold, and what an assignment shows."""
