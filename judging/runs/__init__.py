"""Runs: one judge or endpoint over a fixed set of items.

``actions`` starts and changes them · ``plan`` lists the judgments to make, ``requests`` builds what each call sends ·
``estimates`` predicts calls and costs · ``queries`` reads for their pages · ``compare`` puts two side by side ·
``juries`` combines several judges · ``attacks`` and ``attack_report`` test how far a judge can be misled ·
``collecting`` collects a model's responses or descriptions of images · ``item_sets`` selects parts of a benchmark.
"""
