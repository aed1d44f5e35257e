import json
from types import SimpleNamespace

import pytest

from gudgeon._client.core import PAUSE, gathered
from gudgeon._client.read import SLICE, read_list
from gudgeon.errors import ProtocolError

CORE = SimpleNamespace(target_name=lambda: "shelf")


def steps_of(prompts):
    return gathered(read_list(CORE, "prompts", json.dumps(prompts).encode()))


@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 3 * SLICE])
def test_other_tasks_run_between_the_slices_of_a_list(count):
    steps = steps_of([{"name": str(it)} for it in range(count)])
    pauses = 0
    with pytest.raises(StopIteration) as end:
        while True:
            assert next(steps) is PAUSE
            pauses += 1
    assert [it.name for it in end.value.value] == [str(it) for it in range(count)]
    assert pauses == max(0, -(-count // SLICE) - 1)


def test_an_entry_of_a_later_slice_that_is_invalid_is_an_error():
    steps = steps_of([{"name": "a"}] * SLICE + [{"name": 3}])
    with pytest.raises(ProtocolError, match="prompts: the server's result is invalid"):
        while True:
            next(steps)
