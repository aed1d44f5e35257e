"""Stores of tokens in the system's keyring: `KeyringStore`."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring

import fake_keyring
from fake_keyring import FakeKeyring
from gudgeon.auth import KeyringStore
from gudgeon.errors import AuthError


@pytest.fixture
def system() -> Iterator[FakeKeyring]:
    with fake_keyring.used() as fake:
        yield fake


@pytest.mark.parametrize("length", [0, 1, 900, 901, 5000])
async def test_values_of_any_length_last(system: FakeKeyring, length: int) -> None:
    store, value = KeyringStore("shelf"), bytes(number % 256 for number in range(length))
    assert await store.get("a b") is None
    await store.set("a b", b"the former value" * 300)
    await store.set("a b", value)
    assert await KeyringStore("shelf").get("a b") == value
    assert await KeyringStore().get("a b") is None
    # The pieces of the former value are gone.
    assert len(system.entries) == max(1, -(-length // 900))
    assert {service for service, _ in system.entries} == {"shelf"}
    await store.delete("a b")
    await store.delete("a b")
    assert system.entries == {}


async def test_calls_of_the_keyring_do_not_run_on_the_event_loop(system: FakeKeyring) -> None:
    await KeyringStore().set("a", b"1")
    assert threading.get_ident() not in system.threads


async def test_a_value_can_be_replaced_while_it_is_read(system: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers get one value or the other, also when pieces of the former one are gone meanwhile."""
    store, values = KeyringStore(), [bytes([byte]) * 3000 for byte in range(2)]
    await store.set("a", values[0])
    former = dict(system.entries)
    await store.set("a", values[1])
    present = dict(system.entries)
    first = ("gudgeon", "a")
    # The reader has seen the former first entry.
    answers = iter([former[first]])
    read = system.get_password

    def get_password(*name: str) -> str | None:
        return (name == first and next(answers, None)) or read(*name)

    monkeypatch.setattr(system, "get_password", get_password)
    assert await store.get("a") == values[1]
    assert system.entries == present


@pytest.mark.parametrize(
    "text", ["s3cret", "2.1.id.czNjcmV0", "1.0.id.czNjcmV0", "1.1001.id.czNjcmV0", "1.1.id.s3cret!", "1.2.id.s3cret"]
)
async def test_an_entry_that_is_not_valid_is_named_and_not_shown(system: FakeKeyring, text: str) -> None:
    store = KeyringStore()
    system.entries["gudgeon", "a"] = text
    with pytest.raises(AuthError, match="the entry 'a' is not valid; delete it") as caught:
        await store.get("a")
    assert "s3cret" not in str(caught.value)
    await store.set("a", b"good")
    assert await store.get("a") == b"good"


async def test_a_value_that_is_too_long_changes_nothing(system: FakeKeyring) -> None:
    with pytest.raises(AuthError, match="too long for a keyring; use FileStore"):
        await KeyringStore().set("a", bytes(1_000_000))
    assert system.entries == {}


async def test_a_keyring_that_fails_is_reported(system: FakeKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    system.is_locked = True
    with pytest.raises(AuthError, match=r"can't be read \(KeyringLocked: locked\); unlock it, or use FileStore"):
        await KeyringStore().get("a")

    def get_password(*_: str) -> str:
        raise RuntimeError("s3cret")

    monkeypatch.setattr(system, "get_password", get_password)
    with pytest.raises(AuthError, match=r"can't be read \(RuntimeError\)"):
        await KeyringStore().get("a")


async def test_a_system_without_a_keyring_is_told_what_is_missing() -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    try:
        with pytest.raises(AuthError, match="Secret Service such as GNOME Keyring or KWallet, or use FileStore"):
            await KeyringStore().set("a", b"1")
    finally:
        keyring.set_keyring(before)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    store = KeyringStore()
    with pytest.raises(AuthError, match=r"run pip install 'gudgeon\[keyring\]', or use FileStore"):
        asyncio.run(store.get("a"))


@pytest.mark.parametrize("service", ["", 7, None])
def test_the_service_must_be_a_string(service: Any) -> None:
    with pytest.raises(TypeError, match="service must be a string"):
        KeyringStore(service)
