"""Two models, or two judges, on the same items: is one better?

Every measure is paired: what makes an item hard for both cancels. Shares by one row a sample: McNemar's exact test; by
several, and means: sign flips by sample; correlations: Williams' t where each item stands for itself, else the
bootstrap by sample; strengths: the contrast of the fit.
"""

from leaderboard.boards.versus.between_judges import judges, named
from leaderboard.boards.versus.between_models import models
from leaderboard.boards.versus.measures import Versus

__all__ = ["Versus", "judges", "models", "named"]
