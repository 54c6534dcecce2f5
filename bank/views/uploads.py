"""Pages of uploads, for curators and administrators, and for who curates single benchmarks."""

from contextlib import suppress
from typing import Any, cast

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.http import page_of, person
from accounts.rules import ANYWHERE, allowed, requires, where
from bank.forms.columns import ColumnsForm
from bank.forms.uploads import ChoicesForm
from bank.images import TYPES
from bank.intake.formats import mapping, templates
from bank.intake.uploads import actions, staging
from bank.models import Benchmark, Upload
from bank.views.common import bank_page, benchmark_named, told

PAGE = 30


def _has_columns(upload: Upload) -> bool:
    """Whether its columns can be named now."""
    return upload.state in (Upload.State.MAPPING, Upload.State.CHECKED) and bool(staging.columns(upload)[1])


@requires("write-bank", of=ANYWHERE)
def upload_list(request: HttpRequest) -> HttpResponse:
    """Where files are dropped, and the uploads so far. A plain form's files come in by POST."""
    fault = ""
    if request.method == "POST":
        try:
            files = cast(Any, request.FILES.getlist("files"))
            named = request.POST.get("benchmark", "")
            upload = actions.receive_form(by=person(request), files=files, benchmark=named)
        except actions.BadInput as error:
            fault = str(error)
        else:
            return redirect("bank:upload-detail", upload.pk)
    viewer = person(request)
    page = page_of(request, Upload.objects.seen_by(viewer).select_related("by"), PAGE)
    chosen = request.POST.get("benchmark") or request.GET.get("benchmark", "")
    benchmark = benchmark_named(chosen) if chosen else None
    if benchmark is not None and not allowed(viewer, "write-bank", of=benchmark):
        raise Http404("no such benchmark")
    context = {"page": page, "fault": fault, "benchmark": benchmark} | _sending()
    if not allowed(viewer, "write-bank"):
        context["curated"] = Benchmark.objects.filter(where(viewer, "write-bank"))
        context["templates"] = {"samples": mapping.TITLES["samples"]}
    return bank_page(request, "bank/uploads.html", context, status=422 if fault else 200)


@requires("write-bank", of=ANYWHERE)
def upload_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One upload, in whichever state it is."""
    upload = _upload(request, pk)
    if upload.state == Upload.State.MAPPING:
        return redirect("bank:upload-columns", pk)
    return _detail(request, upload, None)


@require_safe
@requires("write-bank", of=ANYWHERE)
def upload_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The live part of an upload's page; when the worker is through, the whole page is asked for again."""
    upload = _upload(request, pk)
    context = {"upload": upload, "progress": staging.progress(upload)}
    response = render(request, "bank/_upload_progress.html", context)
    if not upload.is_worked:
        response["HX-Refresh"] = "true"
    return response


@require_POST
@requires("write-bank", of=ANYWHERE)
def upload_confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Bring the files in with the form's choices, or check them again first where the choices changed."""
    upload = _upload(request, pk)
    if upload.state != Upload.State.CHECKED:
        messages.error(request, "This upload has gone on meanwhile.")
        return redirect("bank:upload-detail", pk)
    form = ChoicesForm(request.POST, upload=upload)
    if not form.is_valid():
        return _detail(request, upload, form, status=422)
    with told(request, actions.WrongState):
        form.carry_out(go_on=True)
    return redirect("bank:upload-detail", pk)


@requires("write-bank", of=ANYWHERE)
def upload_columns(request: HttpRequest, pk: int) -> HttpResponse:
    """What the columns of a table hold; by POST it is checked so, with ``look`` the form is only drawn again."""
    upload = _upload(request, pk)
    if not _has_columns(upload):
        return redirect("bank:upload-detail", pk)
    looks = "look" in request.POST
    sent = {"typed": request.POST} if looks else {"data": request.POST or None}
    form = ColumnsForm(**sent, upload=upload, shape=request.GET.get("shape", ""))
    if request.method == "POST" and not looks and form.is_valid():
        with told(request, actions.WrongState):
            form.carry_out()
        return redirect("bank:upload-detail", pk)
    context = {"upload": upload, "form": form, "looks": looks, "templates": mapping.TITLES, "naming": True}
    template = "bank/_upload_columns.html" if looks and request.htmx else "bank/upload.html"  # type: ignore[attr-defined]
    return bank_page(request, template, context, status=422 if form.errors else 200)


