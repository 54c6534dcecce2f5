from django.apps import AppConfig


class BankConfig(AppConfig):
    name = "bank"

    def ready(self) -> None:
        from bank.intake import registry

        registry.register("samples", "bank.intake.imports.samples.Samples")
        registry.register("responses", "bank.intake.imports.responses.Responses")
        registry.register("recipe_responses", "bank.intake.imports.recipe_responses.RecipeResponses")
