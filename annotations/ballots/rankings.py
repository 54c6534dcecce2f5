"""Three to eight answers from best to worst."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import BadVerdict, Ballot, Form, Material, Scale, Settings, flag


class Batch(Ballot):
    """A ranking of the presented answers; ties where the campaign allows them."""

    protocol = "batch"
    kind = "batch"
    fields = ("ranking",)
    title = lazy("Rankings")
    noun = lazy("rankings")
    question = lazy("Put the best answer on top.")
    about = lazy("Three to eight answers from best to worst.")
    names = ("ties",)

    @classmethod
    def settled(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        return super().settled(given) | {"ties": flag("ties", given.get("ties", False))}

    @property
    def ties(self) -> bool:
        return bool(self.settings["ties"])

    @property
    def advice(self) -> str:  # type: ignore[override]
        return _("Answers may share a place.") if self.ties else _("No ties in this campaign.")

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        allowed: dict[str, list[Any]] = {"ranking": list(range(material.answers))}
        return allowed | ({"ties": [True]} if self.ties else {})

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
        ranking = given.get("ranking")
        if not isinstance(ranking, list):
            raise BadVerdict("ranking", _("Give every answer its place."))
        groups = [group if isinstance(group, list) else [group] for group in ranking]
        named = [place for group in groups for place in group]
        whole = all(isinstance(place, int) and not isinstance(place, bool) for place in named)
        if not whole or sorted(named) != list(range(material.answers)):
            raise BadVerdict("ranking", _("Give every answer its place."))
        if not self.ties and any(len(group) > 1 for group in groups):
            raise BadVerdict("ranking", _("Two answers have the same place; this campaign has no ties."))
        return {"ranking": [sorted(material.places[place] for place in group) for group in groups if group]}

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        """The form has the place of each answer by its number, from 0."""
        given = [form.whole(f"place-{answer}") for answer in range(material.answers)]
        if None in given:
            return {"ranking": None}
        found = sorted((place, answer) for answer, place in enumerate(given) if place is not None)
        groups = groupby(found, key=lambda one: one[0])
        return {"ranking": [[answer for place, answer in group] for place, group in groups]}

    def shown(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        ranking = columns.get("ranking")
        if ranking is None:
            return {}
        stood = {canonical: presented for presented, canonical in enumerate(material.places)}
        return {"ranking": [sorted(stood[position] for position in group) for group in ranking]}
