"""One sample: the page, its criteria, its history, the editor; and many at once."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_safe

import bank.criteria
from accounts.http import PageRequest, done, form_page, person
from accounts.rules import BY_NAME, requires
from bank.errors import BadInput, Stale
from bank.forms.fields import whole_number
from bank.forms.samples import Bulk, Editor
from bank.models import Benchmark, Draft, Response, Sample
from bank.models.reviews import GUIDELINE
from bank.samples import drafts, quality
from bank.samples import editor as actions
from bank.samples.listing import Filter, chosen_samples, count_chosen
from bank.views.common import OF_SAMPLE, bank_page, benchmark_named, following, suggestions

SIDE_BY_SIDE = 4
SHOWN_FIRST = 2


def _sample(pk: int) -> Sample:
    samples = Sample.objects.select_related("benchmark", "capability", "author").prefetch_related("images")
    return get_object_or_404(samples, pk=pk)


def _picked(responses: Sequence[Response], models: Sequence[str]) -> list[str]:
    """The responses (ids) to show side by side: of these models, as ids; the first ones where none is named."""
    if not models:
        return [str(response.pk) for response in responses[:SHOWN_FIRST]]
    by_model = {f"{r.model_id}": str(r.pk) for r in reversed(responses) if not r.variant}
    return list(dict.fromkeys(by_model[model] for model in models if model in by_model))[:SIDE_BY_SIDE]


@requires("read-bank", of=OF_SAMPLE)
@require_safe
def sample_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One sample with its pictures and responses side by side; criteria open on request, and each opening is logged."""
    sample = _sample(pk)
    chosen = Filter.from_query(request.GET)
    responses = list(
        sample.responses.select_related("model").order_by("model__name", "variant").defer("text", "reason")
    )
    asked = [value for value in request.GET.getlist("model") if whole_number(value) is not None][:50]
    picked = _picked(responses, asked)
    texts = {str(r.pk): r for r in Response.objects.filter(pk__in=picked).select_related("model")}
    query = chosen.address()
    models = urlencode([("model", value) for value in asked])
    context = {
        "tab": "sample",
        "sample": sample,
        "hints": quality.hints_in(sample.quality_hints),
        "alike": _alike(sample),
        "responses": responses,
        "picked": [texts[value] for value in picked],
        "picked_models": {texts[value].model_id for value in picked},
        "most": SIDE_BY_SIDE,
        "before": following(sample, chosen, back=True),
        "after": following(sample, chosen),
        "query": query,
        "chosen_fields": parse_qsl(query),
        "onward": "&".join(filter(None, (query, models))),
        "items": sample.items.values("kind").annotate(n=Count("pk")).order_by("kind"),
        "reviews": sample.reviews.select_related("round", "reviewer").exclude(verdict="").order_by("-pk"),
        "guideline": GUIDELINE,
        "may_check": sample.status == Sample.Status.EXPERT and sample.author_id != person(request).pk,
    }
    return bank_page(request, "bank/sample.html", context)


def _alike(sample: Sample) -> list[Sample]:
    """Samples with almost the same pictures, if the sample has that hint."""
    bit = quality.BY_NAME["duplicate"]
    if not sample.quality_hints & bit.bit:
        return []
    twins = quality.lookalikes(sample, among=quality.masks_with(bit))
    return list(Sample.objects.filter(pk__in=twins[:20]).order_by("position"))


@requires("read-criteria", of=OF_SAMPLE)
@require_safe
def criteria(request: PageRequest, pk: int) -> HttpResponse:
    """The criteria of a sample; the access log gets one record."""
    sample = get_object_or_404(Sample.objects.select_related("benchmark"), pk=pk)
    by_sample = bank.criteria.for_staff(user=person(request), samples=[sample], how="page")
    texts = by_sample.get(sample.pk, [])
    context = {
        "sample": sample,
        "criteria": texts,
        "points": sum(text.weight or 0 for text in texts),
    }
    return bank_page(request, "bank/_criteria.html" if request.htmx else "bank/criteria.html", context)


@requires("read-bank", of=OF_SAMPLE)
@require_safe
def sample_history(request: HttpRequest, pk: int) -> HttpResponse:
    """Who changed what and when; changes of criteria by name, their texts on a page of their own."""
    sample = _sample(pk)
    context = {
        "tab": "history",
        "sample": sample,
        "revisions": [(r, _lines(r.changes)) for r in sample.revisions.select_related("by")[:200]],
    }
    return bank_page(request, "bank/history.html", context)


@requires("read-criteria", of=OF_SAMPLE)
@require_safe
def criteria_history(request: HttpRequest, pk: int) -> HttpResponse:
    """Every old and new text of the criteria; logged."""
    sample = _sample(pk)
    changes = bank.criteria.changes_for_staff(user=person(request), sample=sample)
    context = {"tab": "history", "sample": sample, "changes": changes}
    return bank_page(request, "bank/criteria-history.html", context)


