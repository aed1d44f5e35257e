import json
from types import SimpleNamespace

import pytest

from gudgeon._client.core import PAUSE, gathered, paused
from gudgeon._client.read import SLICE, read_large_tool, read_list, read_tool
from gudgeon.errors import ProtocolError

CORE = SimpleNamespace(target_name=lambda: "shelf")


def steps_of(prompts):
    return gathered(read_list(CORE, "prompts", json.dumps(prompts).encode()))


@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 3 * SLICE])
def test_other_tasks_run_between_the_slices_of_a_list(count):
    steps = steps_of([{"name": str(number)} for number in range(count)])
    pauses = 0
    with pytest.raises(StopIteration) as end:
        while True:
            assert next(steps) is PAUSE
            pauses += 1
    assert [prompt.name for prompt in end.value.value] == [str(number) for number in range(count)]
    assert pauses == max(0, -(-count // SLICE) - 1)


def test_an_entry_of_a_later_slice_that_is_invalid_is_an_error():
    steps = steps_of([{"name": "a"}] * SLICE + [{"name": 3}])
    with pytest.raises(ProtocolError, match="prompts: the server's result is invalid"):
        while True:
            next(steps)


def result_of(text, count, **members):
    content = [{"type": "text", "text": text} for _ in range(count)]
    encoded = json.dumps({"content": content, **members}).encode()
    return "done", 1, encoded, None, False, None


def read_large(event):
    steps = paused(read_large_tool(CORE, "t", event))
    pauses = 0
    with pytest.raises(StopIteration) as end:
        while True:
            assert next(steps) is PAUSE
            pauses += 1
    return end.value.value, pauses


@pytest.mark.parametrize("count", [0, 1, SLICE + 1])
def test_a_large_result_is_the_same_with_pauses(count):
    event = result_of("x", count, structuredContent={"n": 1}, isError=True, _meta={"a": 1})
    result, pauses = read_large(event)
    assert result == read_tool(CORE, "t", event)
    assert pauses == count // SLICE


def test_a_large_result_without_content_is_read():
    event = "done", 1, json.dumps({"structuredContent": 1}).encode(), None, False, None
    assert read_large(event) == (read_tool(CORE, "t", event), 0)


@pytest.mark.parametrize("content", [[{"type": "text", "text": "a"}] * SLICE + [3], [[]], "x"])
def test_a_large_result_that_is_invalid_is_an_error(content):
    event = "done", 1, json.dumps({"content": content}).encode(), None, False, None
    with pytest.raises(ProtocolError, match="tool 't': the server's result is invalid"):
        list(paused(read_large_tool(CORE, "t", event)))
