"""API of campaigns for staff: made, changed, opened and closed, with their members and invitations."""

from typing import Any, cast

from django.db.models import OuterRef, Subquery
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, views
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.rules import demand, through, where
from annotations import ballots
from annotations.api.serializers import CampaignSerializer
from annotations.assignment.errors import Refused
from annotations.campaigns import actions, invitations, members
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.inputs import CampaignSettings
from annotations.campaigns.sampling import Plan, find_run
from annotations.labels.monitor import visible_campaigns
from annotations.labels.result import has_finished
from annotations.models import Annotator, Campaign, Consent, Invitation, Membership
from bank.api.base import Conflict, conflicts, sent
from bank.api.strict import StrictSerializer
from bank.samples.benchmarks import find_benchmark

RULE = "write-campaigns"
MOST_PEOPLE = 100_000  # by one invitation


class PeopleField(serializers.ListField):
    """Accounts by their names."""

    child = serializers.CharField()

    def to_internal_value(self, data: Any) -> Any:
        names = list(dict.fromkeys(super().to_internal_value(data)))
        people = {person.username: person for person in User.objects.filter(username__in=names)}
        if missing := [name for name in names if name not in people]:
            raise serializers.ValidationError(f"Unknown account: {missing[0]!r}.")
        return [people[name] for name in names]


class CampaignIn(StrictSerializer, CampaignSettings):
    """A campaign; its settings may be left out, and then are the usual ones."""

    name = serializers.CharField(max_length=200)
    benchmark = serializers.CharField(help_text="SLUG or SLUG@VERSION")
    protocol = serializers.ChoiceField(list(ballots.BALLOTS))
    annotators = PeopleField(default=None, allow_null=True, help_text="null: whoever may label on it may join")
    guidelines = serializers.CharField(default="", allow_blank=True, help_text="Markdown")
    blind = serializers.BooleanField(default=True, help_text="annotators see no results until it is closed")
    shows_criteria = serializers.BooleanField(default=False)
    ballot = serializers.DictField(default=dict, help_text="settings of the protocol")
    judges = serializers.ListField(
        child=serializers.CharField(), default=list, help_text="whose judgments are reviewed or compared; none: of all"
    )
    run = serializers.IntegerField(default=None, allow_null=True, help_text="whose judgments are reviewed")
    opened = serializers.BooleanField(default=True, help_text="false: a draft")

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for name in map(str, CampaignSettings().fields):
            fields[name].required = False
        return fields


class StateIn(StrictSerializer):
    state = serializers.ChoiceField(["open", "paused", "closed"])
    again = serializers.BooleanField(default=False, help_text="open one that was closed: what people saw they know")


class MembersIn(StrictSerializer):
    people = PeopleField()


class MemberOut(serializers.Serializer[Membership]):
    annotator = serializers.CharField(source="annotator.pseudonym")
    name = serializers.CharField(source="annotator.person.username", default="")
    withdrawn_at = serializers.DateTimeField(allow_null=True, help_text="when they were removed")
    outside_id = serializers.CharField(help_text="as Prolific or MTurk calls them")
    agreed_at = serializers.DateTimeField(allow_null=True, help_text="when they last agreed to what the campaign asks")
    has_finished = serializers.SerializerMethodField(help_text="their share, or all there was")

    def get_has_finished(self, member: Membership) -> bool:
        return has_finished(member)


class RemoveIn(StrictSerializer):
    exclude = serializers.BooleanField(
        default=False, help_text="their labels stop counting, and others label the items"
    )


class InvitationsIn(StrictSerializer):
    days = serializers.IntegerField(min_value=1, max_value=365, default=14)
    most = serializers.IntegerField(
        min_value=1, max_value=MOST_PEOPLE, default=None, allow_null=True, help_text="how many people; null: any"
    )
    emails = serializers.ListField(child=serializers.EmailField(), default=list, help_text="one invitation for each")
    send = serializers.BooleanField(default=False, help_text="send those with an address by mail")
    outside = serializers.BooleanField(
        default=False,
        help_text="for Prolific or MTurk: by PROLIFIC_PID or workerId in the address; needs most",
    )


class InvitationOut(serializers.Serializer[Invitation]):
    id = serializers.IntegerField()
    email = serializers.CharField(allow_blank=True)
    link = serializers.SerializerMethodField()
    used = serializers.IntegerField()
    most = serializers.IntegerField(allow_null=True)
    expires_at = serializers.DateTimeField()
    outside = serializers.BooleanField()

    def get_link(self, invitation: Invitation) -> str:
        return invitations.link_of(invitation, self.context["request"])


def _campaign(request: Request, name: str) -> Campaign:
    """A campaign that people label in here. One with imported labels is what it is."""
    return get_object_or_404(visible_campaigns(cast(User, request.user)), name=name, imported=False)


BY_CAMPAIGN = through(Campaign, "benchmark__slug", "name")


