"""manage.py translations: bring the catalogues up to date with the texts in the source, and compile them."""

from typing import Any

from django.core.management.base import BaseCommand

from evalsite import texts


class Command(BaseCommand):
    help = "Bring locale/*/LC_MESSAGES/django.po up to date with the marked texts, and compile it to django.mo."

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = texts.found()
        for language, path in texts.catalogues().items():
            known = texts.read_po(path.read_text(encoding="utf-8"))
            kept = {text: known.get(text, "") for text in wanted}
            path.write_text(texts.po(wanted, kept, language=language), encoding="utf-8")
            path.with_suffix(".mo").write_bytes(texts.mo(kept, language=language))
            missing = sum(not said for said in kept.values())
            self.stdout.write(f"{language}: {len(kept)} texts, {missing} without a translation.")
