"""What all boards have in common in how they count."""

SEED = 20_240_101  # of rank draws, sign flips and Elo's bootstrap: the same data gives the same numbers
PROVISIONAL = 30  # items below which a number is not ranked on the page
VERSION = 5  # a change of method makes what was kept under the old one worthless
