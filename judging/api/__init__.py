"""Judges, runs, juries, judgments and prompts for scripts."""

from judging.api.judges import Judges
from judging.api.judgments import Judgments
from judging.api.prompts import Templates
from judging.api.runs import Juries, Runs

__all__ = ["Judges", "Judgments", "Juries", "Runs", "Templates"]
