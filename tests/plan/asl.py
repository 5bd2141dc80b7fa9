"""Reads state machines in the Amazon States Language, and finds what AWS would refuse or what could not work.

https://states-language.net/spec.html
https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from jsonata import Jsonata
from jsonata.jexception import JException

JSONATA, JSONPATH = "JSONata", "JSONPath"

_FLOW = {"Next", "End"}
_TRYING = {"Retry", "Catch"}
# The fields of each type of state, without those of one query language alone.
_FIELDS = {
    "Choice": {"Choices", "Default", "Assign"},
    "Fail": {"Error", "Cause"},
    "Map": {"ItemProcessor", "Iterator", "ItemSelector", "MaxConcurrency", "Label", "Assign", *_TRYING, *_FLOW},
    "Parallel": {"Branches", "Assign", *_TRYING, *_FLOW},
    "Pass": {"Assign", *_FLOW},
    "Succeed": set[str](),
    "Task": {"Resource", "Credentials", "TimeoutSeconds", "HeartbeatSeconds", "Assign", *_TRYING, *_FLOW},
    "Wait": {"Seconds", "Timestamp", "Assign", *_FLOW},
}
_OF_LANGUAGE = {
    JSONPATH: {
        "Choice": {"InputPath", "OutputPath"},
        "Fail": {"ErrorPath", "CausePath"},
        "Map": {"InputPath", "OutputPath", "ResultPath", "ResultSelector", "ItemsPath", "Parameters"},
        "Parallel": {"InputPath", "OutputPath", "ResultPath", "ResultSelector", "Parameters"},
        "Pass": {"InputPath", "OutputPath", "ResultPath", "Result", "Parameters"},
        "Succeed": {"InputPath", "OutputPath"},
        "Task": {"InputPath", "OutputPath", "ResultPath", "ResultSelector", "Parameters"}
        | {"TimeoutSecondsPath", "HeartbeatSecondsPath"},
        "Wait": {"InputPath", "OutputPath", "SecondsPath", "TimestampPath"},
    },
    JSONATA: {
        "Choice": {"Output"},
        "Fail": set[str](),
        "Map": {"Output", "Items"},
        "Parallel": {"Output", "Arguments"},
        "Pass": {"Output"},
        "Succeed": {"Output"},
        "Task": {"Output", "Arguments"},
        "Wait": {"Output"},
    },
}
_CATCHER_FIELDS = {JSONPATH: {"ResultPath"}, JSONATA: {"Output"}}
_RETRIER_FIELDS = {"ErrorEquals", "IntervalSeconds", "BackoffRate", "MaxAttempts", "MaxDelaySeconds", "JitterStrategy"}


def states_of(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All states of a machine, those within its Map and Parallel states included, with their names."""
    for name, state in machine["States"].items():
        yield name, state
        for inner in inner_machines(state):
            yield from states_of(inner)


