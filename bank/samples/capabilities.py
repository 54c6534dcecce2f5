"""The capability tree of a benchmark: read in order; add, rename, move, reorder, merge, delete."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from accounts.models import Role, User
from bank.errors import BadInput
from bank.models import Benchmark, Capability, Sample
from bank.samples.benchmarks import by_capability
from bank.samples.capability_trees import SEPARATOR, last_position, path_below
from bank.samples.editor import change_many
from bank.text.names import as_stored

LONGEST = 200
LONGEST_PATH = 700
MOST_SAMPLES = 1_000_000


def _name(name: str) -> str:
    name = as_stored(name)
    if not name:
        raise BadInput("Give the capability a name.")
    if len(name) > LONGEST:
        raise BadInput(f"A name has at most {LONGEST} letters.")
    if SEPARATOR in name:
        raise BadInput("A name cannot contain a slash between spaces: that separates the names of a path.")
    return name


def _path(benchmark: Benchmark, parent: Capability | None, name: str, *, besides: int = 0) -> str:
    path = path_below(parent, name)
    if len(path) > LONGEST_PATH:
        raise BadInput(f"The path down to {name!r} is longer than {LONGEST_PATH} letters.")
    if benchmark.capabilities.filter(path=path).exclude(pk=besides).exists():
        raise BadInput(f"Capability {path!r} already exists. Merge into it, or choose another name.")
    return path


@transaction.atomic
def add(*, benchmark: Benchmark, name: str, parent: Capability | None = None) -> Capability:
    """Add a node as the last of its siblings. Raises BadInput."""
    name = _name(name)
    path = _path(benchmark, parent, name)
    return Capability.objects.create(
        benchmark=benchmark, parent=parent, name=name, path=path, position=last_position(benchmark)
    )


@transaction.atomic
def rename(*, node: Capability, name: str) -> None:
    """Rename a node; the paths below follow. Raises BadInput."""
    _place(node, node.parent, _name(name))


@transaction.atomic
def move(*, node: Capability, parent: Capability | None) -> None:
    """Move a node under another parent (None: to the top), as the last of its siblings. Raises BadInput."""
    if parent is not None and (parent.pk == node.pk or parent.path.startswith(node.path + SEPARATOR)):
        raise BadInput("A capability cannot move below itself.")
    _place(node, parent, node.name)
    Capability.objects.filter(pk=node.pk).update(position=last_position(node.benchmark))


def _place(node: Capability, parent: Capability | None, name: str) -> None:
    old = node.path
    node.path = _path(node.benchmark, parent, name, besides=node.pk)
    node.parent, node.name = parent, name
    below = list(node.benchmark.capabilities.filter(path__startswith=old + SEPARATOR))
    below = [child for child in below if child.path.startswith(old + SEPARATOR)]  # SQLite's LIKE ignores case
    for child in below:
        child.path = node.path + child.path[len(old) :]
        if len(child.path) > LONGEST_PATH:
            raise BadInput(f"The path down to {child.name!r} would be longer than {LONGEST_PATH} letters.")
    node.save()
    # Through names that clash with nothing, whatever the order of the updates.
    Capability.objects.bulk_update(below, ["path"])


@transaction.atomic
def shift(*, node: Capability, up: bool) -> None:
    """Move a node one place up or down among its siblings; at the end nothing happens."""
    siblings = list(Capability.objects.filter(benchmark=node.benchmark, parent=node.parent))
    index = [sibling.pk for sibling in siblings].index(node.pk)
    neighbour = index - 1 if up else index + 1
    if not 0 <= neighbour < len(siblings):
        return
    siblings[index], siblings[neighbour] = siblings[neighbour], siblings[index]
    places = sorted(sibling.position for sibling in siblings)
    if len(set(places)) < len(places):  # merged subtrees of imported trees may repeat positions
        places = list(range(places[0], places[0] + len(places)))
    for sibling, place in zip(siblings, places, strict=True):
        sibling.position = place
    Capability.objects.bulk_update(siblings, ["position"])


@transaction.atomic
def set_quota(*, node: Capability, quota: int | None, owner: User | None) -> None:
    """Say how many approved samples a node is to have, those below it included, and who sees to it. Raises BadInput."""
    if quota is not None and not 0 <= quota <= MOST_SAMPLES:
        raise BadInput(f"A quota is a whole number up to {MOST_SAMPLES:,}, or empty.")
    if owner is not None and owner not in people_who_own():
        raise BadInput(f"{owner.username} may not write samples, so they cannot see to a capability.")
    node.quota, node.owner = quota, owner
    node.save(update_fields=["quota", "owner"])


def people_who_own() -> QuerySet[User]:
    """Those who may write samples."""
    return User.objects.filter(role__in=[Role.CURATOR, Role.ADMINISTRATOR], is_active=True).order_by("username")


@dataclass(frozen=True, slots=True)
class Quota:
    """A capability with a quota or an owner, and how far it is: samples in each state, those below it included."""

    path: str
    quota: int | None
    owner: str
    approved: int
    under_way: int  # drafts, under review
    rejected: int

    @property
    def name(self) -> str:
        return self.path.rpartition(SEPARATOR)[2]

    @property
    def missing(self) -> int | None:
        return None if self.quota is None else max(0, self.quota - self.approved)


def quotas_of(benchmark: Benchmark) -> list[Quota]:
    """The capabilities that have a quota or an owner, in the order of the tree."""
    states: dict[int | None, Counter[str]] = defaultdict(Counter)
    samples = benchmark.samples.order_by()
    for pk, status in samples.values_list("capability", "status"):
        states[pk][status] += 1
    rows = []
    for node in tree_of(benchmark):
        capability = node.capability
        if capability.quota is None and capability.owner_id is None:
            continue
        counts = sum((states[below] for below in node.below), Counter[str]())
        approved, rejected = counts[Sample.Status.APPROVED], counts[Sample.Status.REJECTED]
        owner = capability.owner.username if capability.owner else ""
        rows.append(
            Quota(capability.path, capability.quota, owner, approved, counts.total() - approved - rejected, rejected)
        )
    return rows


@transaction.atomic
def merge(*, node: Capability, into: Capability, by: User) -> int:
    """Move the node's samples and children to another node and delete it; each sample records where it was.

    Returns how many samples moved from the node itself. Raises BadInput.
    """
    if into.pk == node.pk or into.path.startswith(node.path + SEPARATOR):
        raise BadInput("A capability cannot merge into itself or into what lies below it.")
    if into.benchmark_id != node.benchmark_id:
        raise BadInput("Both capabilities must belong to the same benchmark.")
    for child in list(node.children.all()):
        same = into.children.filter(name=child.name).first()
        if same is not None:
            merge(node=child, into=same, by=by)
        else:
            _place(child, into, child.name)
    moved = change_many(by=by, samples=Sample.objects.filter(capability=node), values={"capability": into})
    node.delete()
    return moved


@transaction.atomic
def delete(*, node: Capability) -> None:
    """Delete a node that is empty. Raises BadInput."""
    if node.children.exists():
        raise BadInput(f"{node.name!r} has capabilities below it. Move or merge them first.")
    if node.samples.exists():
        raise BadInput(f"{node.name!r} has samples. Merge it into another capability instead.")
    node.delete()


@dataclass(slots=True)
class Node:
    """A capability in its tree; ``own`` counts its own samples, ``all`` includes those of everything below."""

    capability: Capability
    depth: int
    own: int
    all: int
    below: list[int]  # ids of the subtree, itself included
    first: bool
    last: bool = False

    @property
    def indent(self) -> str:
        return "\u2003" * self.depth


def tree_of(benchmark: Benchmark, *, counts: dict[int | None, int] | None = None) -> list[Node]:
    """Depth first, siblings by position. ``counts`` are samples by capability id, counted by default."""
    if counts is None:
        counts = by_capability(benchmark)
    children: dict[int | None, list[Capability]] = defaultdict(list)
    for capability in benchmark.capabilities.select_related("owner").order_by("position", "pk"):
        children[capability.parent_id].append(capability)
    nodes: list[Node] = []

    def walk(parent: int | None, depth: int) -> list[Node]:
        made = []
        for number, capability in enumerate(children[parent]):
            own = counts.get(capability.pk, 0)
            node = Node(capability, depth, own, own, [capability.pk], number == 0)
            node.last = number == len(children[parent]) - 1
            nodes.append(node)
            for child in walk(capability.pk, depth + 1):
                node.all += child.all
                node.below += child.below
            made.append(node)
        return made

    walk(None, 0)
    return nodes
