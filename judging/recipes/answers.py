"""What a recipe's calls send, how their replies are read, and where the answers go."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from accounts.installation_key import keyed
from bank.models import EvaluatedModel, Response
from bank.recipes import store as recipes
from judging.endpoints.answers import Reply
from judging.models import Collected, Run, reason_key
from judging.protocols.replies import ParsedVerdict, read_reply
from judging.recipes.conversation import Call, Done, TurnAnswer
from judging.recipes.likelihoods import NoLikelihood
from judging.recipes.questions import Job, Place, variant
from judging.runs.collecting import STORED_MEANWHILE
from judging.runs.requests import CallRequest, request_parameters

NEEDED = ("max_tokens", "max_completion_tokens")  # of a likelihood, which is read from the first token
OK, TRUNCATED, ERROR = Collected.Status.OK, Collected.Status.TRUNCATED, Collected.Status.ERROR


def request(run: Run, job: Job) -> CallRequest:
    """The next call of a conversation. Raises CannotAsk."""
    call = job.call
    parameters = _parameters(run, job, call)
    sent = [
        (
            message.role,
            message.text,
            [(picture.image.sha256, repr(picture.corruption), picture.seed) for picture in message.pictures],
        )
        for message in call.messages
    ]
    hashed = [run.judge.base_url, run.judge.model, sent, parameters, job.place, job.step]
    digest = keyed("prompt", hashlib.sha256(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS)).hexdigest())
    images = tuple(picture.image for message in call.messages for picture in message.pictures)
    return CallRequest(
        call.messages[-1].text,
        images,
        parameters,
        digest,
        "",
        conversation=call.messages,
        needs=NEEDED if call.by else (),
    )


def _parameters(run: Run, job: Job, call: Call) -> dict[str, Any]:
    assert run.recipe is not None
    place = Place.of(job.place, job.question.spec)
    parameters = request_parameters(run, repeat=place.repeat)
    name = run.abilities.get("max_tokens") or "max_tokens"
    if call.by:
        parameters = {key: value for key, value in parameters.items() if key not in ("max_tokens", name)}
        own = dict(call.parameters)
        if "max_tokens" in own and call.by == "first-token":
            own[name] = own.pop("max_tokens")
        parameters |= own
    return parameters


def read(run: Run, job: Job, reply: Reply) -> Collected:
    """The row of a call's reply. A line of reasoning that was cut off is gone on with; an answer is not."""
    call = job.call
    row = Collected(run=run, sample=job.sample, place=job.place, step=job.step)
    reading = read_reply(reply, lambda text: ParsedVerdict({}))
    reasoning_cut = not call.by and reading.status == TRUNCATED and _is_reasoning(job, call)
    if call.by and reading.status in ("truncated", "empty"):  # a likelihood needs no more than the first token
        reading = replace(reading, status="ok", reason="")
    row.status, row.reason = reading.status, reading.reason.replace("the judge", "the model")
    row.text = "" if call.by == "prompt" else reply.refusal or reply.text
    row.thinking = reply.reasoning
    if row.status == OK or reasoning_cut:
        try:
            done = job.question.read(call, reply)
        except NoLikelihood as error:
            row.status, row.reason = ERROR, str(error)
        else:
            row.likelihoods = done.likelihoods
            done = replace(done, status=row.status)
            row.last = job.question.next_call((*job.done, done)) is None
    row.reason_hash = reason_key(row.reason)
    row.job = job
    return row


def _is_reasoning(job: Job, call: Call) -> bool:
    turns = job.question.spec.turns
    return call.turn < len(turns) and turns[call.turn].kind == "cot"


def next_job(job: Job, row: Collected) -> Job:
    """The call that follows one which is done."""
    return replace(job, done=(*job.done, Done(row.text, row.status, row.likelihoods, row.completion_tokens)))


def store(run: Run, rows: Sequence[Collected]) -> tuple[int, int, int]:
    """Store the results of calls, and the responses of the conversations that end with them."""
    stored = set(
        Collected.objects.filter(run=run, sample__in={row.sample_id for row in rows}).values_list(
            "sample_id", "place", "step"
        )
    )
    new_rows = [row for row in rows if (row.sample_id, row.place, row.step) not in stored]
    ended = [row for row in new_rows if row.last]
    _store_responses(run, [row for row in ended if row.status != ERROR])
    Collected.objects.bulk_create(new_rows)
    answered = sum(row.status == OK for row in ended)
    return answered, len(ended) - answered, 0


def _store_responses(run: Run, rows: Sequence[Collected]) -> None:
    if not rows:
        return
    assert run.recipe is not None
    spec = recipes.spec_of(run.recipe)
    model, _ = EvaluatedModel.objects.get_or_create(name=run.model_name, defaults={"family": run.judge.family})
    responses = []
    last: list[tuple[Collected, Response]] = []
    taken = set(
        Response.all_objects.filter(
            recipe=run.recipe, model=model, sample__in={row.sample_id for row in rows}
        ).values_list("sample_id", "variant", "repeat")
    )
    for row in rows:
        place = Place.of(row.place, spec)
        name = variant(spec.conditions[place.condition], place.rotation)
        if (row.sample_id, name, place.repeat) in taken:
            row.status, row.reason = ERROR, STORED_MEANWHILE
            row.reason_hash = reason_key(STORED_MEANWHILE)
            continue
        made = [
            Response(
                sample_id=row.sample_id,
                model=model,
                recipe=run.recipe,
                variant=name,
                repeat=place.repeat,
                turn=answer.turn,
                text=answer.text,
                status=answer.status,
                reason=row.reason if answer.status != OK else "",
                likelihoods=answer.likelihoods,
                tokens=answer.tokens,
                option_order=list(row.job.question.order) or None,
            )
            for answer in _answers(row)
        ]
        responses += made
        last.append((row, made[-1]))
    Response.all_objects.bulk_create(responses)
    for row, response in last:
        row.response = response


def _answers(row: Collected) -> list[TurnAnswer]:
    """The answers of a conversation's turns, the one in which it ended included."""
    job: Job = row.job
    done = Done(row.text, row.status, row.likelihoods, row.completion_tokens)
    if row.status in (OK, TRUNCATED):
        answers = job.question.turn_answers((*job.done, done))
        if answers and (row.status == OK or answers[-1].status == row.status):
            return answers
    turn = job.call.turn
    return [
        *job.question.turn_answers(job.done)[:turn],
        TurnAnswer(turn, row.text, row.status, tokens=row.completion_tokens),
    ]
