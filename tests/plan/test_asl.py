"""The checker of state machines finds each mistake that it is there for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.plan.asl import problems

Machine = dict[str, Any]


def sound() -> Machine:
    """A machine of both query languages with nothing wrong."""
    return {
        "StartAt": "Ask",
        "States": {
            "Ask": {
                "Type": "Task",
                "QueryLanguage": "JSONata",
                "Resource": "arn:aws:states:::lambda:invoke",
                "Arguments": {"Payload": "{% $states.input %}"},
                "Retry": [{"ErrorEquals": ["Busy"]}, {"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}],
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Failed", "Output": "{% $states.errorOutput %}"}],
                "Next": "Yes?",
            },
            "Yes?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.yes", "BooleanEquals": True, "Next": "All"}],
                "Default": "Failed",
            },
            "All": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": {"StartAt": "One", "States": {"One": {"Type": "Pass", "Result": 1, "End": True}}},
                "End": True,
            },
            "Failed": {"Type": "Fail", "Error": "No"},
        },
    }


def test_a_sound_machine_has_no_problems() -> None:
    assert problems(sound()) == []


MISTAKES: dict[str, tuple[Callable[[dict[str, Any], Machine], Any], str]] = {
    "start": (lambda states, machine: machine.update(StartAt="ask"), "starts at ask, which is no state"),
    "next": (
        lambda states, _: states["Ask"]["Catch"][0].update(Next="Gone"),
        "Ask: leads to Gone, which is no state",
    ),
    "default": (lambda states, _: states["Yes?"].update(Default="Gone"), "Yes?: leads to Gone, which is no state"),
    "unreachable": (
        lambda states, _: states.update(Alone={"Type": "Pass", "End": True}),
        "cannot reach Alone",
    ),
    "unreachable within": (
        lambda states, _: states["All"]["ItemProcessor"]["States"].update(Alone={"Type": "Succeed"}),
        "All: cannot reach Alone",
    ),
    "twice": (
        lambda states, _: states["All"].update(
            ItemProcessor={"StartAt": "Ask", "States": {"Ask": {"Type": "Succeed"}}}
        ),
        "Ask: stands 2 times",
    ),
    "endless": (
        lambda states, _: states["All"]["ItemProcessor"]["States"].update(
            One={"Type": "Pass", "Next": "One"},
        ),
        "All: never ends",
    ),
    "no way on": (lambda states, _: states["Ask"].pop("Next"), "Ask: has neither Next nor End"),
    "two ways on": (lambda states, _: states["Ask"].update(End=True), "Ask: has Next and End"),
    "end of a choice": (lambda states, _: states["Yes?"].update(End=True), "Yes?: has End"),
    "type": (lambda states, _: states["Failed"].update(Type="fail"), "Failed: has the unknown Type fail"),
    "language": (
        lambda states, _: states["Failed"].update(QueryLanguage="jsonata"),
        "Failed: has the unknown QueryLanguage jsonata",
    ),
    "timeout of a Map": (
        lambda states, _: states["All"].update(TimeoutSeconds=60),
        "All: has TimeoutSeconds, which a Map state in JSONPath does not take",
    ),
    "JSONPath in JSONata": (
        lambda states, _: states["Ask"].update(ResultPath="$.x"),
        "Ask: has ResultPath, which a Task state in JSONata does not take",
    ),
    "JSONata in JSONPath": (
        lambda states, _: states["All"].update(Output="{% 1 %}"),
        "All: has Output, which a Map state in JSONPath does not take",
    ),
    "path in JSONata": (
        lambda states, _: states["Ask"]["Arguments"].update({"Key.$": "$.key"}),
        "Ask: has Key.$, which is JSONPath",
    ),
    "text of JSONata in JSONPath": (
        lambda states, _: states["Failed"].update(Error="{% 'No' %}"),
        "Failed: has {% 'No' %}, which is JSONata",
    ),
    "text without its end": (
        lambda states, _: states["Ask"]["Arguments"].update(Payload="{% $states.input"),
        "Ask: has {% $states.input, which does not end with %}",
    ),
    "syntax": (
        lambda states, _: states["Ask"]["Arguments"].update(Payload="{% 1 + %}"),
        "Ask: has 1 +: Unexpected end of expression",
    ),
    "field of a catcher": (
        lambda states, _: states["Ask"]["Catch"][0].update(ResultPath="$.x"),
        "Ask: has ResultPath in Catch, which JSONata does not take",
    ),
    "field of a retrier": (
        lambda states, _: states["Ask"]["Retry"][0].update(Attempts=1),
        "Ask: has Attempts in Retry",
    ),
    "choice": (
        lambda states, _: states["Yes?"]["Choices"][0].update(Condition="{% true %}"),
        "Yes?: has a choice that JSONPath does not take",
    ),
    "all errors with another": (
        lambda states, _: states["Ask"]["Catch"][0].update(ErrorEquals=["No", "States.ALL"]),
        "Ask: has States.ALL in Catch, but not alone and last",
    ),
    "all errors before others": (
        lambda states, _: states["Ask"]["Retry"].reverse(),
        "Ask: has States.ALL in Retry, but not alone and last",
    ),
    "no error": (lambda states, _: states["Ask"]["Retry"][0].update(ErrorEquals=[]), "Ask: names no error in Retry"),
    "error twice": (
        lambda states, _: states["Ask"]["Retry"].insert(0, {"ErrorEquals": ["Busy"]}),
        "Ask: names Busy 2 times in Retry",
    ),
    "resource": (lambda states, _: states["Ask"].pop("Resource"), "Ask: has no Resource"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    machine = copy.deepcopy(sound())
    make, problem = MISTAKES[mistake]
    make(machine["States"], machine)
    assert problem in problems(machine)


def test_a_name_of_81_characters_is_found() -> None:
    name = "n" * 81
    assert problems({"StartAt": name, "States": {name: {"Type": "Succeed"}}}) == [f"{name}: has 81 characters"]
