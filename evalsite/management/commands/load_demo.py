"""manage.py load_demo"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bank.models import Benchmark
from evalsite.demo import llmfao, recipes
from evalsite.demo.loader import load


class Command(BaseCommand):
    help = "Bring the demo data in, which `serve` does by itself in an empty local installation: what is missing of it."

    def handle(self, **options: Any) -> None:
        if not settings.LOCAL:
            raise CommandError("Everybody knows the password of the demo's accounts: only a local installation has it.")
        if not Benchmark.objects.exists():
            load()
        if not llmfao.is_here():
            llmfao.load_llmfao()
        if not recipes.is_here():
            recipes.load_recipes()
        self.stdout.write(
            "LLMFAO is in, too: real votes of 124 people and two judges. So are simulated answers by recipes."
        )
