"""A recommended value becomes one that the parameter accepts, never further from it than the old one was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stationmaster.analysis.applying.fitting import DoesNotFit, fitted
from stationmaster.analysis.levers import Lever
from stationmaster.recipes.parameters import check_value
from stationmaster.recipes.schema import (
    BoolParameter,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    StrParameter,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
SIZES = ChoiceParameter(type="choice", help="h", choices=("512", "1024", "768"))
NAMES = ChoiceParameter(type="choice", help="h", choices=("adam", "sgd"))


@st.composite
def bounded(draw: st.DrawFn) -> IntParameter | FloatParameter:
    low, high = sorted(draw(st.tuples(st.integers(-100, 100), st.integers(-100, 100))))
    least, most = draw(st.sampled_from([None, low])), draw(st.sampled_from([None, high]))
    if draw(st.booleans()):
        return IntParameter(type="int", help="h", min=least, max=most)
    return FloatParameter(type="float", help="h", min=least, max=most)


PARAMETERS: st.SearchStrategy[Parameter] = bounded() | st.sampled_from(
    [SIZES, NAMES, BoolParameter(type="bool", help="h"), StrParameter(type="str", help="h", max_length=4)]
)


@given(parameter=PARAMETERS, recommended=ANYTHING, lever=st.sampled_from(Lever))
@example(parameter=IntParameter(type="int", help="h"), recommended=10**400, lever=Lever.STEPS)
def test_whatever_is_recommended_the_value_is_accepted_or_refused(
    parameter: Parameter, recommended: Any, lever: Lever
) -> None:
    try:
        value = fitted(parameter, recommended, lever=lever)
    except DoesNotFit:
        return
    assert check_value(parameter, value) == value


@given(parameter=PARAMETERS, data=st.data(), lever=st.sampled_from(Lever))
def test_a_value_that_is_accepted_stays_as_it_is(parameter: Parameter, data: st.DataObject, lever: Lever) -> None:
    match parameter:
        case IntParameter() | FloatParameter():
            least = -200 if parameter.min is None else int(parameter.min)
            most = 200 if parameter.max is None else int(parameter.max)
            value: Any = data.draw(st.integers(least, most))
        case ChoiceParameter():
            value = data.draw(st.sampled_from(parameter.choices))
        case BoolParameter():
            value = data.draw(st.booleans())
        case StrParameter():
            value = "abc"
    assert fitted(parameter, value, lever=lever) == value


@given(parameter=bounded(), old=st.integers(-200, 200), wanted=st.floats(-1000, 1000), lever=st.sampled_from(Lever))
def test_a_number_never_moves_away_from_what_is_recommended(
    parameter: IntParameter | FloatParameter, old: int, wanted: float, lever: Lever
) -> None:
    before = fitted(parameter, old, lever=lever)
    after = fitted(parameter, wanted, lever=lever)
    assert isinstance(before, int | float)
    assert isinstance(after, int | float)
    if wanted <= before:
        assert after <= before
    if wanted >= before:
        assert after >= before


@pytest.mark.parametrize(
    ("parameter", "recommended", "lever", "value"),
    [
        (IntParameter(type="int", help="h", min=1), 0, Lever.WORKERS, 1),
        (IntParameter(type="int", help="h"), 2.9, Lever.BATCH_SIZE, 2),
        (IntParameter(type="int", help="h"), 2.1, Lever.MACHINE_SHM, 3),
        (IntParameter(type="int", help="h", max=64), 512, Lever.BATCH_SIZE, 64),
        (IntParameter(type="int", help="h"), [512, 768], Lever.RESOLUTION, 768),
        (FloatParameter(type="float", help="h", min=1e-7), 5e-5, Lever.LEARNING_RATE, 5e-5),
        (SIZES, [512, 768], Lever.RESOLUTION, "768"),
        (SIZES, 640, Lever.RESOLUTION, "512"),
        (SIZES, 256, Lever.RESOLUTION, "512"),
        (SIZES, 640, Lever.MACHINE_DISK_SIZE, "768"),
        (SIZES, 4096, Lever.MACHINE_DISK_SIZE, "1024"),
        (NAMES, "sgd", Lever.OPTIMIZER, "sgd"),
        (BoolParameter(type="bool", help="h"), True, Lever.EMA, True),
    ],
)
def test_values(parameter: Parameter, recommended: Any, lever: Lever, value: Any) -> None:
    assert fitted(parameter, recommended, lever=lever) == value


@pytest.mark.parametrize(
    ("parameter", "recommended", "why"),
    [
        (IntParameter(type="int", help="h", min=1, max=9), True, "a whole number from 1 to 9"),
        (IntParameter(type="int", help="h"), "many", "a whole number"),
        (IntParameter(type="int", help="h"), float("nan"), "a whole number"),
        (IntParameter(type="int", help="h"), [], "a whole number"),
        (IntParameter(type="int", help="h"), None, "no value"),
        (BoolParameter(type="bool", help="h"), 1, "true or false"),
        (NAMES, "adamw", "one of adam, sgd"),
        (StrParameter(type="str", help="h"), 3, "a text"),
    ],
)
def test_values_that_do_not_fit(parameter: Parameter, recommended: Any, why: str) -> None:
    with pytest.raises(DoesNotFit, match=why):
        fitted(parameter, recommended, lever=Lever.BATCH_SIZE)
