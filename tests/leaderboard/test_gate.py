"""The gate for continuous integration: what passes, what does not, and how that is told."""

import io
import json
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from bank.errors import BadInput
from leaderboard.frozen import gate

JUDGE = {"judge": "keen", "run": 4, "source_dataset": "all", "kind": "pair", "reference": "majority"}


def row(metric, value, low=None, high=None, **more):
    ends = {"value": value, "value_low": low, "value_high": high, "value_method": "wilson"}
    return JUDGE | {"metric": metric} | ends | {"n": 40, "notes": []} | more


def states(checks):
    return [check.state for check in checks]


# Against a limit


@pytest.mark.parametrize(
    ("value", "low", "high", "state", "plain"),
    [
        (0.75, 0.70, 0.79, "failed", "failed"),
        (0.75, 0.70, 0.85, "passed", "failed"),
        (0.85, 0.80, 0.90, "passed", "passed"),
        (0.75, None, None, "unknown", "failed"),
        (None, None, None, "unknown", "unknown"),
    ],
)
def test_a_number_fails_where_all_of_its_interval_lies_below_unless_the_number_itself_decides(
    value, low, high, state, plain
):
    rows, limits = [row("accuracy", value, low, high)], [gate.limit("accuracy=.8")]
    assert states(gate.checked(rows, limits, plain=False)) == [state]
    assert states(gate.checked(rows, limits, plain=True)) == [plain]


def test_a_bias_may_go_so_far_and_no_further():
    rows = [{"judge": "keen", "bias": "length", "value": 0.3, "value_low": 0.2, "value_high": 0.4, "notes": []}]
    assert states(gate.checked(rows, [gate.limit("length=.1", at_most=True)], plain=False)) == ["failed"]
    assert states(gate.checked(rows, [gate.limit("length=.25", at_most=True)], plain=False)) == ["passed"]


def test_boards_of_models_are_held_to_the_columns_that_have_intervals():
    rows = [{"model": "m", "win_rate": 0.2, "win_rate_low": 0.1, "win_rate_high": 0.3, "n": 9, "notes": []}]
    assert gate.checked(rows, [gate.limit("win_rate=.5")], plain=False)[0].name == "m, win_rate"
    with pytest.raises(BadInput, match="No row has a number 'n'"):
        gate.checked(rows, [gate.limit("n=.5")], plain=False)


@pytest.mark.parametrize("text", ["accuracy", "accuracy=high", "accuracy=nan", "accuracy=inf", "=", ""])
def test_a_limit_that_is_no_number_is_refused(text):
    with pytest.raises(BadInput, match="NAME=NUMBER"):
        gate.limit(text)


def rate(model, value=None, low=None, high=None):
    return {"model": model, "win_rate": value, "win_rate_low": low, "win_rate_high": high, "n": 120, "notes": []}


WON = rate("alpha", 0.8, 0.72, 0.86)


@pytest.mark.parametrize(
    ("rows", "more", "expected"),
    [
        ([WON, rate("beta")], {}, ["passed", "no number"]),
        ([WON, rate("beta")], {"earlier": [WON, rate("beta")]}, ["passed", "no number"]),
        ([WON, rate("beta")], {"earlier": [WON, rate("beta", 0.6, 0.5, 0.7)]}, ["passed", "unknown"]),
        ([rate("beta")], {"named": True}, ["unknown"]),
        ([rate("alpha"), rate("beta")], {}, ["unknown", "unknown"]),
        ([WON, rate("few", 0.9)], {}, ["passed", "unknown"]),
    ],
)
def test_a_row_that_never_had_the_number_does_not_fail_unless_it_is_named_or_none_has_it(rows, more, expected):
    """The anchor has no rate against itself: no gate on a board with one could pass."""
    checks = gate.checked(rows, [gate.limit("win_rate=.5")], plain=False, **more)
    assert states(checks) == expected
    assert [check.stops for check in checks] == [state == "unknown" for state in expected]


# Against what was


def test_a_number_is_worse_where_the_interval_of_the_difference_lies_below_zero():
    """Zou and Donner 2008: with .9 [.85, .94] before and .8 [.74, .85] now, the difference ends at
    -.1 + sqrt(.05^2 + .05^2) = -.029; with .83 [.77, .88] now at -.07 + sqrt(.05^2 + .05^2) = +.001."""
    before = [row("accuracy", 0.9, 0.85, 0.94, run=3)]
    for now, state, most in (((0.8, 0.74, 0.85), "failed", "-0.029"), ((0.83, 0.77, 0.88), "passed", "+0.001")):
        (check,) = gate.compared([row("accuracy", *now)], before, lower_is_better=(), plain=False)
        assert (check.state, check.against) == (state, "0.900 before")
        assert most in check.words
    (check,) = gate.compared([row("accuracy", 0.89, 0.8, 0.95)], before, lower_is_better=(), plain=True)
    assert check.state == "failed"


def test_a_distance_is_better_when_it_is_lower():
    before, now = [row("edit_distance", 0.2, 0.17, 0.23)], [row("edit_distance", 0.3, 0.27, 0.33)]
    assert states(gate.compared(now, before, lower_is_better={"edit_distance"}, plain=False)) == ["failed"]
    assert states(gate.compared(before, now, lower_is_better={"edit_distance"}, plain=False)) == ["passed"]