@require_POST
@requires("write-bank", of=ANYWHERE)
def upload_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End the upload; nothing of it stays."""
    upload = _upload(request, pk)
    with told(request, actions.WrongState):
        if actions.cancel(upload=upload):
            messages.success(request, f"{upload.name} was cancelled. Nothing of it is left.")
    return redirect("bank:upload-detail", pk)


@require_POST
@requires("write-bank", of=ANYWHERE)
def upload_dismiss(request: HttpRequest) -> HttpResponse:
    """End every checked upload of this name; nothing of them stays."""
    named = Upload.objects.seen_by(person(request)).filter(name=request.POST.get("name", ""))
    waiting = named.filter(state=Upload.State.CHECKED)
    ended = 0
    for upload in waiting:
        with suppress(actions.WrongState):
            ended += actions.cancel(upload=upload)
    if ended:
        messages.success(request, f"{request.POST['name']} was cancelled. Nothing of it is left.")
    return redirect("home")


@require_safe
@requires("write-bank", of=ANYWHERE)
def upload_problems(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Every problem by row, as CSV: place, field and reason."""
    upload = _upload(request, pk)
    try:
        file = staging.reading(upload, "problems.csv")
    except FileNotFoundError:
        raise Http404("no list of problems") from None
    return FileResponse(file, as_attachment=True, filename=f"problems-{upload.pk}.csv", content_type="text/csv")


@require_safe
@requires("write-bank", of=ANYWHERE)
def upload_template(request: HttpRequest, part: str, shape: str) -> HttpResponse:
    """A few rows of a part of the bank's own format, to start a file from."""
    if part not in templates.ROWS or shape not in templates.SHAPES:
        raise Http404("no such template")
    headers = {"Content-Disposition": f'attachment; filename="{part}.{shape}"'}
    return HttpResponse(templates.as_file(part, shape), content_type=templates.SHAPES[shape], headers=headers)


@require_safe
@requires("write-bank", of=ANYWHERE)
def upload_image(request: HttpRequest, pk: int, position: int) -> HttpResponseBase:
    """A picture of the first samples, checked and encoded anew."""
    upload = _upload(request, pk)
    try:
        return FileResponse(staging.reading(upload, f"preview/{position}.jpg"), content_type=TYPES["jpg"])
    except FileNotFoundError:
        raise Http404("no such picture") from None


def _upload(request: HttpRequest, pk: int) -> Upload:
    return get_object_or_404(Upload.objects.seen_by(person(request)).select_related("by"), pk=pk)


def _detail(request: HttpRequest, upload: Upload, form: ChoicesForm | None, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {"upload": upload, "progress": staging.progress(upload)}
    if upload.state == Upload.State.FAILED:
        context["templates"] = mapping.TITLES
    if upload.state == Upload.State.RECEIVING:
        context |= _sending()
    if upload.state == Upload.State.CHECKED:
        context |= {"form": form or ChoicesForm(upload=upload), "samples": staging.preview(upload)}
        context["is_mapped"] = bool(staging.columns(upload)[1])
        context["others_wait"] = staging.others_wait(upload)
    if upload.state == Upload.State.DONE:
        slug, version = upload.choices["benchmark"], upload.choices["version"]
        context["benchmark"] = Benchmark.objects.filter(slug=slug, version=version).first()
    context["has_problems"] = staging.exists(upload, "problems.csv")
    return bank_page(request, "bank/upload.html", context, status=status)


def _sending() -> dict[str, Any]:
    return {"chunk": actions.CHUNK, "limit": actions.limit(), "templates": mapping.TITLES}
