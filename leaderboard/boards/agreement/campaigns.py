"""Agreement within campaigns, and what a campaign can tell apart: for those who may read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from accounts.rules import Viewer, allowed
from annotations.campaigns import power as plans
from annotations.labels.agreement import Agreement, agreement_of, label_rows
from annotations.labels.monitor import visible_campaigns
from annotations.models import Annotator, Campaign
from bank.errors import BadInput
from leaderboard.boards.declared import Rows, Table, TableQuery
from leaderboard.rows import UNKNOWN, Number, Row, number, plain
from leaderboard.scope import BadScope, Scope


@dataclass(frozen=True, kw_only=True)
class CampaignRow(Row):
    """Agreement in a campaign by one metric: of everybody (``level`` is empty or a capability), how often a ``verdict``
    is the majority's, or of two annotators, ``a`` and ``b``.
    """

    campaign: str
    metric: str
    level: str = ""
    verdict: str = ""
    a: str = ""
    b: str = ""
    value: Number = UNKNOWN
    n: int
    items: int


def campaign(scope: Scope, asked: TableQuery) -> Rows:
    """Agreement within campaigns: matching labels, Krippendorff's alpha, Fleiss' kappa, Gwet's AC1 and AC2, intraclass
    correlations, by capability, and of every two annotators, by pseudonym below curators.
    """
    rows: list[CampaignRow] = []
    for labelled in campaigns_of(scope, asked):
        rows += _campaign_rows(labelled, agreement_of(labelled, label_rows(labelled, asked.viewer)), asked.viewer)
    return Rows(plain(rows))


def campaigns_of(scope: Scope, asked: TableQuery) -> Sequence[Campaign]:
    """The campaigns of the benchmark that this viewer may see, or the one that is asked for."""
    campaigns = visible_campaigns(asked.viewer).filter(benchmark=scope.benchmark)
    if scope.campaign:
        campaigns = campaigns.filter(name=scope.campaign)
        if not campaigns:
            raise BadScope(f"{scope.benchmark} has no campaign {scope.campaign!r}.")
    return list(campaigns.order_by("pk"))


METRICS = {
    "Matching": "matching",
    "Krippendorff's alpha, nominal": "alpha_nominal",
    "Krippendorff's alpha, ordinal": "alpha_ordinal",
    "Fleiss' kappa": "fleiss",
    "Gwet's AC1": "ac1",
    "Gwet's AC2": "ac2",
    "ICC(1)": "icc_one_way",
    "ICC(A,1)": "icc_agreement",
    "ICC(C,1)": "icc_consistency",
}


def _campaign_rows(of: Campaign, agreement: Agreement, viewer: Viewer) -> list[CampaignRow]:
    row = partial(CampaignRow, campaign=of.name)
    figures = [("", figure) for figure in agreement.figures]
    for level in agreement.levels:
        figures += [(level.name, level.same), (level.name, level.alpha)]
    rows = [
        row(
            metric=METRICS[figure.name],
            level=name,
            value=number(figure.estimate),
            n=figure.estimate.n,
            items=figure.items,
        )
        for name, figure in figures
        if agreement.items
    ]
    if agreement.items:
        unanimous = number(agreement.of_unanimous)
        rows.append(row(metric="unanimous", value=unanimous, n=agreement.items, items=agreement.items))
    for verdict, _, share in agreement.majority:
        rows.append(row(metric="majority", verdict=verdict, value=number(share), n=share.n, items=share.n))
    people = Annotator.objects.filter(pk__in=agreement.people)
    named = allowed(viewer, "read-names")
    names = {person.pk: person.shown(named=named) for person in people}
    for (a, b), cell in sorted(agreement.cells.items()):
        pair_row = partial(row, a=names[a], b=names[b], n=cell.n, items=cell.n)
        rows.append(pair_row(metric="agreement", value=number(cell.agreement)))
        rows += [pair_row(metric=name, value=number(estimate)) for name, estimate in cell.beyond_chance.items()]
    return rows


@dataclass(frozen=True, kw_only=True)
class PowerRow(Row):
    """What two models on the same items can be told apart by, with 80% power: the smallest ``detectable`` difference of
    their rates, and the items ``needed`` to find ``difference``. ``in_group`` items share a picture or prompt.
    """

    campaign: str
    plan: str
    items: int
    labels: int
    rate: float
    tie_rate: float
    alike: float
    in_group: float
    detectable: float
    difference: float
    needed: int


def power(scope: Scope, asked: TableQuery) -> Rows:
    """Before labelling: the smallest difference between two models that a campaign finds with 80% power, as planned,
    with one more label an item and with twice the items; and how many items a stated difference needs.
    """
    rows, notes = [], []
    for planned in campaigns_of(scope, asked):
        if not plans.fits(planned):
            notes.append(f"{planned.name}: {plans.UNFIT}")
            continue
        try:
            found = plans.outlooks(planned, label_rows(planned, asked.viewer), asked.planned)
        except BadInput as error:
            raise BadScope(str(error)) from None
        for outlook in found:
            numbers = {name: getattr(outlook.plan, of_plan) for name, of_plan in plans.OF_PLAN.items()}
            row = PowerRow(
                campaign=planned.name,
                plan=outlook.name,
                **numbers,
                in_group=outlook.plan.in_group,
                detectable=outlook.detectable,
                difference=outlook.difference,
                needed=outlook.needed,
            )
            rows.append(row)
    return Rows(plain(rows), notes)


TABLES = {
    "campaign": Table(
        make=campaign, board="judges", rows_are={CampaignRow: {}}, view=("campaign",), rule="read-judging"
    ),
    "power": Table(
        make=power,
        board="judges",
        rows_are={PowerRow: {}},
        view=("campaign",),
        takes=plans.PLANNED,
        rule="read-judging",
    ),
}
