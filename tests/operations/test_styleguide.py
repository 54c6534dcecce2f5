"""The page of components, for those who write pages."""

import pytest

pytestmark = pytest.mark.django_db


def test_the_style_guide_shows_each_component_in_light_and_dark_with_its_markup(client, settings):
    settings.DEBUG = True
    page = client.get("/styleguide/").content.decode()
    parts = page.count('<section class="panel mt4" id="')
    assert parts > 10
    for theme in ("light", "dark"):
        assert page.count(f'<div class="in" data-theme="{theme}">') == parts
    assert page.count('<p class="notice warn">') == 2
    assert "&lt;p class=&quot;notice warn&quot;&gt;" in page


def test_the_style_guide_is_no_page_of_a_site_that_serves(client):
    assert client.get("/styleguide/").status_code == 404
