"""Asking models by recipes: conversations, likelihoods, evaluations."""
