"""What an answer says in words: the option it names, or yes or no. Without numpy, so that it loads at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

_THOUGHT = re.compile(r"^\s*<think(?:ing)?>.*</think(?:ing)?>", re.DOTALL)
_YES_OR_NO = re.compile(r"\b(yes|no)\b(?!\s+(?:idea|way|doubt|matter|need)\b)", re.IGNORECASE)
_NOT_YES = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|rather\s+than|instead\s+of|other\s+than|anything\s+but)|n['’]t)\s+"
    r"(?:(?:an?|the|say|saying|answer|be|is|it|it['’]s|that|think|as|to|with|simply|clearly|definitely|either|clear)\s+){0,4}"
    r"[\"'“‘*]*(?:yes|no)\b(?!\s+\w)|\b(?:yes|no)[\"'”’*]*\s+(?:is|would\s+be)\s+(?:not|wrong|incorrect|false)\b",
    re.IGNORECASE,
)
_REACH = 300  # letters round a label that are looked at
_WORDS = frozenset({"A", "I"})  # labels that are words of English, too
_OPEN, _CLOSE = r"[(\[{*_`\"'“‘（【「$]*", r"[)\]}*_`\"'”’）】」$]*"
_LETTER = r"[^\W\u3400-\u9fff]"  # of the same word: Chinese has no spaces between words
_JOINED = r"(?:and|or|nor)(?:\s+(?:maybe|perhaps|possibly|even|else))?|[,/&、]|或者?|和|与|以及"
_VERB = (
    r"(?:(?:is|was|are|can|could|does|do|did|has|must|may|might|should|would|will)(?:n['’]?t)?"
    r"|cannot|can['’]t|seems|fails|looks|appears)\b"
)
_WRONG = (
    r"(?:\b(?:wrong|incorrect|false|untrue|mistaken|impossible|implausible|unlikely|inaccurate|invalid"
    r"|distractor|contradict(?:s|ed|ing)?|(?:rul|eliminat|exclud|reject|dismiss|discard)(?:ed?|ing|es|s)?)\b|[✗✘❌]|错|误|排除|剔除)"
)
_NOT = (
    r"(?:\b(?:not|never|no|neither|nor|none|without|cannot|hardly|doubt\w*|unlike|except|least|less\s+likely|fails?|unsure|whether"
    r"|against|(?:other|rather)\s+than|instead\s+of|(?:any|every)thing\s+but|all\s+but|far\s+from|at\s+first|initially"
    r"|(?:ca|do|is|wo|does|was)nt)\b|n['’]t\b|[不没沒非除未无無否别])"
)
_DENIAL = re.compile(f"{_NOT}|{_WRONG}", re.IGNORECASE)
# Behind a label: "C is not it", "C wrong", "C选项不对".
_DENIED_BEHIND = re.compile(
    rf"{_CLOSE}\s*(?:option|choice|answer)?\s*(?:{_VERB}.*?(?:{_NOT}|{_WRONG}|n['’]t|\bout\b)"
    rf"|{_VERB[:-2]}n['’]?t\b|cannot\b|can['’]t\b|fails\b|[-–—]?\s*{_WRONG}"
    r"|not\s+(?:correct|right|true|possible|likely|it|the)\b)"
    rf"|{_CLOSE}\s*(?:[选選]?[项項])?(?:[也就则并被应该可以是]|显然|明显|肯定|绝对|答案)*"
    r"(?:不(?:对|正|是|符|行|可|成立|合|准|恰|应|能|选|属|匹|一|会)|错|有误|误|排除|剔除|非)"
    rf"|{_CLOSE}\s*[与與和跟][^，。；\n]{{0,12}}(?:不[符合一相匹]|矛盾)",
    re.IGNORECASE,
)
_IS_WRONG = re.compile(rf"{_VERB}\s+(?:be\s+|been\s+|\w+ly\s+)*{_WRONG}", re.IGNORECASE)
# What sounds like a denial and is none, or is one of the other options.
_NO_DENIAL = re.compile(
    r"\b(?:no|without(?:\s+a)?|beyond(?:\s+a)?)\s+(?:doubt|question)\b|\bundoubtedly\b|\bnot\s+only\b"
    rf"|\b(?:others?|rest|remaining)(?:\s+(?:options|choices|answers|ones|two|three))?\s+{_VERB}[^.,;\n]*"
    r"|毫无疑问|无疑|不错|没错|非常|不仅|不过|不难|无非|(?:其他|其余|其它)[^，。；\n]*",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[.!?;,\n。！？；，]|\b(?:because|since|so|therefore|thus|hence|while|whereas|although|though|which|who)\b"
    r"|(?<!thing )(?<!all )(?<!any )\bbut\b|因为|因此|所以|但是?|而|故|由于",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\bwould\b.*\bif\b(?!\s+I\b)|\bif\b(?!\s+I\b).*\bwould\b|如果|假如", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?\n。！？]")
# What is said right before the option that an answer gives, whatever else it names.
_SAYS = re.compile(
    r"(?:\b(?:(?:ans(?:wer)?|correct(?:\s+(?:answer|option|choice))?)\s*(?:is|:|：|would\s+be)*"
    r"|(?:option|choice)\s*(?:is|:|：|would\s+be)+)\s*(?:option\s+)?"
    r"|(?:答案|正确的?(?:选项|答案)?)\s*(?:应该|应当|应|就)?\s*[是为選选:：]*\s*(?:选项)?\s*"
    rf"|(?<![备可单多被候])[選选](?:择|擇)?\s*[:：]?\s*){_OPEN}$",
    re.IGNORECASE,
)
# Words that may stand before a label. Behind any other it belongs to a name or a unit: vitamin C, plan B, 5 A.
_BEFORE = frozenset(
    """am an and ans answer answers are as be been believe best both but by can candidate choice choices choose chosen
    clearly closest conclude consider correct could d definitely either final finally fits follows for goes go going
    guess hence indeed is it its just label labelled labeled leaves leaving letter like likely ll looks maybe mean means
    might most my obviously of only opt option options or over perhaps pick picked possibly prefer probably rather re
    response right s say says select selected selecting selection simply so still surely than that then therefore think
    thus to versus vote was while will with would yes you""".split()
)
_BEFORE_HAN = re.compile(r"(?:[是为選选择擇项項即故填应能猜和与或及]|答案|认为|觉得)$")
_BEHIND_HAN = "[选選项項是为才最更正对都也和与或及吧呢啊可应有符被显并肯]"
_NAME_BEHIND = re.compile(
    r"\s+(?:major|minor|sharp|flat|string|note|chord|programming|language|section|cells?|drive|movie|battery|grade"
    r"|level|team|elegans|coli|volts?|amps?|degrees)\b",
    re.IGNORECASE,
)


def option_in(text: str, labels: Sequence[str]) -> str | None:
    """The label that a text gives as its answer, as the first step of MMBench's extraction reads it; None for none.

    A label counts where it stands alone, with or without marks round it: ``C``, ``C.``, ``C)``, ``(C)``, ``**C**``
    (MMBench, arXiv 2307.06281, 4.2, step 1). Nothing is guessed: none is read from a text that denies a label ("not
    C", "B is wrong"), names two, or has the letter in a name or a unit ("vitamin C"), unless it says of one and no
    other that this is the answer. In a sentence an ``A`` without a mark is the article and an ``I`` the pronoun. What
    an option *says* is not read here: that is the next step's.
    """
    answer = _NO_DENIAL.sub(" ", _THOUGHT.sub("", text)).strip()
    bare = answer.strip(" \t\r\n*_`\"'“”‘’()[]{}.,:;!#$，。：；！（）")
    for label in labels:
        if bare == label or bare.casefold() == label.casefold():
            return label
    one_of = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    alone = rf"(?<!{_LETTER})(?<![’'°#@&+-])(?<![A-Z]\.)(?:{one_of})(?!{_LETTER})(?![’'°#&+]|[.-]\w)"
    # What follows a label that is put first is what the option says: "C. Solution A".
    is_first = re.match(rf"{_OPEN}(?:{one_of}){_CLOSE}(?:[.):：、。]|\s(?!\s*{_VERB}))", answer)
    named: set[str] = set()
    sure: set[str] = set()
    declared: set[str] = set()
    denied: set[str] = set()
    for match in re.finditer(alone, answer):
        label, before = match[0], answer[max(0, match.start() - _REACH) : match.start()]
        behind = answer[match.end() : match.end() + _REACH]
        is_said = bool(_SAYS.search(before)) and not (label in _WORDS and re.match(r"\s+[a-z]", behind))
        if label in _WORDS and not is_said and _is_word(label, before, behind, one_of):
            continue
        if _is_denied(before, behind, is_said=is_said):
            denied.add(label)
        elif is_said:
            declared.add(label)
            declared |= set(re.findall(rf"^{_CLOSE}\s*(?:{_JOINED})\s*{_OPEN}({one_of})(?!{_LETTER})", behind))
        elif not _is_name(label, before, behind):
            sure.add(label)
        elif not is_first:
            named.add(label)
    given = declared or sure
    if len(given) != 1 or given & denied or (not declared and (denied or named - sure)):
        return None
    return given.pop()


def _is_denied(before: str, behind: str, *, is_said: bool) -> bool:
    """Whether a label between these is denied: in its clause, or where nothing says that it is the answer, in its
    sentence.
    """
    if re.match(rf"{_CLOSE}\s*[?？吗]", behind) or _DENIAL.search(_CLAUSE_END.split(before)[-1]):
        return True
    if _DENIED_BEHIND.match(_CLAUSE_END.split(behind)[0]):
        return True
    begin, end = _SENTENCE_END.split(before)[-1], _SENTENCE_END.split(behind)[0]
    if _SUPPOSED.search(f"{begin} {end}"):
        return True
    has_text = re.match(rf"{_CLOSE}[):：、]", behind)  # of the option
    return not is_said and not has_text and bool(_IS_WRONG.search(end))


def _is_name(label: str, before: str, behind: str) -> bool:
    """Whether a label is part of a name or a unit, as far as the words beside it tell. Of one letter only."""
    if label.isdigit():
        return bool(re.search(r"\d[.,:/]$", before) or re.match(r"[.,:/]\d|%|\s+[a-z]", behind))
    if len(label) > 1 or not label.isalpha():
        return False
    if _NAME_BEHIND.match(behind) or re.match(rf"(?!{_BEHIND_HAN})[\u3400-\u9fff]", behind):
        return True
    if word := re.search(r"([A-Za-zÀ-ɏ]+|\d)\s+$", before):
        return word[1].casefold() not in _BEFORE
    return bool(re.search(r"[\u3400-\u9fff]\s*$", before) and not _BEFORE_HAN.search(before.rstrip()))


def _is_word(label: str, before: str, behind: str, one_of: str) -> bool:
    """Whether an A is the article and an I the pronoun: without a mark, not at the end, not beside another label."""
    is_noun_behind = bool(re.match(r"\s+[a-z]", behind))
    if not behind or behind[0] in ".):]*`：、" or (behind[0] == "," and (label == "A" or not before)):
        return False
    if re.search(r"[(\[*_`\"]$", before) and not is_noun_behind:
        return False
    joined = rf"\s*(?:{_JOINED})\s*"
    if re.match(rf"{joined}(?:{one_of})(?!{_LETTER})", behind) or (label == "A" and re.match(rf"\s+{_VERB}", behind)):
        return False
    in_chinese = re.search(r"[\u3400-\u9fff]\s*$", before) or re.match(r"\s*[\u3000-\u9fff]", behind)
    if in_chinese or re.search(r"\b(?:option|choice)\s+$", before, re.IGNORECASE):
        return False
    return is_noun_behind or not re.search(rf"(?<!{_LETTER})(?:{one_of}){joined}$", before)


def answer_in(text: str) -> bool | None:
    """True for yes, False for no, None where a text says neither or both.

    The first word decides ("Yes, there is no doubt"); else the only one of the two that occurs. POPE's own script
    takes whatever holds no "no" or "not" for a yes, which reads an evasion as an answer; here it counts as none,
    as does a denied one ("the answer is not yes").
    """
    answer = _THOUGHT.sub("", text).strip(" \t\r\n*_`\"'“”‘’([{#>-")
    if _NOT_YES.search(answer):
        return None
    words = [match[1].lower() for match in _YES_OR_NO.finditer(answer)]
    first = re.match(r"(?:yes|no)\b(?!\s*(?:and|or|/)\s*(?:yes|no)\b)", answer, re.IGNORECASE)
    if first and words and words[0] == first[0].lower():
        return words[0] == "yes"
    return words[0] == "yes" if len(set(words)) == 1 else None


def pope_answer(text: str) -> bool:
    """Yes or no as POPE's own script reads it (arXiv 2305.10355, evaluate.py): no, if the first sentence holds the word
    no or not; else yes, whatever it says.
    """
    words = text.split(".")[0].replace(",", "").split(" ")
    return not {"No", "no", "not"} & set(words)
