"""Clients: `Client` for event loops and `SyncClient` without, two faces of one implementation."""

from . import (
    Client as Client,
    ClientGroup as ClientGroup,
    Command as Command,
    Retry as Retry,
    Subscription as Subscription,
    SyncClient as SyncClient,
    SyncClientGroup as SyncClientGroup,
    SyncSubscription as SyncSubscription,
)
