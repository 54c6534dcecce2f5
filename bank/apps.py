from datetime import timedelta

from django.apps import AppConfig


class BankConfig(AppConfig):
    name = "bank"

    def ready(self) -> None:
        from accounts import jobs
        from bank.intake import registry

        jobs.register("work_uploads", "bank.intake.uploads.worker.work_all", lane=jobs.HEAVY, every=timedelta(hours=1))
        jobs.register("look_for_uploads", "bank.intake.uploads.worker.look", every=timedelta(minutes=1))
        jobs.register("write_exports", "bank.intake.export_files.write_all", lane=jobs.HEAVY, every=timedelta(hours=1))
        registry.register("samples", "bank.intake.imports.samples.Samples")
        registry.register("responses", "bank.intake.imports.responses.Responses")
        registry.register("recipe_responses", "bank.intake.imports.recipe_responses.RecipeResponses")