def test_a_number_that_is_gone_does_not_pass_and_one_that_is_new_does():
    before = [row("accuracy", 0.9, 0.85, 0.94), row("kappa", None)]
    now = [row("accuracy", None, notes=["value: fewer than 8 groups"]), row("kappa", 0.5, 0.4, 0.6)]
    gone, new = gate.compared(now, before, lower_is_better=(), plain=False)
    assert (gone.state, gone.words) == ("unknown", "value: fewer than 8 groups")
    assert new.state == "passed"


def test_a_judge_that_is_gone_does_not_pass_beside_one_that_is_there():
    before = [row("accuracy", 0.9, 0.85, 0.94), row("accuracy", 0.8, 0.7, 0.9, judge="dull"), row("kappa", None)]
    here, gone = gate.compared(before[:1], before, lower_is_better=(), plain=False)
    assert (here.state, gone.state, gone.words) == ("passed", "unknown", "it is gone")
    assert "dull" in gone.name


def test_a_name_is_no_markup_where_the_gate_is_shown():
    rows = [row("accuracy", 0.9, 0.85, 0.94, judge="![x](http://a.example/p.png)|`<b>")]
    told = gate.told("judges", gate.checked(rows, [gate.limit("accuracy=.1")], plain=False), "markdown")
    assert "\\!\\[x\\](http://a.example/p.png)\\|\\`\\<b\\>" in told


def test_of_two_runs_of_a_judge_the_last_is_compared_and_strangers_are_refused():
    rows = [row("accuracy", 0.5, 0.4, 0.6, run=4), row("accuracy", 0.9, 0.85, 0.95, run=5)]
    (check,) = gate.compared(rows, [row("accuracy", 0.9, 0.85, 0.95)], lower_is_better=(), plain=False)
    assert (check.value, check.state) == (0.9, "passed")
    with pytest.raises(BadInput, match="No row stands in"):
        gate.compared(rows, [row("accuracy", 0.9, judge="dull")], lower_is_better=(), plain=False)
    with pytest.raises(BadInput, match="no better side"):
        gate.compared([{"judge": "keen", "bias": "length"}], [], lower_is_better=(), plain=False)


# By command


def told(*options):
    out, err = io.StringIO(), io.StringIO()
    status = 0
    try:
        call_command("leaderboard", "judges", "--benchmark", "grove", *options, stdout=out, stderr=err)
    except CommandError as error:
        status = error.returncode
        err.write(str(error))
    return status, out.getvalue(), err.getvalue()


ALL = ("--where", "source_dataset=all", "--where", "reference=majority")


@pytest.mark.django_db
def test_the_command_ends_with_3_where_a_number_is_too_low_and_prints_the_board_all_the_same(voted):
    status, out, err = told(*ALL, "--fail-under", "agreement=.99")
    assert status == 3
    assert "failed  " in err
    assert "did not pass" in err
    assert out == told()[1]
    assert told(*ALL, "--fail-under", "agreement=.01")[0] == 0


@pytest.mark.django_db
def test_a_gate_on_a_board_with_an_anchor_passes_where_the_others_reach_it_and_tells_of_the_anchor(voted):
    def asked(*options, what="models"):
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command("leaderboard", what, "--benchmark", "grove", *options, stdout=out, stderr=err)
        except CommandError as error:
            return error.returncode, out.getvalue(), err.getvalue()
        return 0, out.getvalue(), err.getvalue()

    status, _, err = asked("--anchor", "Cedar", "--fail-under", "win_rate=.1")
    assert (status, "no number  Cedar, win_rate: " in err) == (0, True)
    assert asked("--anchor", "Cedar", "--fail-under", "win_rate=.999")[0] == 3
    assert asked("--anchor", "Cedar", "--where", "model=Cedar", "--fail-under", "win_rate=.1")[0] == 3
    shaped = asked("--anchor", "Cedar", "--fail-under", "win_rate=.1", "--format", "junit")[1]
    suite = ElementTree.fromstring(shaped)
    assert (suite.get("skipped"), len(suite.findall("testcase/skipped"))) == ("2", 2), (
        "the anchor, and who never met it"
    )


@pytest.mark.django_db
def test_the_rows_of_a_file_are_compared_and_told_as_junit_and_markdown(voted, tmp_path):
    rows = json.loads(told("--format", "json")[1])
    path = tmp_path / "last.json"
    path.write_text(json.dumps(rows))
    assert told("--against", str(path))[0] == 0
    better = [one | {"value": 1.0, "value_low": 0.999, "value_high": 1.0} for one in rows if one["value"] is not None]
    path.write_text(json.dumps([row("accuracy", float("nan"))]))
    assert told("--against", str(path))[0] == 1
    path.write_text("".join(json.dumps(one) + "\n" for one in better))
    status, out, _ = told("--against", str(path), *ALL, "--format", "junit")
    suite = ElementTree.fromstring(out)
    assert status == 3
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) > 0
    status, out, _ = told("--against", str(path), *ALL, "--format", "markdown")
    assert (status, "| failed | " in out) == (3, True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--fail-under", "happiness=.5"), 1),
        (("--fail-under", "agreement"), 1),
        (("--against", "nothing.json"), 1),
        (("--where", "colour=red", "--fail-under", "agreement=.5"), 1),
        (("--format", "junit"), 2),
        (("--plain",), 2),
    ],
)
def test_what_the_gate_cannot_hold_is_bad_input(voted, options, status):
    assert told(*options)[0] == status
