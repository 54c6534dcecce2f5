"""Benchmarks, their samples and the items made of them."""
