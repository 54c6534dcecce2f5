"""Below staff, single verdicts and answers are read by what asks what their viewer may see, or not at all."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.response import Response as ApiResponse
from rest_framework.views import APIView

from annotations.models import Label
from bank import guard
from bank.models import Response
from evalsite.middleware import guarded
from judging.models import Judgment, Run, Trial

pytestmark = pytest.mark.django_db
TABLES = [Judgment, Trial, Label, Response]
BELOW = ["anonymous", "guest", "annotator", "researcher"]


@pytest.fixture
def request_of(rf, people):
    def make(role):
        request = rf.get("/")
        request.user = AnonymousUser() if role == "anonymous" else people[role]
        return request

    return make


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("role", BELOW)
def test_a_page_that_forgets_to_ask_what_its_viewer_may_see_fails(role, table, request_of):
    with pytest.raises(guard.Unseen):
        guarded(lambda request: HttpResponse(str(table.objects.count())))(request_of(role))
    page = guarded(lambda request: HttpResponse(str(table.objects.seen_by(request.user).count())))
    assert page(request_of(role)).content == b"0"


def test_what_a_run_or_a_sample_leads_to_is_guarded_as_well(request_of):
    for follow in (lambda: Run(pk=1).judgments.count(), lambda: Run(pk=1).trials.count()):
        with pytest.raises(guard.Unseen):
            guarded(lambda request, follow=follow: HttpResponse(str(follow())))(request_of("researcher"))


@pytest.mark.parametrize("role", ["curator", "administrator"])
def test_staff_read_every_row(role, request_of):
    assert guarded(lambda request: HttpResponse(str(Judgment.objects.count())))(request_of(role)).content == b"0"


def test_a_file_is_guarded_until_it_is_sent(request_of):
    def pieces():
        yield str(Label.objects.count())

    sent = guarded(lambda request: StreamingHttpResponse(pieces()))(request_of("researcher"))
    with pytest.raises(guard.Unseen):
        list(sent)
    assert list(guarded(lambda request: StreamingHttpResponse(pieces()))(request_of("curator"))) == [b"0"]


def test_whoever_a_token_names_is_whom_a_request_is_answered_for(request_of, people):
    class Count(APIView):
        permission_classes = ()

        def initial(self, request, *args, **kwargs):
            request.user = people["curator"]

        def get(self, request):
            return ApiResponse(Judgment.objects.count())

    assert guarded(Count.as_view())(request_of("anonymous")).data == 0


def test_after_a_request_everything_can_be_read(request_of):
    guarded(lambda request: HttpResponse())(request_of("anonymous"))
    assert Judgment.objects.count() == 0
