"""Rankings of three to eight answers, best first."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import BadVerdict, Ballot, Choice, Material, PostedForm, Scale, Settings, bool_setting

MIN_RANKED, MAX_RANKED = 3, 8


class Batch(Ballot):
    """A ranking of the presented answers, with ties if the campaign allows them."""

    protocol = "batch"
    layout = "ranking"
    numbered = True
    fields = ("ranking",)
    title = lazy("Rankings")
    noun = lazy("rankings")
    question = lazy("Put the best answer on top.")
    about = lazy("Three to eight answers from best to worst.")
    setting_names = ("ties",)
    compared = "orders of two answers"
    alike = lazy("you and the others put {same} of {n} pairs of answers in the same order")
    usual_seconds = 90
    lacking = f"no item has {MIN_RANKED} to {MAX_RANKED} answers."

    def fitting(self, items: QuerySet[Any]) -> QuerySet[Any]:
        return items.annotate(n=Count("places")).filter(n__gte=MIN_RANKED, n__lte=MAX_RANKED)

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        return super().clean_settings(given) | {"ties": bool_setting("ties", given.get("ties", False))}

    @property
    def keys(self) -> Sequence[Choice]:
        return (
            Choice("", lazy("to a card"), "↓"),
            Choice("", lazy("to lift"), "Space"),
            Choice("", lazy("to place it"), "1–9"),
        )

    @property
    def ties(self) -> bool:
        return bool(self.settings["ties"])

    @property
    def advice(self) -> str:  # type: ignore[override]
        return _("Answers may share a place.") if self.ties else _("No ties in this campaign.")

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        allowed: dict[str, list[Any]] = {"ranking": list(range(material.answers))}
        return allowed | ({"ties": [True]} if self.ties else {})

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        ranking = given.get("ranking")
        if not isinstance(ranking, list):
            raise BadVerdict("ranking", _("Give every answer its place."))
        groups = [group if isinstance(group, list) else [group] for group in ranking]
        answers = [answer for group in groups for answer in group]
        all_integers = all(isinstance(answer, int) and not isinstance(answer, bool) for answer in answers)
        if not all_integers or sorted(answers) != list(range(material.answers)):
            raise BadVerdict("ranking", _("Give every answer its place."))
        if not self.ties and any(len(group) > 1 for group in groups):
            raise BadVerdict("ranking", _("Two answers have the same place; this campaign has no ties."))
        return {"ranking": [sorted(material.places[answer] for answer in group) for group in groups if group]}

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        """The form has one field per answer, with the answer's rank."""
        ranks = [form.whole(f"place-{answer}") for answer in range(material.answers)]
        if None in ranks:
            return {"ranking": None}
        ranked = sorted((rank, answer) for answer, rank in enumerate(ranks) if rank is not None)
        groups = groupby(ranked, key=lambda pair: pair[0])
        return {"ranking": [[answer for _rank, answer in group] for _rank, group in groups]}

    def present(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        ranking = columns.get("ranking")
        if ranking is None:
            return {}
        presented = {canonical: answer for answer, canonical in enumerate(material.places)}
        return {"ranking": [sorted(presented[position] for position in group) for group in ranking]}
