"""Small words of labelling pages: how numbers are written there."""

import pytest

from annotations.campaigns.actions import make_campaign
from bank.models import Benchmark
from tests.markup import flat

pytestmark = pytest.mark.django_db


def test_thousands_are_written_alike_where_somebody_labels_and_where_they_choose(client_of, people, pairs):
    make_campaign(name="Many", benchmark=pairs(1001), protocol="pair", annotators=[people["annotator"]], overlap=1)
    client = client_of("annotator")
    assert '<b class="strong">0</b> of 1,001' in flat(client.get("/annotate/"))
    (campaign,) = Benchmark.objects.get().campaigns.all()
    client.post(f"/annotate/{campaign.pk}/begin/")
    assert "data-total-shown>1,001<" in flat(client.get(f"/annotate/{campaign.pk}/"))
