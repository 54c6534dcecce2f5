from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User
    from bank.models import Benchmark, Item


class AnnotationsConfig(AppConfig):
    name = "annotations"

    def ready(self) -> None:
        from accounts.actions import on_erasure, on_role
        from accounts.models import Role
        from bank.intake import registry
        from judging.runs import item_sets

        registry.register("labels", "annotations.labels.imports.LabelImporter")
        registry.EXPORTED["labels"] = "annotations.labels.exports.all_labels"
        registry.EXPORTED["preferences"] = "annotations.labels.exports.all_preferences"
        registry.ROWS |= dict.fromkeys(("labels", "preferences"), ("annotations.Label", "campaign__benchmark"))
        registry.DOWNLOADS["campaign"] = "annotations.views.data.campaign_file"
        registry.SHAPES |= {
            "label-studio": registry.Shape(
                "Label Studio JSON: labels as annotations",
                "application/json",
                "json",
                ("labels",),
                "annotations.labels.exports.label_studio",
            ),
            "label-studio-tasks": registry.Shape(
                "Label Studio project: tasks to label, labelling configuration and pictures, as a zip",
                "application/zip",
                "zip",
                ("items",),
                "annotations.labels.tasks.label_studio",
                of_campaign=True,
            ),
            "label-studio-labelled": registry.Shape(
                "Label Studio project with its labels: tasks with annotations, configuration and pictures, as a zip",
                "application/zip",
                "zip",
                ("items",),
                "annotations.labels.tasks.labelled_label_studio",
                of_campaign=True,
            ),
            "argilla": registry.Shape(
                "Argilla dataset: records to label and settings, as a zip",
                "application/zip",
                "zip",
                ("items",),
                "annotations.labels.tasks.argilla",
                of_campaign=True,
            ),
        }
        item_sets.register("campaign", _items)
        on_role(Role.ANNOTATOR, _make_annotator)
        on_erasure(_erase)


def _make_annotator(person: "User") -> None:
    from annotations.campaigns.members import make_annotator

    make_annotator(person)


def _erase(person: "User") -> None:
    from annotations.campaigns.members import erase_annotator

    erase_annotator(person)


def _items(benchmark: "Benchmark", name: str) -> "QuerySet[Item]":
    """The items of a campaign, for runs over them. Raises LookupError."""
    from annotations.models import Campaign
    from bank.models import Item

    campaign = Campaign.objects.filter(benchmark=benchmark, name=name).first()
    if campaign is None:
        raise LookupError(f"there is no campaign {name!r} in {benchmark}.")
    return Item.objects.filter(pk__in=campaign.campaign_items.values("item"))
