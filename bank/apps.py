from django.apps import AppConfig


class BankConfig(AppConfig):
    name = "bank"

    def ready(self) -> None:
        from bank.imports import parts

        parts.register("samples", "bank.imports.samples.Samples")
        parts.register("responses", "bank.imports.responses.Responses")
