"""Recipes as ChEF has them (arXiv 2311.02692): scenario x instruction x inferencer x metric, as one named thing."""
