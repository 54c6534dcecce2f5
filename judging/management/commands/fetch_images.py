"""manage.py fetch_images --benchmark SLUG [--hosts A,B] [--limit N] [--dry-run]"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from accounts import loop
from accounts.management.base import InstallationCommand
from bank.management.importing import bad_input_fails
from bank.samples import benchmarks
from judging.endpoints import pictures

FIRST = 20


class Command(InstallationCommand):
    help = (
        "Fetch the pictures that a benchmark knows by their address only. What is stored already is left out; the same "
        "command goes on where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--hosts", default="", metavar="A,B", help="hosts they may come from, beside IMAGE_HOSTS")
        parser.add_argument("--limit", type=int, metavar="N", help="the first N only")
        parser.add_argument("--dry-run", action="store_true", help="say from where they would come, and fetch nothing")

    def handle(self, *, benchmark: str, hosts: str, limit: int | None, dry_run: bool, **options: Any) -> None:
        with bad_input_fails():
            chosen = benchmarks.find_benchmark(benchmark)
        wanted = pictures.wanted(chosen)[:limit]
        by_host = Counter(picture.host for picture in wanted)
        if not wanted:
            self.stdout.write(f"No picture of {chosen} is missing that has an address.")
            return
        listed = {*settings.IMAGE_HOSTS, *(host.strip().lower() for host in hosts.split(",") if host.strip())}
        if dry_run:
            self._tell_hosts(by_host, listed)
            return
        if not listed & set(by_host):
            names = ",".join(sorted(filter(None, by_host)))
            raise CommandError(
                f"None of the hosts is listed. Say which you trust: --hosts {names}, or IMAGE_HOSTS.", returncode=2
            )
        failed = self._fetch(wanted, hosts=sorted(listed))
        for line in failed[:FIRST]:
            self.stderr.write(line)
        if len(failed) > FIRST:
            self.stderr.write(f"and {len(failed) - FIRST:,} more")
        self.stdout.write(f"{len(wanted) - len(failed):,} pictures stored, {len(failed):,} not.")
        if failed:
            raise CommandError("Some pictures could not be fetched; the same command tries these again.")

    def _tell_hosts(self, by_host: Counter[str], listed: Collection[str]) -> None:
        for host, number in by_host.most_common():
            self.stdout.write(f"{number:,} from {host or 'no address'}{'' if host in listed else ' (not listed)'}")

    def _fetch(self, wanted: Sequence[pictures.Wanted], *, hosts: Sequence[str]) -> list[str]:
        """The pictures that could not be fetched, each with the reason."""
        failed: list[str] = []

        async def follow() -> None:
            done = 0
            async for picture, why in pictures.fetch(wanted, hosts=hosts):
                done += 1
                if why:
                    failed.append(f"{picture.key}: {why}")
                if done % 100 == 0:
                    self.stdout.write(f"{done:,} of {len(wanted):,}")

        loop.settle()
        loop.run(follow)
        return failed
