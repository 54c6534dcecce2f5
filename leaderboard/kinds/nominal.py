"""Nominal labels: the category of one text, picture or answer, by people and judges (Calderon et al., arXiv 2501.10970:
the labels that a judge may give in people's place).
"""

from leaderboard import metrics
from leaderboard.kinds.base import Kind


class Nominal(Kind):
    name = "nominal"
    title = "Categories"
    aliases = ("label",)
    column = "option"
    no_models = (
        "Categories say what a text or picture is, not how good a model's answer is; no board of models counts them."
    )
    metrics = metrics.CATEGORIES
    stand_in = "equality"
    reference = "majority of people"
