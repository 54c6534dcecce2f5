"""What is known of evaluated models beside their name: who made them, and whether their weights are open."""

from collections.abc import Mapping

from django.db import transaction

from bank.actions.errors import BadInput
from bank.models import EvaluatedModel

LONGEST = 200


@transaction.atomic
def set_makers(*, facts: Mapping[int, tuple[str, bool | None]]) -> int:
    """Set ``(organisation, open)`` by the id of a model; how many changed. Raises BadInput."""
    models = {model.pk: model for model in EvaluatedModel.objects.select_for_update().filter(pk__in=list(facts))}
    changed = []
    for pk, (organisation, is_open) in facts.items():
        name = " ".join(organisation.replace("\x00", "").split())
        if len(name) > LONGEST:
            raise BadInput(f"The name of an organisation has at most {LONGEST} characters.")
        model = models.get(pk)
        if model is None:
            raise BadInput("One of these models is not there any more.")
        if (model.organisation, model.open) != (name, is_open):
            model.organisation, model.open = name, is_open
            changed.append(model)
    EvaluatedModel.objects.bulk_update(changed, ["organisation", "open"], batch_size=500)
    return len(changed)
