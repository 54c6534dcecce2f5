"""Pages of the files that a worker writes for whoever asked for an export."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from accounts.http import PageRequest, done, person
from accounts.rules import ANYWHERE, requires
from bank.intake import export_files
from bank.models import ExportFile
from bank.views.common import bank_page, told


def answer_of(request: HttpRequest, made: HttpResponseBase | ExportFile) -> HttpResponseBase:
    """The file that a page was asked for, or on to where it will be."""
    if not isinstance(made, ExportFile):
        return made
    return done(request, f"A worker writes {made.name}. You may leave this page.", "bank:exports")


@requires("read-bank", of=ANYWHERE)
@require_safe
def export_list(request: PageRequest) -> HttpResponse:
    """The files that a worker wrote or writes for this person; the list is asked for again while one is not ready."""
    files = ExportFile.objects.filter(by=person(request))
    context = {"files": files, "waits": any(file.state == ExportFile.State.WAITING for file in files)}
    if request.htmx:
        return render(request, "bank/_exports.html", context)
    return bank_page(request, "bank/exports.html", context)


@requires("read-bank", of=ANYWHERE)
@require_safe
def export_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """A file that is ready, for who asked for it."""
    file = get_object_or_404(ExportFile, by=person(request), pk=pk)
    with told(request):
        return export_files.downloaded(file)
    return redirect("bank:exports")
