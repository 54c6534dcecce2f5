"""The page that shows all corruptions on a sample's picture and question, and the pictures on it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe
from PIL import Image

from accounts.rules import requires
from bank import corruptions
from bank.corruptions import images, texts
from bank.forms.fields import whole_number
from bank.models import Sample, SampleImage
from bank.objects import Away
from bank.recipes.pictures import corrupted
from bank.samples import drafts

SEED = "shown"


@requires("read-judging")
@require_safe
def corruption_page(request: HttpRequest) -> HttpResponse:
    """Every method on one sample, at the severity of ``?severity=`` (3); ``?sample=`` chooses it, else the first."""
    severity = min(max(whole_number(request.GET.get("severity", "")) or 3, 1), 5)
    samples = Sample.objects.visible_to(request.user).select_related("benchmark")
    pk = whole_number(request.GET.get("sample", ""))
    sample: Sample | None
    pictured = SampleImage.objects.filter(sample__in=samples).order_by("sample__pk", "position")
    if pk is not None:
        sample = get_object_or_404(samples, pk=pk)
        image = pictured.filter(sample=sample).first()
    else:
        image = pictured.select_related("sample__benchmark").first()
        sample = image.sample if image else samples.first()
    context = {
        "section": "recipes",
        "sample": sample,
        "image": image,
        "severity": severity,
        "severities": range(1, 6),
        "categories": [
            (name, [method for method in images.METHODS.values() if method.category == name])
            for name in images.CATEGORIES
        ],
        "texts": _texts(sample, severity) if sample else [],
        "next": samples.filter(pk__gt=sample.pk).order_by("pk").first() if sample else None,
    }
    return render(request, "leaderboard/corruptions.html", context)


def _texts(sample: Sample, severity: int) -> list[tuple[texts.Method, str]]:
    """What each method makes of a question, or of the order of its options."""
    shown = []
    written = drafts.rewritings([sample.pk]).get(sample.pk, {})
    for method in texts.METHODS.values():
        if method.written and method.name in written:
            words = f"{written[method.name].text} (by {written[method.name].origin})"
        elif method.written:
            words = "not written yet: left out (manage.py collect rewrites, then the benchmark's page Drafts)"
        elif method.of_options:
            labels = texts.reorder(list(sample.options), method=method.name, seed=SEED)
            words = "; ".join(str(sample.options[label]) for label in labels) or "this question has no options"
        else:
            at = min(severity, method.severities)
            words = texts.corrupt(sample.instruction, method=method.name, severity=at, seed=SEED)
        shown.append((method, words))
    return shown


@requires("read-judging")
@require_safe
def corrupted_picture(request: HttpRequest, pk: int, method: str, severity: int) -> HttpResponse:
    """The picture of a sample after one corruption, as PNG."""
    image = get_object_or_404(SampleImage.objects.filter(sample__in=Sample.objects.visible_to(request.user)), pk=pk)
    if method not in images.METHODS or not 1 <= severity <= 5:
        raise Http404("unknown corruption")
    try:
        steps = corruptions.single(method, severity=severity).image
        data = corrupted(image.path, sha256=image.sha256, steps=steps, seed=SEED)
    except Away:
        raise
    except (OSError, Image.DecompressionBombError):
        raise Http404("the picture cannot be read") from None
    return HttpResponse(data, content_type="image/png")
