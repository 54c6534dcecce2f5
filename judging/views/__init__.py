"""Pages of judging: runs, judges, judgments."""
