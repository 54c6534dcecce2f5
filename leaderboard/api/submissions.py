"""API of submissions: POST a file, read what it scored."""

from collections.abc import Callable
from typing import Any, cast

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from bank.api.base import Conflict, PlainJSON, conflicts, sent
from bank.api.resources import Visible, posted
from bank.api.strict import StrictSerializer
from bank.errors import BadInput
from bank.models import Benchmark, Submission
from bank.submissions import Closed, Exceeded, Refused, actions
from bank.submissions.check import Checked
from judging.collecting import submissions as queue
from leaderboard import submissions
from leaderboard.submissions import LARGEST, TOO_LARGE
from leaderboard.submissions import page as shown


class SubmissionSerializer(serializers.ModelSerializer[Submission]):
    """A submission with the scores that the caller may see. ``by`` is its sender's name.

    Of keys that are not open to everybody a score is told only where it beats the best that the sender was told by more
    than ten samples and three standard errors: else its numbers are null, and its ``words`` say so.
    """

    by = serializers.CharField(source="by.username")
    benchmark = serializers.CharField(source="benchmark.__str__")
    model = serializers.CharField(source="name")
    organisation = serializers.CharField(source="model.organisation", default="")
    open = serializers.BooleanField(source="model.open", default=None, allow_null=True)
    counts = serializers.SerializerMethodField()
    problems = serializers.SerializerMethodField()
    scores = serializers.SerializerMethodField()
    judging = serializers.SerializerMethodField()

    class Meta:
        model = Submission
        fields = (
            *("id", "by", "benchmark", "model", "organisation", "open", "file_name", "file_sha256", "counts", "state"),
            *("reason", "created_at", "changed_at", "released_at", "problems", "scores", "judging"),
        )

    def get_counts(self, submission: Submission) -> dict[str, Any]:
        return shown.counts_as_seen(submission, self.context["request"].user)

    def get_problems(self, submission: Submission) -> dict[str, Any]:
        """All faults; in a list how many."""
        if self.parent is None:
            return submission.problems
        return {name: count for name, count in submission.problems.items() if name.endswith("count")}

    def get_scores(self, submission: Submission) -> list[dict[str, Any]]:
        return shown.scores_as_json(submission, self.context["request"].user)

    def get_judging(self, submission: Submission) -> dict[str, Any] | None:
        """How far it is judged, its place in the queue, its row on the board and the best; none in a list.

        Where the judge's prompts hold criteria, below staff as it was at midnight (UTC), without place and counts.
        """
        return shown.judging_as_json(submission, self.context["request"].user) if self.parent is None else None


class SubmissionIn(StrictSerializer):
    """One model's responses to one benchmark. With ``check_only`` nothing is stored and no submission is used."""

    benchmark = serializers.CharField(max_length=130, help_text="SLUG (its newest version) or SLUG@VERSION")
    model = serializers.CharField(max_length=200)
    organisation = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    open = serializers.BooleanField(required=False, allow_null=True, default=None)
    check_only = serializers.BooleanField(required=False, default=False)
    file = serializers.FileField(help_text="JSON Lines, CSV, Parquet or VLMEvalKit's TSV; gzip is fine")

    def validate_file(self, file: Any) -> Any:
        if file.size > LARGEST:
            raise serializers.ValidationError(TOO_LARGE)
        return file


