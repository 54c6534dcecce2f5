"""The items that imported verdicts are about."""

from collections.abc import Iterable, Sequence

from django.db.models import Model

from bank.database import chunks
from bank.intake.formats.reading import Row
from bank.intake.formats.records import VerdictRecord
from bank.intake.imports import Report
from bank.intake.imports.context import Scene
from bank.intake.imports.writer import Intake, Outdated
from bank.models import Item, ItemResponse, Response
from bank.samples.items import PLACE, Found, Spec, find, found_by

Place = tuple[str, int, tuple[int, ...]]  # an item: its kind, sample and responses in canonical order


class Coming:
    """The items of an import: those that its check foresaw, and made where they are absent when it writes.

    A row of the check speaks of ids that may be negative (see Scene).
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.items = self.places = 0

    def foreseen(self, specs: Sequence[Spec]) -> tuple[dict[str, Found], int]:
        """The items of a check by content hash, and how many of them the import will make and did not know of before.

        One that is to be made has no id yet (0); the first row that names it gives its canonical order.
        """
        found = find(specs)
        coming: dict[str, Spec] = {}
        for spec in specs:
            if spec.content_hash not in found:
                coming.setdefault(spec.content_hash, spec)
        known = dict(zip(coming, self.scene.items.find(list(coming)), strict=True))
        new = [key for key, order in known.items() if not order]
        known |= {key: _order_number(coming[key].response_ids) for key in new}
        self.scene.items.add(new, [known[key] for key in new])
        for key, spec in coming.items():
            found[key] = Found(0, _by_order_number(known[key], spec.response_ids))
        self.items += len(new)
        self.places += sum(len(coming[key].response_ids) for key in new)
        return found, len(new)

    def rows(self) -> dict[type[Model], int]:
        return {Item: self.items, ItemResponse: self.places}

    def written(self, items: Sequence[Place]) -> list[int]:
        """Their ids; those that are absent are on their way into the tables."""
        specs = [
            Spec(kind, self.scene.real(sample), tuple(map(self.scene.real_response, responses)))
            for kind, sample, responses in items
        ]
        names = [spec.content_hash for spec in specs]
        found = found_by(names)
        fresh: dict[str, Spec] = {}
        for name, spec in zip(names, specs, strict=True):
            if name not in found:
                fresh.setdefault(name, spec)
            elif found[name].response_ids != spec.response_ids:
                raise Outdated("somebody made an item with another canonical order")
        ids = {name: found[name].pk for name in found}
        if fresh:
            ids |= zip(fresh, _put(self.scene.intake, fresh), strict=True)
        return [ids[name] for name in names]


def _put(intake: Intake, fresh: dict[str, Spec]) -> Sequence[int]:
    ids = intake.ids(Item, len(fresh))
    specs = fresh.values()
    kinds, samples = [spec.kind for spec in specs], [spec.sample_id for spec in specs]
    intake.put(Item, {"id": ids, "kind": kinds, "sample_id": samples, "content_hash": list(fresh)})
    places = [
        (pk, n, response) for pk, spec in zip(ids, specs, strict=True) for n, response in enumerate(spec.response_ids)
    ]
    if places:
        intake.put(ItemResponse, dict(zip(PLACE, zip(*places, strict=True), strict=True)))
    return ids


def _order_number(ids: Sequence[int]) -> int:
    """The order of these ids as one number: 1, then the rank of each."""
    ranks = sorted(ids)
    return int("1" + "".join(str(ranks.index(one)) for one in ids))


def _by_order_number(number: int, ids: Sequence[int]) -> tuple[int, ...]:
    ranks = sorted(ids)
    return tuple(ranks[int(rank)] for rank in str(number)[1:])


class Resolver:
    """Turns what verdict rows name (sample key, models) into item specs of the scene's benchmark."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.models: set[str] = set()

    def specs(self, rows: list[Row], report: Report) -> list[tuple[Row, Spec]]:
        """Rows with the items they are about; those that name an unknown sample or response become problems."""
        samples = self.scene.sample_ids([row.data.sample for row in rows])
        responses = self._responses(rows, samples)
        resolved = []
        for row, sample in zip(rows, samples, strict=True):
            record: VerdictRecord = row.data
            if not sample:
                report.refuse(row.where, "sample", f"there is no sample {record.sample!r} in {self.scene}")
                continue
            missing = next((r for r in record.responses if not responses.get((sample, r.model, r.variant))), None)
            if missing is not None:
                name = missing.model + (f" ({missing.variant})" if missing.variant else "")
                reason = f"{name!r} has no response to sample {record.sample!r}; import its responses first"
                if not self._known(missing.model):
                    reason = f"unknown model {name!r}: no response of it is in {self.scene}"
                report.refuse(row.where, "responses", reason)
                continue
            ids = tuple(responses[(sample, ref.model, ref.variant)] for ref in record.responses)
            resolved.append((row, Spec(record.kind, sample, ids)))
        if any(row.data.texts for row, _ in resolved):
            resolved = self._of_these_texts(resolved, report)
        return resolved

    def _of_these_texts(self, resolved: list[tuple[Row, Spec]], report: Report) -> list[tuple[Row, Spec]]:
        """Those about the texts that they hold. A text that is only coming is from the same file."""
        wanted = {pk for row, spec in resolved if row.data.texts for pk in spec.response_ids if pk > 0}
        stored: dict[int, str] = {}
        for ids in chunks(wanted):
            stored |= Response.objects.filter(pk__in=ids).values_list("pk", "text")
        same = []
        for row, spec in resolved:
            pairs = zip(spec.response_ids, row.data.texts, row.data.responses, strict=False)
            other = next((ref for pk, text, ref in pairs if stored.get(pk, text) != text), None)
            if other is None:
                same.append((row, spec))
            else:
                reason = f"the stored response of {other.model!r} to sample {row.data.sample!r} has another text"
                report.refuse(row.where, "responses", reason)
        return same

    def _stored(self, samples: Iterable[int]) -> dict[tuple[int, str, str], int]:
        found: dict[tuple[int, str, str], int] = {}
        for some in chunks(samples):
            stored = Response.objects.filter(sample_id__in=some)
            for pk, of, model, variant in stored.values_list("pk", "sample_id", "model__name", "variant"):
                found[(of, model, variant)] = pk
        return found

    def _responses(self, rows: list[Row], samples: list[int]) -> dict[tuple[int, str, str], int]:
        """Ids of the responses to these samples, those that are only coming included."""
        found = self._stored(sample for sample in samples if sample > 0)
        self.models |= {model for _, model, _ in found}
        if self.scene.responses_coming:
            named = {
                (sample, ref.model, ref.variant)
                for row, sample in zip(rows, samples, strict=True)
                for ref in row.data.responses
            }
            wanted = list(named - found.keys())
            found |= zip(wanted, self.scene.responses.find(wanted), strict=True)
            self.models |= {name[1] for name in wanted if found[name]}
        return found

    def _known(self, model: str) -> bool:
        if model in self.models:
            return True
        stored = Response.objects.filter(model__name=model, sample__benchmark=self.scene.benchmark)
        return self.scene.benchmark is not None and stored.exists()


def describe(ids: Sequence[int]) -> str:
    """Presented or canonical positions as a short string: "10"."""
    return "".join(str(position) for position in ids)
