"""Pages of judging."""

from django.urls import path

from judging.views import attacks, judges, judgments, prompts, releases, runs, webhooks

app_name = "judging"
urlpatterns = [
    path("", runs.index, name="index"),
    path("runs/new/", runs.run_new, name="run-new"),
    path("runs/estimate/", runs.run_estimate, name="run-estimate"),
    path("attacks/new/", attacks.attack_new, name="attack-new"),
    path("trials/", attacks.trial_list, name="trial-list"),
    path("trials/<int:pk>/", attacks.trial_detail, name="trial-detail"),
    path("trials/<int:pk>/prompt/", attacks.trial_prompt, name="trial-prompt"),
    path("collect/new/", runs.collect_new, name="collect-new"),
    path("runs/choices/", runs.run_choices, name="run-choices"),
    path("runs/<int:pk>/", runs.run_detail, name="run-detail"),
    path("runs/<int:pk>/progress/", runs.run_progress, name="run-progress"),
    path("runs/<int:pk>/pause/", runs.run_pause, name="run-pause"),
    path("runs/<int:pk>/resume/", runs.run_resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", runs.run_cancel, name="run-cancel"),
    path("runs/<int:pk>/retry/", runs.run_retry, name="run-retry"),
    path("runs/<int:pk>/saw-nothing/", runs.run_saw_nothing, name="run-saw-nothing"),
    path("runs/<int:pk>/analyses/", releases.run_analyses, name="run-analyses"),
    path("runs/<int:pk>/release/", releases.run_release, name="run-release"),
    path("runs/<int:pk>/release/confirm/", releases.run_release_confirm, name="run-release-confirm"),
    path("runs/<int:pk>/release/decide/", releases.run_release_decide, name="run-release-decide"),
    path("runs/<int:pk>/withhold/", releases.run_withhold, name="run-withhold"),
    path("runs/<int:pk>/compute/", runs.jury_compute, name="jury-compute"),
    path("juries/new/", runs.jury_new, name="jury-new"),
    path("judges/new/", judges.judge_new, name="judge-new"),
    path("judges/<int:pk>/", judges.judge_detail, name="judge-detail"),
    path("judges/<int:pk>/maker/", judges.judge_maker, name="judge-maker"),
    path("judges/<int:pk>/probe/", judges.judge_probe, name="judge-probe"),
    path("judgments/", judgments.judgment_list, name="judgment-list"),
    path("judgments/export/", judgments.judgment_export, name="judgment-export"),
    path("judgments/<int:pk>/", judgments.judgment_detail, name="judgment-detail"),
    path("judgments/<int:pk>/prompt/", judgments.judgment_prompt, name="judgment-prompt"),
    path("webhooks/", webhooks.webhooks, name="webhooks"),
    path("prompts/", prompts.template_list, name="template-list"),
    path("prompts/new/", prompts.template_new, name="template-new"),
    path("prompts/preview/", prompts.template_preview, name="template-preview"),
    path("prompts/<slug:protocol>/<slug:prompt>/<int:version>/", prompts.template_detail, name="template-detail"),
    path(
        "prompts/<slug:protocol>/<slug:prompt>/<int:version>/discard/",
        prompts.template_discard,
        name="template-discard",
    ),
]