def _lines(changes: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(field, old, new) as words."""
    return [(name.replace("_", " "), _words(old), _words(new)) for name, (old, new) in changes.items()]


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{letter}: {text}" for letter, text in value.items())
    if isinstance(value, list):
        return "\n".join(
            f"{picture['sha256'][:8]} {picture.get('description', '')}".strip()
            if isinstance(picture, dict)
            else str(picture)
            for picture in value
        )
    return str(value)


@requires("write-bank", of=BY_NAME)
@form_page
def sample_new(request: HttpRequest, name: str) -> HttpResponse:
    """The editor, empty."""
    return _edit(request, benchmark_named(name), None)


@requires("write-bank", of=OF_SAMPLE)
@form_page
def sample_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """The editor over a sample; opening it reads the criteria, which is logged."""
    sample = _sample(pk)
    return _edit(request, sample.benchmark, sample)


def _criteria(request: HttpRequest, sample: Sample | None) -> list[bank.criteria.Text]:
    if sample is None:
        return []
    return bank.criteria.for_staff(user=person(request), samples=[sample], how="editor").get(sample.pk, [])


def _draft(request: HttpRequest, benchmark: Benchmark, sample: Sample | None) -> Draft | None:
    """The draft that the editor was opened with."""
    pk = whole_number((request.POST if request.method == "POST" else request.GET).get("draft"))
    return drafts.waiting(benchmark).filter(sample=sample, part=Draft.SAMPLE, pk=pk).first() if pk else None


def _after_saving(request: HttpRequest, saved: Sample, draft: Draft | None) -> HttpResponse:
    if draft is not None:
        drafts.taken_in_editor(sample=saved, draft=draft.pk, by=person(request))
    if "another" in request.POST:
        return done(request, f"Saved {saved.key}. Here is room for the next one.", "bank:sample-new", saved.benchmark)
    return done(request, f"Saved {saved.key}.", "bank:sample-detail", saved.pk)


def _edit(request: HttpRequest, benchmark: Benchmark, sample: Sample | None) -> HttpResponse:
    posted = request.method == "POST"
    context: dict[str, Any] = {"tab": "edit", "benchmark": benchmark, "sample": sample}
    draft = context["draft"] = _draft(request, benchmark, sample)
    if posted:
        editor = Editor(benchmark=benchmark, sample=sample, criteria=[], data=request.POST, files=request.FILES)
    else:
        proposed = drafts.proposal(draft) if draft else None
        editor = Editor(benchmark=benchmark, sample=sample, criteria=_criteria(request, sample), proposed=proposed)
    if posted and editor.is_valid() and not editor.adding:
        try:
            saved = actions.save_sample(
                by=person(request),
                benchmark=benchmark,
                sample=sample,
                edition=editor.fields.cleaned_data["edition"] or 0,
                fields=editor.values(),
                capability=editor.fields.cleaned_data["capability"],
                pictures=editor.picture_list(),
                criteria=editor.criteria_rows(),
                note=editor.fields.cleaned_data["note"].strip(),
            )
        except Stale as stale:
            context["stale"] = str(stale)
            context["theirs"] = _since(sample, editor.fields.cleaned_data["edition"])
            editor.take_over(Sample.objects.only("edition").get(pk=sample.pk).edition if sample else 0)
        except BadInput as error:
            editor.fields.add_error("key", str(error))
        else:
            return _after_saving(request, saved, draft)
    context |= {"editor": editor, "suggestions": suggestions(benchmark)}
    return bank_page(request, "bank/sample-form.html", context)


def _since(sample: Sample | None, edition: int | None) -> list[Any]:
    """The changes of others after the edition that the form was opened with."""
    if sample is None:
        return []
    revisions = sample.revisions.select_related("by").filter(edition__gt=edition or 0)
    return [(revision, _lines(revision.changes)) for revision in revisions[:5]]


def _changed_in_words(changed: int, count: int) -> str:
    same = f" {count - changed:,} had these values already." if changed < count else ""
    return f"Changed {changed:,} sample{pluralize(changed)}.{same}"


@requires("write-bank", of=BY_NAME)
@form_page
def samples_change(request: HttpRequest, name: str) -> HttpResponse:
    """Set values on all samples of the filter: first show what and how many, then, once confirmed, do it."""
    benchmark = benchmark_named(name)
    chosen = Filter.from_query(request.GET)
    samples = chosen_samples(benchmark, chosen)
    count = count_chosen(benchmark, chosen)
    form = Bulk(request.POST or None, benchmark=benchmark)
    context: dict[str, Any] = {"benchmark": benchmark, "chosen": chosen, "count": count}
    if form.is_valid() and "back" not in request.POST:
        values, note = form.values(), form.cleaned_data["note"].strip()
        context["changes"] = [(n.replace("_", " "), str(v) if v else "none") for n, v in values.items()]
        if not values:
            form.add_error(None, "Choose what to change.")
        elif values.get("status") == Sample.Status.REJECTED and not note:
            form.add_error("note", "Say why the samples are rejected.")
        elif request.POST.get("confirmed") == str(count):
            changed = actions.change_many(by=person(request), samples=samples, values=values, note=note)
            return done(
                request,
                _changed_in_words(changed, count),
                f"{reverse('bank:benchmark-detail', args=[benchmark])}?{_remaining_filter(chosen, values)}",
            )
        else:
            context["ask"] = True
            context["moved"] = "confirmed" in request.POST
    context |= {"form": form, "query": chosen.address(), "suggestions": suggestions(benchmark)}
    return bank_page(request, "bank/samples-change.html", context)


def _remaining_filter(chosen: Filter, values: dict[str, Any]) -> str:
    """The filter without changed fields: otherwise the list would be empty."""
    pairs = [pair for pair in chosen.address().split("&") if pair and pair.split("=")[0] not in values]
    return "&".join(pairs)
