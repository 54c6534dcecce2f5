"""Reads for the bank's pages."""

from bank.queries.benchmarks import benchmarks_with_counts, by_status, groups_of, summary_of
from bank.queries.samples import Facet, Filter, Listing, chosen_samples, count_chosen, holding, list_samples
from bank.queries.trees import Node, tree_of

__all__ = [
    "Facet",
    "Filter",
    "Listing",
    "Node",
    "benchmarks_with_counts",
    "by_status",
    "chosen_samples",
    "count_chosen",
    "groups_of",
    "holding",
    "list_samples",
    "summary_of",
    "tree_of",
]
