"""The page of the API: every route, each with a call that can be copied."""

import json
import re
from html import unescape

import pytest

pytestmark = pytest.mark.django_db


def test_every_route_has_a_call_whose_body_holds_what_the_route_needs(client):
    page = client.get("/api/docs/").content.decode()
    calls = [unescape(call) for call in re.findall(r'<pre class="cmd"[^>]*>(.*?)</pre>', page, re.S)]
    assert len(calls) == page.count("<h3")
    assert all(call.startswith("curl ") and "$SITE/api/v1/" in call for call in calls)
    (label,) = (call for call in calls if call.startswith("curl -X POST") and '/api/v1/labels/"' in call)
    assert next(iter(json.loads(re.search(r"-d '(.*)'", label)[1]))) == "assignment"
    (submission,) = (call for call in calls if call.startswith("curl -X POST") and '/api/v1/submissions/"' in call)
    assert "-F benchmark=… " in submission
    assert 'href="#judgments"' in page
    assert 'id="judgments"' in page
