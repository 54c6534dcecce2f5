"""The editor of a capability tree."""

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse

from accounts.http import form_page, person
from accounts.rules import BY_NAME, requires
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.models import Benchmark, Capability
from bank.samples import capabilities as actions
from bank.samples.benchmarks import by_capability
from bank.samples.capabilities import tree_of
from bank.samples.capability_trees import TITLES, TREES, add_template
from bank.views.common import bank_page, benchmark_named, told


def _node(request: HttpRequest, benchmark: Benchmark, name: str = "node") -> Capability:
    if (key := whole_number(request.POST.get(name))) is not None:
        node = benchmark.capabilities.select_related("parent", "benchmark").filter(pk=key).first()
        if node is not None:
            return node
    raise BadInput("That capability is not there any more.")


def _parent(request: HttpRequest, benchmark: Benchmark) -> Capability | None:
    return _node(request, benchmark, "parent") if request.POST.get("parent") else None


@requires("write-bank", of=BY_NAME)
@form_page
def capabilities(request: HttpRequest, name: str) -> HttpResponse:
    """The tree; a chosen node beside it can be renamed, moved, merged or deleted. Works without script."""
    benchmark = benchmark_named(name)
    url = reverse("bank:capabilities", args=[benchmark])
    if request.method == "POST":
        do = DOES.get(request.POST.get("do", ""))
        if do is None:
            raise Http404("no such change")
        node = request.POST.get("node", "")
        with told(request):
            node = do(request, benchmark)
        return redirect(f"{url}?node={node}#tree" if node else f"{url}#tree")
    nodes = tree_of(benchmark)
    picked = next((n for n in nodes if str(n.capability.pk) == request.GET.get("node")), None)
    elsewhere = [n for n in nodes if picked is None or n.capability.pk not in picked.below]
    context = {
        "benchmark": benchmark,
        "nodes": nodes,
        "picked": picked,
        "elsewhere": elsewhere,
        "templates": TITLES,
        "quotas": actions.quotas_of(benchmark),
        "people": actions.people_who_own(),
        "unplaced": by_capability(benchmark).get(None, 0),
    }
    return bank_page(request, "bank/capabilities.html", context)


def _add(request: HttpRequest, benchmark: Benchmark) -> str:
    parent = _parent(request, benchmark)
    made = actions.add(benchmark=benchmark, name=request.POST.get("name", ""), parent=parent)
    messages.success(request, f"Added {made.name}.")
    return str(parent.pk) if parent else ""


def _rename(request: HttpRequest, benchmark: Benchmark) -> str:
    node = _node(request, benchmark)
    actions.rename(node=node, name=request.POST.get("name", ""))
    return str(node.pk)


def _move(request: HttpRequest, benchmark: Benchmark) -> str:
    node = _node(request, benchmark)
    parent = _parent(request, benchmark)
    actions.move(node=node, parent=parent)
    messages.success(request, f"Moved {node.name} {f'below {parent.name}' if parent else 'to the top'}.")
    return str(node.pk)


def _quota(request: HttpRequest, benchmark: Benchmark) -> str:
    node = _node(request, benchmark)
    typed, owner = request.POST.get("quota", "").strip(), None
    quota = whole_number(typed)
    if typed and quota is None:
        raise BadInput("A quota is a whole number, or empty.")
    if request.POST.get("owner"):
        owner = actions.people_who_own().filter(pk=whole_number(request.POST["owner"]) or 0).first()
        if owner is None:
            raise BadInput("Choose somebody who may write samples.")
    actions.set_quota(node=node, quota=quota, owner=owner)
    messages.success(request, f"The quota of {node.name} is changed.")
    return str(node.pk)


def _shift(up: bool) -> Callable[[HttpRequest, Benchmark], str]:
    def do(request: HttpRequest, benchmark: Benchmark) -> str:
        node = _node(request, benchmark)
        actions.shift(node=node, up=up)
        return request.POST.get("picked", "")

    return do


def _merge(request: HttpRequest, benchmark: Benchmark) -> str:
    node, into = _node(request, benchmark), _node(request, benchmark, "into")
    name = node.name
    moved = actions.merge(node=node, into=into, by=person(request))
    messages.success(request, f"Merged {name} into {into.name}: {moved:,} sample{pluralize(moved)} moved.")
    return str(into.pk)


def _delete(request: HttpRequest, benchmark: Benchmark) -> str:
    node = _node(request, benchmark)
    actions.delete(node=node)
    messages.success(request, f"Deleted {node.name}.")
    return ""


def _plant(request: HttpRequest, benchmark: Benchmark) -> str:
    tree = request.POST.get("tree", "")
    if tree not in TREES:
        raise BadInput("Choose a template.")
    made = add_template(benchmark=benchmark, tree=TREES[tree])
    messages.success(request, f"Added {made} capabilities." if made else "All of them are there already.")
    return ""


DOES: dict[str, Callable[[HttpRequest, Benchmark], str]] = {
    "add": _add,
    "rename": _rename,
    "move": _move,
    "quota": _quota,
    "up": _shift(True),
    "down": _shift(False),
    "merge": _merge,
    "delete": _delete,
    "plant": _plant,
}
