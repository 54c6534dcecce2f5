"""How many answers of a submission speak to whoever judges them."""

from bank import guard
from bank.models import Response, Submission
from bank.text.addressed import is_addressed


@guard.working()
def answers_to_judges(submission: Submission) -> tuple[int, int]:
    """Of how many answers the text speaks of the judge, criteria or votes, and how many there are."""
    texts = Response.objects.filter(submission=submission).order_by().values_list("text", flat=True)
    found = [is_addressed(text) for text in texts.iterator(chunk_size=1000)]
    return sum(found), len(found)