class CheckOut(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    counts = serializers.DictField()
    problems = serializers.DictField()


class ReasonIn(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class ReleaseIn(serializers.Serializer[Any]):
    more = serializers.BooleanField(required=False, default=False)


class Submissions(Visible, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Submission]):
    """One's own submissions, for curators and administrators all; POST sends one (multipart)."""

    access_rule = "submit"
    access_rules = dict.fromkeys(("restore", "release", "judge_again"), "manage-submissions")
    serializer_class = SubmissionSerializer
    parser_classes = [MultiPartParser, FormParser, PlainJSON]
    queryset = Submission.objects.select_related("benchmark", "by", "model")
    filters = {
        "benchmark": "benchmark__slug",
        "version": "benchmark__version",
        "model": "name",
        "state": "state",
    }

    @extend_schema(
        request={"multipart/form-data": SubmissionIn},
        responses={
            201: SubmissionSerializer,
            200: CheckOut,
            400: OpenApiResponse(SubmissionSerializer, description="the file did not pass; every fault is named"),
        },
    )
    def create(self, request: Request) -> Response:
        """Send a file: 201 with its scores, or 400 with every fault. ``check_only``: 200 with what would be said."""
        data = sent(request, SubmissionIn)
        person = cast(User, request.user)
        try:
            benchmark = Benchmark.objects.visible_to(person).named(data["benchmark"].replace("\x00", ""))
        except Benchmark.DoesNotExist:
            raise exceptions.ValidationError({"benchmark": ["There is no such benchmark."]}) from None
        try:
            made = submissions.take(
                person=person,
                benchmark=benchmark,
                model=data["model"],
                file=data["file"],
                organisation=data["organisation"],
                is_open=data["open"],
                check_only=data["check_only"],
            )
        except Exceeded as error:
            return Response(
                {"detail": str(error)},
                status=status.HTTP_429_TOO_MANY_REQUESTS,
                headers={"Retry-After": str(error.retry_after)},
            )
        except Refused as error:
            raise Conflict(
                {"detail": str(error), "code": "closed" if isinstance(error, Closed) else "refused"}
            ) from None
        if isinstance(made, Checked):
            return Response(_checked(made))
        failed = made.state == Submission.State.FAILED
        output = dict(self.get_serializer(made).data)
        if failed:
            output["detail"] = "The file did not pass; nothing of it is stored."
        return Response(output, status=status.HTTP_400_BAD_REQUEST if failed else status.HTTP_201_CREATED)

    @posted(ReasonIn, SubmissionSerializer)
    def withdraw(self, request: Request, pk: str) -> Response:
        """Take a submission out of what counts. It stays listed."""
        return self._with_reason(request, actions.withdraw, needed=False)

    @posted(ReasonIn, SubmissionSerializer)
    def restore(self, request: Request, pk: str) -> Response:
        """Take a withdrawal back, with the reason. For curators and administrators."""
        return self._with_reason(request, actions.restore, needed=True)

    @posted(ReleaseIn, SubmissionSerializer)
    def release(self, request: Request, pk: str) -> Response:
        """Let exact figures be told: the kept half's to whoever submitted, others with the next edition. `more`: also
        where as many totals about its sender's answers are out as may be. For curators and administrators."""
        submission = self.get_object()
        by, more = cast(User, request.user), sent(request, ReleaseIn)["more"]
        with conflicts(Refused):
            actions.release(submission=submission, now=timezone.now(), by=by, more=more)
        return Response(self.get_serializer(submission).data)

    @posted(None, SubmissionSerializer, url_path="judge-again")
    def judge_again(self, request: Request, pk: str) -> Response:
        """Let a submission whose judging was stopped queue again. For curators and administrators."""
        submission = self.get_object()
        with conflicts(BadInput):
            queue.judge_again(submission=submission)
        return Response(self.get_serializer(submission).data)

    def _with_reason(self, request: Request, action: Callable[..., object], *, needed: bool) -> Response:
        """Withdraw or restore the submission with the reason that was sent."""
        submission = self.get_object()
        by, reason = cast(User, request.user), sent(request, ReasonIn)["reason"]
        if needed and not reason:
            raise exceptions.ValidationError({"reason": ["Say why."]})
        with conflicts(Refused):
            action(submission=submission, by=by, reason=reason, now=timezone.now())
        return Response(self.get_serializer(submission).data)


def _checked(checked: Checked) -> dict[str, Any]:
    return {"ok": checked.ok, "counts": checked.counts(), "problems": checked.faults()}
