"""The conversation of a recipe with a model about one question, call by call.

Pure: the question and what was answered so far decide the next call, so that a conversation goes on after a kill where
it stood.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bank.models import Response, Sample
from bank.recipes.spec import OPTIONS, YES_NO, Condition, Nearest, Numbers, Spec, Tree, Turn
from judging.endpoints.answers import Reply
from judging.endpoints.messages import PREFILLED
from judging.models import Collected
from judging.protocols import CannotAsk, prompts
from judging.recipes.likelihoods import Likelihoods, first_token_likelihoods, prompt_likelihood
from judging.runs.requests import CallRequest, Message, Picture

FIRST_TOKENS = 4  # of which the first may be white space
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# How a model is asked, by the language of the sample: English unless it is here.
SENTENCES = {
    "en": {
        "option": "Answer with the letter of the option.",
        "cot": "Let's think step by step.",
        "then option": "So which option is right? Answer with its letter.",
        "then": "So what is the answer?",
        "yes-no": "Answer yes or no.",
        "classes": "Which of these is right? Answer with its letter.",
        "labels": "In your answer write {pairs} in place of the letter.",
        "pair": "{new} for {old}",
        "about others": "These examples are about other pictures, not about the one that is shown.",
        "answer": "Answer: {answer}",
    },
    "zh": {
        "option": "请直接回答选项字母。",
        "cot": "让我们一步一步地思考。",
        "then option": "因此，哪个选项是正确的？请只回答选项字母。",
        "then": "因此，答案是什么？",
        "yes-no": "请回答 yes 或 no。",
        "classes": "以下哪一项是正确的？请只回答字母。",
        "labels": "回答时请用以下写法代替选项字母：{pairs}。",
        "pair": "{old} 写作 {new}",
        "about others": "以下示例与其他图片有关，与当前展示的图片无关。",
        "answer": "答案：{answer}",
    },
}


@dataclass(frozen=True, slots=True)
class Example:
    """A question that is shown with its answer (the key: a label of its options, yes, no, or a text)."""

    sample: Sample
    key: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeCall(CallRequest):
    """The next call of a conversation; ``by`` says how likelihoods are read from its reply, "" where it is a text."""

    turn: int
    pool: tuple[str, ...] = ()
    candidate: str = ""  # the answer put into the model's mouth
    by: str = ""
    per_token: bool = False


@dataclass(frozen=True)
class Conversation:
    """One question as it is put, and the calls about it that are done.

    ``order`` lists the sample's own labels in the order in which their options stand, ``instruction`` is its text,
    corrupted or not, ``pool_keys`` what a pool made of keys holds, ``problem`` why it cannot be asked.
    """

    spec: Spec
    sample: Sample
    place: int  # the task's, see ``questions.Place``
    condition: Condition
    order: tuple[str, ...]
    instruction: str
    query: str
    pictures: tuple[Picture, ...]
    examples: tuple[Example, ...] = ()
    pool_keys: tuple[str, ...] = ()
    problem: str = ""
    done: tuple[Collected, ...] = ()

    @cached_property
    def words(self) -> dict[str, str]:
        return SENTENCES["zh" if self.sample.language.lower().startswith(("zh", "cn")) else "en"]

    @property
    def labels(self) -> list[str]:
        """The labels behind which the options stand: the sample's own, whatever their order."""
        return list(self.sample.options)

    @cached_property
    def label_texts(self) -> list[str]:
        """The words that stand for the options: the labels, or those of the verbalizer."""
        verbalizer = self.condition.verbalizer
        try:
            return verbalizer.labels(self.labels) if verbalizer else self.labels
        except ValueError as error:
            raise CannotAsk(str(error)) from None

    # -- the conversation -----------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        return len(self.done)

    def after(self, row: Collected) -> "Conversation":
        """The conversation after one more call."""
        return replace(self, done=(*self.done, row))

    def call(self) -> RecipeCall:
        """The next call. Raises CannotAsk."""
        if self.problem:
            raise CannotAsk(self.problem)
        call = self.next_call()
        if call is None:
            raise CannotAsk("there is nothing left to ask")
        return call

    def next_call(self) -> RecipeCall | None:
        """The call that follows those which are done; None at the end. Raises CannotAsk."""
        return self._replay()[0]

    def answers(self) -> list[Response]:
        """The answers of the turns that are over, not yet stored."""
        return self._replay()[1]

    def _replay(self) -> tuple[RecipeCall | None, list[Response]]:
        answers: list[Response] = []
        talk = self._talk(answers)
        try:
            call = next(talk)
            for row in self.done:
                call = talk.send(row)
        except StopIteration:
            return None, answers
        return call, answers

    def _talk(self, answers: list[Response]) -> Generator[RecipeCall, Collected, None]:
        """Yield call after call, and be sent what each brought; ``answers`` grows with each turn that is over."""
        history = self._examples_as_messages()
        for at, turn in enumerate(self.spec.turns):
            if turn.kind != "likelihood":
                message = self._message(turn, first=at == 0)
                row = yield RecipeCall(conversation=(*history, message), turn=len(answers))
                history += [message, Message("assistant", row.text)]
                answers.append(turn_answer(len(answers), row))
                continue
            path: tuple[str, ...] = ()
            while pool := self._pool(turn, path):
                message = self._message(turn, first=at == 0 and not path, pool=pool)
                found, said = yield from self._likelihoods((*history, message), turn, pool, len(answers))
                is_tree = isinstance(turn.pool, Tree)
                if is_tree and found.best:
                    path = (*path, found.best)
                text = "/".join(path) if is_tree and found.best else found.best
                # Where it said something else, that is its answer, and is read as none.
                answers.append(Response(turn=len(answers), text=text or said, likelihoods=found.as_json()))
                if not found.best:
                    return
                history += [message, Message("assistant", found.best)]
                if not is_tree:
                    break

    def _likelihoods(
        self, messages: tuple[Message, ...], turn: Turn, pool: tuple[str, ...], number: int
    ) -> Generator[RecipeCall, Collected, tuple[Likelihoods, str]]:
        """Ask for the likelihoods of a pool; returns them with what was said beside them."""
        if len(pool) == 1:  # a step down a tree without a choice
            return Likelihoods(((pool[0], 0.0),), turn.by, 1.0), ""
        if turn.by == "first-token":
            parameters = {"logprobs": True, "top_logprobs": 20, "max_tokens": FIRST_TOKENS}
            row = yield RecipeCall(conversation=messages, turn=number, pool=pool, by=turn.by, parameters=parameters)
            return Likelihoods.from_json(row.likelihoods or {}), row.text
        values = []
        for candidate in pool:
            row = yield RecipeCall(
                conversation=(*messages, Message("assistant", candidate)),
                turn=number,
                pool=pool,
                candidate=candidate,
                by=turn.by,
                per_token=turn.sum == "per-token",
                parameters=PREFILLED,
            )
            values.append((candidate, float((row.likelihoods or {})["value"])))
        return Likelihoods(tuple(values), turn.by, None, turn.sum), ""

    def likelihoods_in(self, call: RecipeCall, reply: Reply) -> dict[str, Any] | None:
        """The likelihoods that a reply brought; None for a call that asks for none. Raises NoLikelihood."""
        if not call.by:
            return None
        if call.by == "first-token":
            found = first_token_likelihoods(reply.tokens, self._written(call.pool))
            pool = tuple((answer, logp) for answer, (_, logp) in zip(call.pool, found.pool, strict=True))
            return Likelihoods(pool, found.by, found.mass).as_json()
        return {
            "answer": call.candidate,
            "value": prompt_likelihood(reply.prompt_tail, call.candidate, per_token=call.per_token),
        }

    def is_reasoning(self, call: RecipeCall) -> bool:
        return call.turn < len(self.spec.turns) and self.spec.turns[call.turn].kind == "cot"

    # -- pools ----------------------------------------------------------------------------------------------------

    def _pool(self, turn: Turn, path: tuple[str, ...]) -> tuple[str, ...]:
        """The answers to choose from; none below the end of a tree. Raises CannotAsk."""
        pool = turn.pool
        if isinstance(pool, Tree):
            below = (tuple(leaf.split("/")) for leaf in pool.tree)
            steps = dict.fromkeys(
                leaf[len(path)].strip() for leaf in below if len(leaf) > len(path) and _starts(leaf, path)
            )
            return tuple(steps)
        if pool == YES_NO:
            return ("yes", "no")
        if pool == OPTIONS:
            answers = tuple(self.label_texts)
        else:
            answers = self.pool_keys if isinstance(pool, Numbers | Nearest) else tuple(pool)
        if len(answers) < 2:
            raise CannotAsk("the pool has fewer than two answers to choose from")
        return answers

    def _written(self, pool: Sequence[str]) -> list[str]:
        """The labels of a pool of which only the first token counts: letters, unless the answers are labels."""
        if tuple(pool) in (tuple(self.label_texts) if self.labels else (), ("yes", "no")):
            return list(pool)
        if len(pool) > len(LETTERS):
            raise CannotAsk(f"a pool of {len(pool)} answers has more than one letter can name: use by: prompt")
        return list(LETTERS[: len(pool)])

    # -- texts ----------------------------------------------------------------------------------------------------

    def _message(self, turn: Turn, *, first: bool, pool: Sequence[str] = ()) -> Message:
        """The message of a turn: the question with it in the first, the sentence alone later."""
        ask = turn.ask or self._sentence(turn, first=first, pool=pool)
        if pool and turn.by == "first-token" and (shown := self._written(pool)) != list(pool):
            ask = "\n".join([ask, *(f"{letter}. {answer}" for letter, answer in zip(shown, pool, strict=True))])
        if not first:
            return Message("user", ask or self.words["then"])
        return Message("user", self._whole_question(ask), self.pictures)

    def _sentence(self, turn: Turn, *, first: bool, pool: Sequence[str]) -> str:
        if turn.kind == "cot":
            return self.words["cot"]
        if turn.kind == "likelihood" and turn.pool == YES_NO:
            return self.words["yes-no"]
        if self.labels and (turn.kind == "direct" or turn.pool == OPTIONS):
            return self.words["option" if first else "then option"]
        if turn.kind == "likelihood" and turn.by == "first-token":
            return self.words["classes"]
        return "" if first else self.words["then"]

    def _whole_question(self, ask: str) -> str:
        """The whole question: examples as text, the query, other labels, and what is asked for."""
        parts = []
        spec = self.spec.instruction
        if self.examples and not spec.examples.images:
            parts = [self.words["about others"], *(self._example_as_text(example) for example in self.examples)]
        own = [(label, str(self.sample.options[key])) for label, key in zip(self.labels, self.order, strict=True)]
        sentences = [self._labels_sentence(self.labels, self.label_texts), ask]
        sentence = "\n".join(each for each in sentences if each)
        return "\n\n".join([*parts, self._query(self.instruction, self.sample, own, sentence, len(self.pictures))])

    def _query(self, instruction: str, sample: Sample, options: list[tuple[str, str]], ask: str, images: int) -> str:
        values = {
            "instruction": instruction,
            "hint": sample.hint,
            "options": options,
            "images": images,
            "language": sample.language,
            "ask": ask,
        }
        text = prompts.rendered(self.query, values).strip()
        return text if not ask or ask in text else f"{text}\n{ask}"

    def _labels_sentence(self, labels: Sequence[str], answers: Sequence[str]) -> str:
        if list(labels) == list(answers):
            return ""
        pairs = (self.words["pair"].format(new=new, old=old) for old, new in zip(labels, answers, strict=True))
        return self.words["labels"].format(pairs=", ".join(pairs))

    def _example(self, example: Example) -> tuple[str, str]:
        """An example's question and its answer."""
        sample = example.sample
        options = [(label, str(text)) for label, text in sample.options.items()]
        verbalizer = self.condition.verbalizer
        answer = example.key
        if verbalizer and answer in sample.options:
            labels = list(sample.options)
            answer = verbalizer.labels(labels)[labels.index(answer)]
        return self._query(sample.instruction, sample, options, "", len(example.pictures)), answer

    def _example_as_text(self, example: Example) -> str:
        question, answer = self._example(example)
        return f"{question}\n{self.words['answer'].format(answer=answer)}"

    def _examples_as_messages(self) -> list[Message]:
        """Examples with pictures are turns of their own: the question, then its answer."""
        if not self.spec.instruction.examples.images:
            return []
        messages = []
        for example in self.examples:
            question, answer = self._example(example)
            messages += [Message("user", question, example.pictures), Message("assistant", answer)]
        return messages


def turn_answer(turn: int, row: Collected) -> Response:
    """A model's answer in one turn. Down a tree each step is a turn, and the text is the path so far."""
    return Response(turn=turn, text=row.text, status=row.status, tokens=row.completion_tokens)


def _starts(leaf: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return tuple(step.strip() for step in leaf[: len(path)]) == path
