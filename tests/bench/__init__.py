"""Speed as ratios in one run: ``make bench``. Each part measures the work and its reference, now and here."""
