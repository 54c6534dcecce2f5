"""What follows what has happened to runs, submissions and evaluations."""

from judging.collecting import submissions
from judging.recipes import evaluations
from judging.runs.notices import announce_runs, tell_of_runs
from judging.work import leases


def follow() -> None:
    """Begin what comes next in evaluations and queues of submissions, and tell whoever is to know."""
    evaluations.advance_open()
    submissions.advance_open()
    leases.end_left()
    tell_of_runs()
    announce_runs()