def inner_machines(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The branches of a Parallel state, or the processor of a Map state."""
    return [*state.get("Branches", []), *(state[name] for name in ("ItemProcessor", "Iterator") if name in state)]


def next_states(state: Mapping[str, Any]) -> list[str]:
    """Where a state can lead, in the order in which that is written."""
    choices = [*state.get("Choices", []), *state.get("Catch", [])]
    return [
        *([state["Next"]] if "Next" in state else []),
        *(choice["Next"] for choice in choices),
        *([state["Default"]] if "Default" in state else []),
    ]


def evaluate(text: str, states: Mapping[str, Any]) -> Any:
    """What a JSONata text between {% and %} gives. states: what it knows as $states. Raises JException."""
    expression = Jsonata(text.removeprefix("{%").removesuffix("%}"))
    frame = expression.create_frame()
    frame.bind("states", states)
    return expression.evaluate(None, frame)


def problems(machine: Mapping[str, Any]) -> list[str]:
    """What is wrong with a state machine; empty where nothing is."""
    names = Counter(name for name, _ in states_of(machine))
    return [
        *(f"{name}: stands {count} times" for name, count in names.items() if count > 1),
        *(f"{name}: has {len(name)} characters" for name in names if len(name) > 80),
        *_machine_problems(machine, machine.get("QueryLanguage", JSONPATH)),
    ]


def _machine_problems(machine: Mapping[str, Any], language: str) -> Iterator[str]:
    """language: of the whole machine, which a state has that names none."""
    states = machine["States"]
    if machine.get("StartAt") not in states:
        yield f"starts at {machine.get('StartAt')}, which is no state"
    elif unreachable := sorted(states.keys() - _reachable(machine)):
        yield f"cannot reach {', '.join(unreachable)}"
    if not any(state.get("End") or state["Type"] in ("Succeed", "Fail") for state in states.values()):
        yield "never ends"
    for name, state in states.items():
        own = state.get("QueryLanguage", language)
        found = [
            *(
                f"leads to {next_name}, which is no state"
                for next_name in next_states(state)
                if next_name not in states
            ),
            *_flow_problems(state),
            *_field_problems(state, own),
            *_error_problems(state.get("Retry", []), "Retry"),
            *_error_problems(state.get("Catch", []), "Catch"),
            *_text_problems({key: value for key, value in state.items() if key not in _INNER}, own),
        ]
        yield from (f"{name}: {problem}" for problem in found)
        for inner in inner_machines(state):
            yield from (f"{name}: {problem}" for problem in _machine_problems(inner, language))


_INNER = ("Branches", "ItemProcessor", "Iterator")


def _reachable(machine: Mapping[str, Any]) -> set[str]:
    found, ahead = set[str](), [machine["StartAt"]]
    while ahead:
        name = ahead.pop()
        if name in machine["States"] and name not in found:
            found.add(name)
            ahead += next_states(machine["States"][name])
    return found


def _flow_problems(state: Mapping[str, Any]) -> Iterator[str]:
    ways = [name for name in ("Next", "End") if state.get(name)]
    wanted = 0 if state["Type"] in ("Choice", "Succeed", "Fail") else 1
    if len(ways) != wanted:
        yield f"has {' and '.join(ways) or 'neither Next nor End'}"


def _field_problems(state: Mapping[str, Any], language: str) -> Iterator[str]:
    kind = state["Type"]
    if kind not in _FIELDS:
        yield f"has the unknown Type {kind}"
        return
    if language not in (JSONATA, JSONPATH):
        yield f"has the unknown QueryLanguage {language}"
        return
    taken = {"Type", "Comment", "QueryLanguage"} | _FIELDS[kind] | _OF_LANGUAGE[language][kind]
    for name in state.keys() - taken:
        yield f"has {name}, which a {kind} state in {language} does not take"
    if kind == "Task" and "Resource" not in state:
        yield "has no Resource"
    for catcher in state.get("Catch", []):
        for name in catcher.keys() - {"ErrorEquals", "Next", "Comment", "Assign"} - _CATCHER_FIELDS[language]:
            yield f"has {name} in Catch, which {language} does not take"
    for retrier in state.get("Retry", []):
        for name in retrier.keys() - _RETRIER_FIELDS - {"Comment"}:
            yield f"has {name} in Retry"
    for choice in state.get("Choices", []):
        if ("Condition" in choice) != (language == JSONATA):
            yield f"has a choice that {language} does not take"


def _error_problems(handlers: list[Mapping[str, Any]], where: str) -> Iterator[str]:
    for position, handler in enumerate(handlers, start=1):
        errors = handler["ErrorEquals"]
        if not errors:
            yield f"names no error in {where}"
        if "States.ALL" in errors and (len(errors) > 1 or position < len(handlers)):
            yield f"has States.ALL in {where}, but not alone and last"
    counted = Counter(error for handler in handlers for error in handler["ErrorEquals"])
    for error, count in counted.items():
        if count > 1:
            yield f"names {error} {count} times in {where}"


def _text_problems(value: Any, language: str) -> Iterator[str]:
    """Of all texts and names within a value."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name.endswith(".$") and language == JSONATA:
                yield f"has {name}, which is JSONPath"
            yield from _text_problems(item, language)
    elif isinstance(value, list):
        for item in value:
            yield from _text_problems(item, language)
    elif isinstance(value, str) and value.startswith("{%"):
        if language != JSONATA:
            yield f"has {value}, which is JSONata"
        elif not value.endswith("%}"):
            yield f"has {value}, which does not end with %}}"
        else:
            yield from _expression_problems(value.removeprefix("{%").removesuffix("%}"))


def _expression_problems(expression: str) -> Iterator[str]:
    try:
        Jsonata(expression)
    except JException as error:
        yield f"has {expression.strip()}: {error}"
