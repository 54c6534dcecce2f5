"""Pages of prompt templates: all versions, one of them, and a new one with its preview."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from accounts.http import done, form_page, posted
from accounts.models import User
from accounts.rules import requires
from bank.errors import BadInput
from bank.models import Benchmark, Item
from bank.views.common import act
from judging import protocols
from judging.forms import PreviewForm, TemplateForm
from judging.models import PromptTemplate
from judging.protocols import prompts
from judging.protocols.prompts.stored import (
    ANSWERS,
    add_template,
    discard_template,
    faults_of,
    runs_with,
    templates,
    titles,
    variables_of,
)
from judging.runs import plan, queries, requests
from judging.views import PAGE, SignedInRequest, page


@requires("read-judging")
@require_safe
def template_list(request: SignedInRequest) -> HttpResponse:
    context = {"tab": "templates", "templates": templates(request.user)}
    return page(request, "judging/templates.html", context)


def _template(protocol: str, prompt: str, version: int | None = None) -> prompts.Prompt:
    if protocol not in titles():
        raise Http404("unknown template")
    try:
        return prompts.get(protocol, prompt, version)
    except prompts.UnknownPrompt:
        raise Http404("unknown template") from None


@requires("read-judging")
@require_safe
def template_detail(request: SignedInRequest, protocol: str, prompt: str, version: int) -> HttpResponse:
    """The text of a version, who wrote it and which runs used it."""
    template = _template(protocol, prompt, version)
    runs = runs_with(protocol, prompt, version).visible_to(request.user)  # type: ignore[attr-defined]
    runs = list(runs.select_related("judge", "benchmark", "by").order_by("-pk")[:PAGE])
    stored = PromptTemplate.objects.select_related("by").filter(protocol=protocol, name=prompt, version=version).first()
    context = {
        "tab": "templates",
        "template": template,
        "title": titles()[protocol],
        "stored": stored,
        "runs": queries.listed(runs, viewer=request.user),
        "versions": PromptTemplate.objects.filter(protocol=protocol, name=prompt).defer("text"),
    }
    return page(request, "judging/template.html", context)


@requires("write-judging")
@form_page
def template_new(request: SignedInRequest) -> HttpResponse:
    """Write a version, starting from a copy of the one that ``protocol`` and ``prompt`` in the URL name."""
    form = TemplateForm(posted(request), initial=_copied(request))
    faults: list[str] = []
    if form.is_valid():
        try:
            stored = add_template(**form.cleaned_data, by=request.user)
        except BadInput as error:
            if error.field == "text":
                faults = str(error).split("\n")
            else:
                form.add_error(error.field or None, str(error))
        else:
            words = f"Version {stored.version} of {stored.name} is stored."
            return done(request, words, "judging:template-detail", stored.protocol, stored.name, stored.version)
    variables_by_protocol = {name: variables_of(name) for name in titles()}
    context = {
        "tab": "templates",
        "form": form,
        "faults": faults,
        "known": variables_by_protocol,
        "benchmarks": Benchmark.objects.order_by("title", "version"),
    }
    return page(request, "judging/template-new.html", context, refused=bool(form.errors or faults))


def _copied(request: SignedInRequest) -> dict[str, Any]:
    try:
        template = _template(request.GET.get("protocol", "pair"), request.GET.get("prompt", "default"))
    except Http404:
        return {}
    own_name = "" if template.name in prompts.names(template.protocol) else template.name
    return {"protocol": template.protocol, "name": own_name, "text": template.text}


@requires("read-criteria")
@require_POST
def template_preview(request: SignedInRequest) -> HttpResponse:
    """A draft, checked and rendered with a real sample. Its criteria are read, which is logged."""
    form = PreviewForm(request.POST)
    context: dict[str, Any] = {"faults": []}
    if not form.is_valid():
        context["problem"] = "Choose a protocol and write a template."
    else:
        context |= _preview(request.user, **form.cleaned_data)
    return page(request, "judging/_template_preview.html", context)


def _example_settings(protocol: protocols.Protocol, *, criteria: bool, reasoning: str) -> dict[str, Any]:
    """With these choices, where the protocol leaves them."""
    settings = protocol.settings(protocol.example)
    if "criteria" not in protocol.fixed:
        settings["criteria"] = criteria
    if reasoning in protocol.reasonings:
        settings["reasoning"] = reasoning
    return settings


def _preview(
    user: User,
    *,
    protocol: str,
    text: str,
    as_published: bool,
    benchmark: Benchmark | None,
    sample: str,
    criteria: bool,
    reasoning: str,
) -> dict[str, Any]:
    if protocol not in titles():
        return {"problem": "Unknown protocol."}
    if faults := faults_of(protocol, text, as_published=as_published):
        return {"faults": faults}
    if protocol == ANSWERS:
        return {"problem": "It can be used. A recipe that asks by it shows the first answers under “Try on 5”."}
    used_protocol = protocols.get(protocol)
    if benchmark is None:
        return {"problem": "Choose a benchmark to see it with a real sample."}
    items = plan.judgeable_items(benchmark=benchmark, protocol=used_protocol, rejected=bool(sample)).select_related(
        "sample__benchmark"
    )
    item: Item | None = (items.filter(sample__key=sample) if sample else items).first()
    if item is None:
        subject = f"Sample {sample}" if sample else str(benchmark.title)
        return {"problem": f"{subject} has no items of kind {used_protocol.kind}."}
    settings = _example_settings(used_protocol, criteria=criteria, reasoning=reasoning)
    draft = prompts.Prompt(protocol, "draft", 0, text, "")
    try:
        call = requests.preview_request(template=draft, settings=settings, item=item, user=user)
    except protocols.CannotAsk as error:
        return {"problem": f"Sample {item.sample.key} cannot be asked about: {error}."}
    return {"asked": call, "sample": item.sample, "settings": settings, "logged": settings["criteria"]}


@requires("write-judging")
@require_POST
def template_discard(request: SignedInRequest, protocol: str, prompt: str, version: int) -> HttpResponse:
    """Delete an unused version."""
    template = get_object_or_404(PromptTemplate, protocol=protocol, name=prompt, version=version)
    if act(request, discard_template, f"Version {version} of {prompt} is deleted.", template=template):
        return redirect("judging:template-list")
    return redirect("judging:template-detail", protocol, prompt, version)
