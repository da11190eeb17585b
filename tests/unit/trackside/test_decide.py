"""What happens next follows from the plan and the facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackside.machine.clock import Moment
from trackside.machine.process import Process
from trackside.steps.decide import (
    EndTry,
    ExpectedFiles,
    Finished,
    StartTry,
    WaitBackoff,
    WaitForSecrets,
    Watch,
    decide,
    judge,
    secrets_needed,
)
from trackside.steps.plan import Plan, parse_plan
from trackside.steps.step_records import step_records
from trackside.steps.tries import Exit, Facts, Stopping, StopRequest, Try, Verdict, verdict_from_record

NOTHING_EXPECTED = ExpectedFiles(present=True, whole=False)
ALL_THERE = ExpectedFiles(present=True, whole=True)
MISSING = ExpectedFiles(present=False, whole=False)


def at(seconds: float, boot: str = "boot") -> Moment:
    return Moment(wall=1000.0 + seconds, monotonic=seconds, boot_id=boot)


def plan_of(*steps: dict[str, Any], grace: float = 10.0) -> Plan:
    made = [{"name": f"s{index}", "argv": ["true"], **step} for index, step in enumerate(steps)]
    return parse_plan({"format": 1, "steps": made, "stop_grace_seconds": grace})


def running(step: int = 0, number: int = 1, *, since: float = 0.0, stopping: Stopping | None = None) -> Try:
    process = Process(pid=77, start_time="1", boot_id="boot", group=77)
    return Try(
        step=step, number=number, started=at(since), process=process, stopping=stopping, verdict=None, settled=False
    )


def ended(result: str, step: int = 0, number: int = 1, *, when: float = 1.0, boot: str = "boot") -> Try:
    code = {"done": 0, "failed": 1, "stopped": None}[result]
    verdict = Verdict(
        result=result,
        failure=None if result == "done" else "exit",
        exit_code=code,
        signal=None,
        exit_known=True,
        ended=at(when, boot),
    )
    return running(step, number)._replace(verdict=verdict, settled=True)


def facts(
    *tries: list[Try], now: float = 100.0, stop: StopRequest | None = None, held: frozenset[str] = frozenset()
) -> Facts:
    return Facts(now=at(now), tries=tuple(map(tuple, tries)), stop=stop, secrets_held=held)


def test_the_first_step_is_started_first() -> None:
    assert decide(plan_of({}, {}), facts([], [])) == StartTry(step=0, number=1)


def test_a_step_starts_only_after_the_one_before_is_done() -> None:
    assert decide(plan_of({}, {}), facts([running()], [])) == Watch(running=running())
    assert decide(plan_of({}, {}), facts([ended("done")], [])) == StartTry(step=1, number=1)


def test_all_steps_done_is_the_end() -> None:
    last = ended("done", step=1, when=9.0)
    assert decide(plan_of({}, {}), facts([ended("done")], [last])) == Finished(
        result="done", step=None, exit_code=None, at=1009.0
    )


def test_a_failed_try_waits_its_backoff_and_then_is_repeated() -> None:
    plan = plan_of({"tries": 3, "backoff_seconds": [5.0, 30.0]})
    assert decide(plan, facts([ended("failed", when=98.0)])) == WaitBackoff(step=0, seconds=3.0)
    assert decide(plan, facts([ended("failed", when=95.0)])) == StartTry(step=0, number=2)
    two = [ended("failed"), ended("failed", number=2, when=90.0)]
    assert decide(plan, facts(two)) == WaitBackoff(step=0, seconds=20.0)


def test_the_last_backoff_repeats() -> None:
    plan = plan_of({"tries": 3, "backoff_seconds": [1.0]})
    assert [plan.steps[0].backoff_after(number) for number in (1, 2)] == [1.0, 1.0]


def test_after_a_reboot_no_backoff_is_waited_for() -> None:
    plan = plan_of({"tries": 2, "backoff_seconds": [3600.0]})
    assert decide(plan, facts([ended("failed", when=99.0, boot="before")])) == StartTry(step=0, number=2)


def test_used_up_tries_end_the_plan_with_the_exit_code() -> None:
    plan = plan_of({"tries": 2}, {})
    tries = [ended("failed"), ended("failed", number=2, when=7.0)]
    assert decide(plan, facts(tries, [])) == Finished(result="failed", step="s0", exit_code=1, at=1007.0)


def test_an_error_that_cannot_pass_ends_the_plan_at_once_without_a_pause() -> None:
    plan = plan_of({"tries": 3, "backoff_seconds": [3600.0]}, {})
    tried = ended("failed", when=99.0)
    assert tried.verdict is not None
    hopeless = tried._replace(verdict=tried.verdict._replace(cannot_pass=True))
    assert decide(plan, facts([hopeless], [])) == Finished(result="failed", step="s0", exit_code=1, at=1099.0)
    assert step_records(plan, facts([hopeless], []))[0]["state"] == "failed"
    optional = plan_of({"tries": 3, "optional": True}, {})
    assert decide(optional, facts([hopeless], [])) == StartTry(step=1, number=1)


def test_a_verdict_is_read_as_it_was_written() -> None:
    verdict = Verdict("failed", "exit", 1, None, True, at(1.0), error="KeyError: 'x'", cannot_pass=True)
    assert verdict_from_record(verdict.as_record()) == verdict


def test_a_step_waits_for_its_secrets_only() -> None:
    plan = plan_of({"secrets": ["B", "A"]}, {"secrets": ["C"]})
    assert decide(plan, facts([], [])) == WaitForSecrets(names=("A", "B"))
    assert decide(plan, facts([], [], held=frozenset("AB"))) == StartTry(step=0, number=1)


def test_secrets_are_needed_for_what_may_still_run() -> None:
    plan = plan_of({"secrets": ["A"]}, {"secrets": ["B"]}, {"secrets": ["C"]})
    assert secrets_needed(plan, facts([ended("done")], [running(1)], [])) == ("B", "C")
    assert secrets_needed(plan, facts([ended("done")], [running(1)], [], held=frozenset("BC"))) == ()
    assert secrets_needed(plan, facts([ended("failed")], [], [])) == ()


def test_a_step_past_its_time_gets_the_signal_and_after_the_grace_is_killed() -> None:
    plan = plan_of({"timeout_seconds": 50.0}, grace=10.0)
    assert decide(plan, facts([running()], now=49.0)) == Watch(running=running())
    assert decide(plan, facts([running()], now=50.0)) == EndTry(running=running(), why="timeout", force=False)
    asked = running(stopping=Stopping(why="timeout", at=at(50.0), signalled=True))
    assert decide(plan, facts([asked], now=59.0)) == EndTry(running=asked, why="timeout", force=False)
    assert decide(plan, facts([asked], now=60.0)) == EndTry(running=asked, why="timeout", force=True)


def test_a_stop_that_was_cut_off_is_carried_through() -> None:
    stop = StopRequest(at=at(95.0), grace_seconds=10.0)
    plan = plan_of({})
    assert decide(plan, facts([running()], stop=stop)) == EndTry(running=running(), why="stop", force=False)
    assert decide(plan, facts([running()], stop=stop, now=105.0)) == EndTry(running=running(), why="stop", force=True)


def test_nothing_starts_after_a_stop() -> None:
    stop = StopRequest(at=at(95.0), grace_seconds=10.0)
    plan = plan_of({"tries": 3}, {})
    never = Finished(result="stopped", step=None, exit_code=None, at=1095.0)
    assert decide(plan, facts([], [], stop=stop)) == never
    assert decide(plan, facts([ended("done")], [], stop=stop)) == never
    assert decide(plan, facts([ended("failed")], [], stop=stop)) == Finished("stopped", "s0", 1, 1095.0)


def test_a_plan_that_was_done_before_the_stop_stays_done() -> None:
    stop = StopRequest(at=at(95.0), grace_seconds=10.0)
    assert decide(plan_of({}), facts([ended("done")], stop=stop)) == Finished("done", None, None, 1001.0)


@dataclass(frozen=True)
class Ending:
    code: int | None = 0
    known: bool = True
    when: float = 50.0
    could_not_start: bool = False

    def exit(self) -> Exit:
        return Exit(
            code=self.code, signal=None, known=self.known, could_not_start=self.could_not_start, ended=at(self.when)
        )


@pytest.mark.parametrize(
    ("ending", "expected", "result", "failure"),
    [
        (Ending(code=0), NOTHING_EXPECTED, "done", None),
        (Ending(code=0), ALL_THERE, "done", None),
        (Ending(code=0), MISSING, "failed", "missing_output"),
        (Ending(code=3), ALL_THERE, "failed", "exit"),
        (Ending(code=None), ALL_THERE, "failed", "exit"),
        (Ending(code=None, known=False), ALL_THERE, "done", None),
        (Ending(code=None, known=False), ExpectedFiles(present=True, whole=False), "failed", "unknown_exit"),
        (Ending(code=None, known=False), NOTHING_EXPECTED, "failed", "unknown_exit"),
        (Ending(code=None, could_not_start=True), NOTHING_EXPECTED, "failed", "could_not_start"),
    ],
)
def test_an_ended_try_counts_as(ending: Ending, expected: ExpectedFiles, result: str, failure: str | None) -> None:
    verdict = judge(ending.exit(), stop=None, stopping=None, expected=expected)
    assert (verdict.result, verdict.failure) == (result, failure)


def test_a_try_that_ended_before_it_was_asked_to_keeps_its_own_result() -> None:
    stop = StopRequest(at=at(60.0), grace_seconds=1.0)
    late = Stopping(why="timeout", at=at(60.0), signalled=True)
    assert judge(Ending(when=59.0).exit(), stop=stop, stopping=None, expected=ALL_THERE).result == "done"
    assert judge(Ending(when=59.0).exit(), stop=None, stopping=late, expected=ALL_THERE).result == "done"


def test_a_try_that_ended_after_it_was_asked_to_is_stopped_or_timed_out_even_with_exit_code_0() -> None:
    stop = StopRequest(at=at(40.0), grace_seconds=1.0)
    late = Stopping(why="timeout", at=at(40.0), signalled=True)
    assert judge(Ending().exit(), stop=stop, stopping=late, expected=ALL_THERE).result == "stopped"
    assert judge(Ending().exit(), stop=None, stopping=late, expected=ALL_THERE).failure == "timeout"


def test_an_unseen_end_after_a_stop_is_a_stop_whatever_its_date() -> None:
    stop = StopRequest(at=at(60.0), grace_seconds=1.0)
    assert judge(Ending(known=False, when=1.0).exit(), stop=stop, stopping=None, expected=ALL_THERE).result == "stopped"


def test_a_failed_try_that_will_be_repeated_leaves_its_step_pending() -> None:
    plan = plan_of({"tries": 2, "backoff_seconds": [50.0]})
    waiting = step_records(plan, facts([ended("failed", when=90.0)]))[0]
    assert (waiting["state"], waiting["try"], waiting["failure"]) == ("pending", 1, "exit")
    over = step_records(plan, facts([ended("failed"), ended("failed", number=2)]))[0]
    assert over["state"] == "failed"


@st.composite
def situations(draw: st.DrawFn) -> tuple[Plan, Facts]:
    """A plan and facts that a real run can lead to: tries in order, nothing begun before the step ahead is done."""
    steps = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "tries": st.integers(1, 3),
                    "backoff_seconds": st.lists(st.floats(0, 50), max_size=2),
                    "timeout_seconds": st.none() | st.floats(0, 200),
                    "secrets": st.lists(st.sampled_from("AB"), unique=True),
                }
            ),
            min_size=1,
            max_size=4,
        )
    )
    tries: list[list[Try]] = [[] for _ in steps]
    for index, given_step in enumerate(steps):
        most = given_step["tries"]
        assert isinstance(most, int)
        results = ["failed"] * draw(st.integers(0, most))
        last = draw(st.sampled_from(["done", "done", "stopped", "running", "failed", "nothing"]))
        if last != "nothing" and len(results) < most:
            results.append(last)
        for number, result in enumerate(results, start=1):
            made = running(index, number) if result == "running" else ended(result, index, number, when=90.0)
            tries[index].append(made)
        if not results or results[-1] != "done":
            break
    stop = draw(st.none() | st.just(StopRequest(at=at(95.0), grace_seconds=draw(st.floats(0, 20)))))
    held = frozenset(draw(st.lists(st.sampled_from("AB"))))
    return plan_of(*steps), facts(*tries, stop=stop, held=held)


@given(situations())
def test_a_try_is_started_only_when_it_is_the_very_next(situation: tuple[Plan, Facts]) -> None:
    plan, known = situation
    action = decide(plan, known)
    if isinstance(action, StartTry):
        tries = known.tries[action.step]
        assert action.number == len(tries) + 1 <= plan.steps[action.step].tries
        assert all(seen.verdict is not None and seen.verdict.result == "failed" for seen in tries)
        ends = [before[-1].verdict for before in known.tries[: action.step]]
        assert all(end is not None and end.result == "done" for end in ends)
        assert known.stop is None
        assert set(plan.steps[action.step].secrets) <= known.secrets_held


@given(situations())
def test_a_running_try_is_always_watched_or_ended(situation: tuple[Plan, Facts]) -> None:
    plan, known = situation
    is_running = any(seen.is_running for tries in known.tries for seen in tries)
    assert is_running == isinstance(decide(plan, known), (Watch, EndTry))


@given(situations(), st.floats(0, 10_000))
def test_the_end_does_not_go_away_by_waiting(situation: tuple[Plan, Facts], longer: float) -> None:
    plan, known = situation
    action = decide(plan, known)
    if isinstance(action, Finished):
        assert decide(plan, known._replace(now=at(100.0 + longer))) == action


@given(situations())
def test_after_a_stop_only_the_running_try_is_of_interest(situation: tuple[Plan, Facts]) -> None:
    plan, known = situation
    stopped = known._replace(stop=StopRequest(at=at(99.0), grace_seconds=5.0))
    assert isinstance(decide(plan, stopped), (EndTry, Finished))
