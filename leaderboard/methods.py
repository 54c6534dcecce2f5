"""What all boards have in common in how they count."""

SEED = 20_240_101  # of rank draws and bootstraps: the same data gives the same numbers
PROVISIONAL = 30  # items below which a number is not ranked on the page
FEWEST_CLUSTERS = 30  # groups below which each item stands for itself
VERSION = 3  # a change of method makes what was kept under the old one worthless
