"""What all boards have in common in how they count."""

SEED = 20_240_101  # of rank draws, sign flips and Elo's bootstrap: the same data gives the same numbers
PROVISIONAL = 30  # items below which a number is not ranked on the page
EPSILON = 0.2  # by how much a judge may do worse than a person and still stand in (arXiv 2501.10970)
VERSION = 8  # a change of method makes what was kept under the old one worthless
IN_STEPS = "ladder"  # the method of a number that is told in the Ladder's steps
