"""Clients: `Client` for event loops and `SyncClient` without, two faces of one implementation."""

from . import Client as Client
from . import ClientGroup as ClientGroup
from . import Command as Command
from . import Retry as Retry
from . import Subscription as Subscription
from . import SyncClient as SyncClient
from . import SyncClientGroup as SyncClientGroup
from . import SyncSubscription as SyncSubscription
