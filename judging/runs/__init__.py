"""Runs: one judge or endpoint over a fixed set of items.

``actions`` starts and changes them · ``plan`` says which calls they are made of, ``requests`` what each call sends ·
``estimates`` what a run will take · ``queries`` what its page shows · ``compare`` two runs side by side · ``juries``
several judges as one · ``attacks`` and ``attack_report`` how far a judge can be misled · ``collecting`` runs that
collect a model's responses or descriptions of images · ``item_sets`` parts of a benchmark.
"""
