"""Rankings of models compared: with those of other voters, benchmarks and languages."""