class WritesCampaigns:
    """What staff do with the list of campaigns and one of it."""

    @extend_schema(request=CampaignIn, responses={201: CampaignSerializer})
    def create(self, request: Request) -> Response:
        """Make a campaign over the benchmark's items that fit the protocol. For staff."""
        if "annotators" in request.data:  # whether there are such people is not for who curates one benchmark
            demand(request, RULE)
        given = sent(request, CampaignIn)
        benchmark = find_benchmark(given.pop("benchmark"), where(cast(User, request.user), RULE))
        run, judges = given.pop("run"), given.pop("judges")
        campaign = actions.make_campaign(
            **given,
            benchmark=benchmark,
            run=None if run is None else find_run(benchmark, run),
            plan=Plan(judges=tuple(judges)) if judges else None,
            by=cast(User, request.user),
        )
        return Response(CampaignSerializer(campaign).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=CampaignSettings(partial=True), responses=CampaignSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        """Change settings; the overlap can only grow once there are labels. For staff."""
        campaign = _campaign(request, name)
        if not isinstance(request.data, dict):
            raise serializers.ValidationError("Send an object of settings.")
        changes = dict(request.data)
        if unknown := sorted(set(changes) - set(CampaignSettings().fields)):
            raise serializers.ValidationError(dict.fromkeys(unknown, "There is no such setting."))
        actions.change_campaign(campaign=campaign, **changes)
        campaign.refresh_from_db()
        return Response(CampaignSerializer(campaign).data)


class CampaignState(views.APIView):
    """Whether a campaign assigns items."""

    access_rule, access_of = RULE, BY_CAMPAIGN

    @extend_schema(request=StateIn, responses=CampaignSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Open, pause or close a campaign."""
        campaign, given = _campaign(request, name), sent(request, StateIn)
        with conflicts(Refused):
            if given["state"] == "open":
                actions.open_campaign(campaign=campaign, again=given["again"], by=cast(User, request.user))
            elif given["state"] == "paused":
                actions.pause_campaign(campaign=campaign)
            else:
                actions.close_campaign(campaign=campaign, now=timezone.now())
        return Response(CampaignSerializer(campaign).data)


class OpenFinished(views.APIView):
    """Showing what is said of the items of a blind campaign that have all their labels, before it ends."""

    access_rule, access_of = RULE, BY_CAMPAIGN

    @extend_schema(request=None, responses=CampaignSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Open them, and from now on each item that gets its labels. Their authors no longer change these."""
        campaign = _campaign(request, name)
        with conflicts(Refused):
            open_finished(campaign=campaign, by=cast(User, request.user), now=timezone.now())
        return Response(CampaignSerializer(campaign).data)


class Members(views.APIView):
    """Who labels in a campaign; for staff, by name."""

    access_rule = RULE

    @extend_schema(responses=MemberOut(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The members, also those who were removed."""
        consents = Consent.objects.filter(campaign=OuterRef("campaign"), annotator=OuterRef("annotator"))
        agreed = consents.order_by("-pk").values("at")[:1]
        rows = Membership.objects.filter(campaign=_campaign(request, name))
        rows = rows.select_related("annotator__person", "campaign").annotate(agreed_at=Subquery(agreed))
        return Response(MemberOut(cast(Any, rows.order_by("pk")), many=True).data)

    @extend_schema(request=MembersIn, responses={201: MemberOut(many=True)})
    def post(self, request: Request, name: str) -> Response:
        """Let these people label."""
        campaign = _campaign(request, name)
        people, by = sent(request, MembersIn)["people"], cast(User, request.user)
        members.add_annotators(campaign=campaign, people=people, by=by)
        return Response(self.get(request, name).data, status=status.HTTP_201_CREATED)


class Member(views.APIView):
    """One member."""

    access_rule, access_of = RULE, BY_CAMPAIGN

    @extend_schema(parameters=[], request=RemoveIn, responses={204: None})
    def delete(self, request: Request, name: str, annotator: str) -> Response:
        """Remove an annotator, by pseudonym; their labels stay, and count unless they are excluded."""
        campaign, given = _campaign(request, name), sent(request, RemoveIn)
        person = get_object_or_404(Annotator, pseudonym=annotator, memberships__campaign=campaign)
        by = cast(User, request.user)
        members.remove_annotator(campaign=campaign, annotator=person, now=timezone.now(), by=by, **given)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Invitations(views.APIView):
    """Links by which people join."""

    access_rule, access_of = RULE, BY_CAMPAIGN

    @extend_schema(responses=InvitationOut(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The invitations that still work."""
        rows = [
            invitation for invitation, _ in invitations.open_invitations(_campaign(request, name), request._request)
        ]
        return Response(InvitationOut(cast(Any, rows), many=True, context={"request": request._request}).data)

    @extend_schema(request=InvitationsIn, responses={201: InvitationOut(many=True)})
    def post(self, request: Request, name: str) -> Response:
        """Make invitations, and send them where asked."""
        campaign, given = _campaign(request, name), sent(request, InvitationsIn)
        sends = given.pop("send")
        made = invitations.invite(campaign=campaign, by=cast(User, request.user), now=timezone.now(), **given)
        for invitation in made if sends else ():
            if invitation.email and not invitations.send(invitation, request._request):
                raise Conflict({"detail": f"The invitation for {invitation.email} was made, and could not be sent."})
        data = InvitationOut(cast(Any, made), many=True, context={"request": request._request}).data
        return Response(data, status=status.HTTP_201_CREATED)


class OneInvitation(views.APIView):
    """One invitation."""

    access_rule, access_of = RULE, BY_CAMPAIGN

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, pk: int) -> Response:
        """Let an invitation end now."""
        invitation = get_object_or_404(Invitation, pk=pk, campaign=_campaign(request, name))
        invitations.revoke(invitation, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
