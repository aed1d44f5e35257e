"""Clients, blocking or not, of one server or several."""

from ._client.aio import Client
from ._client.group import ClientGroup, SyncClientGroup
from ._client.middleware import ClientRequest
from ._client.options import Retry
from ._client.subscription import Subscription, SyncSubscription
from ._client.sync import SyncClient
from ._client.targets import Command
from ._client.upstream import Upstream

__all__ = [
    "Client",
    "ClientGroup",
    "ClientRequest",
    "Command",
    "Retry",
    "Subscription",
    "SyncClient",
    "SyncClientGroup",
    "SyncSubscription",
    "Upstream",
]
