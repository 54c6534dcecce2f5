"""Labels: submitted, changed, adjudicated; how far they agree; in and out as files."""
