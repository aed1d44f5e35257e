from _typeshed import Incomplete, SupportsGetItem, SupportsLenAndGetItem
from os import PathLike
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex, final

@final
class Call:
    """
    The context of one call.
    """
    def answer(self, /, key: str, method: str, params: bytes) -> bytes | None:
        """
        The answer that came with this call, as JSON; `params` is JSON.
        """
    @property
    def app(self, /) -> Any:
        """
        The Python server.
        """
    def ask(self, /, questions: SupportsGetItem[int, tuple[str, str, SupportsGetItem[int, SupportsIndex]]]) -> Questions:
        """
        Begins to ask questions together: each a key, a method and its params as JSON.
        """
    def begins_round(self, /) -> bool:
        """
        Returns `true` for the first question of a round; the caller must then end the round.
        """
    @property
    def cancelled(self, /) -> bool: ...
    @property
    def client_capabilities(self, /) -> str | None:
        """
        The capabilities that the client declared, as JSON.
        """
    @property
    def client_info(self, /) -> str | None:
        """
        The client's `Implementation`, as JSON.
        """
    def close_stream(self, /, retry: SupportsFloat | SupportsIndex | None = None) -> None:
        """
        Closes the response stream; the client reconnects for the answer, after `retry` seconds if given.
        """
    def describe_request(self, /, stage: str, method: str, named: str | None, text: str | None, after: SupportsFloat | SupportsIndex) -> tuple[str, str, dict]:
        """
        Returns the event that ready-made middleware logs: its logger, its text and its fields. `text` are the params or the error, as
        far as they are to be logged; `after` is in seconds.
        """
    def end_round(self, /, blocks: bool) -> None:
        """
        Ends a round: all current questions have been asked. `blocks`: a thread waits for the answers.
        """
    @property
    def has_room(self, /) -> bool:
        """
        Returns `true` if the peer reads fast enough for more to be sent.
        """
    @property
    def has_session(self, /) -> bool:
        """
        Returns `true` if the call belongs to a session.
        """
    @property
    def headers(self, /) -> list[tuple[str, str]]:
        """
        The headers of the HTTP request, names and values, in the order received.
        """
    @property
    def is_async(self, /) -> bool: ...
    def log(self, /, level: str, logger: str | None, data: bytes) -> None:
        """
        `data` is JSON.
        """
    @property
    def meta(self, /) -> str | None:
        """
        The request's `_meta`, as JSON.
        """
    @property
    def native_subject(self, /) -> tuple[str, str, str] | None:
        """
        The registration of the native handler that the middleware runs around: its kind, its key in the server that it belongs to
        (of a template empty), and the argument of a completion.
        """
    def next_key(self, /, method: str, step: str | None) -> str:
        """
        Returns the next generated key of a question, inside the step with this key if there is one.
        """
    def pass_on(self, /, input: bytes, resolve: Any) -> None:
        """
        Passes the call on to the native handler that the middleware runs around, with this input. `resolve(result, failure)` is
        called with one of both, as JSON; from any thread.
        """
    @property
    def principal(self, /) -> str | None:
        """
        The principal, as JSON.
        """
    def progress(self, /, progress: SupportsFloat | SupportsIndex, total: SupportsFloat | SupportsIndex | None, message: str | None) -> None: ...
    @property
    def questions(self, /) -> dict:
        """
        The generated keys of this call's questions so far.
        """
    def read_upstream(self, /, server: Server, uri: str, resolve: Any) -> bool:
        """
        Reads a resource of an upstream server of this server. Returns false if there is none with this URI; `resolve` is called as by
        `pass_on`.
        """
    def refuse(self, /, key: str, method: str, params: bytes, problem: str) -> Any | None:
        """
        Rejects the answer that came with this call because of `problem`. Returns the failure if the question can't be
        asked again; None otherwise.
        """
    @property
    def remote(self, /) -> str | None:
        """
        The address that the client calls from, if known.
        """
    @property
    def request_id(self, /) -> Any | None:
        """
        The request id; `None` for a notification.
        """
    @property
    def revision(self, /) -> str: ...
    def run_deferred(self, /, registered: Registered, context: Any, raw: bytes, resolve: Any) -> None:
        """
        Runs a `def` handler behind middleware on a thread of the pool, in this `contextvars.Context`; `resolve(reply,
        error)` is called from there.
        """
    def session(self, /) -> tuple[dict, bool, list[tuple[str, bytes | None]]]:
        """
        Returns a dictionary with the lifetime of the session, whether its values are to be removed, and its changes in the store since the
        last call: names with values as JSON, and with None the names that were removed.
        """
    @property
    def session_id(self, /) -> str | None:
        """
        The session id; HTTP only.
        """
    def span(self, /, method: str, name: str | None) -> tuple[str, dict, dict, str | None]:
        """
        Returns the span of the request for this method, of the tool or prompt `name`: its name, its attributes, the values that
        propagators read, and the `traceparent` of a span to link.
        """
    @property
    def state(self, /) -> dict:
        """
        A dictionary with the lifetime of this call.
        """
    def step_before(self, /, key: str) -> bytes | None:
        """
        The result that a step had in an earlier run, as JSON.
        """
    def step_done(self, /, key: str, gave: bytes) -> None:
        """
        Records the result of a step, as JSON.
        """
    @property
    def steps(self, /) -> dict:
        """
        The results of this call's steps so far, by key.
        """
    @property
    def turn(self, /) -> int:
        """
        The number of later requests that this handler was resumed for; values derived from a request are valid for one
        number.
        """

@final
class Client:
    """
    A client. It performs no IO before `connect`.
    """
    def __new__(cls, /, options: bytes) -> Client: ...
    def answer(self, /, number: SupportsIndex, given: bytes) -> str | None:
        """
        Answers a question of the server by the value that a callback returned, as JSON. Returns the problem of a value
        that is not an answer.
        """
    def await_change(self, /, mailbox: Mailbox, subscription: SupportsIndex) -> int:
        """
        Waits for the next event of a subscription. Returns the ticket.
        """
    def call(self, /, mailbox: Mailbox, name: str, params: bytes, call_options: bytes | None = None, wants_progress: bool = False) -> int:
        """
        Starts an operation: its name, its params, and its options. Returns the ticket.
        """
    def cancel(self, /, mailbox: Mailbox, ticket: SupportsIndex) -> None:
        """
        Cancels a request: the server is notified, and nothing more arrives for this ticket.
        """
    def close(self, /, mailbox: Mailbox) -> int:
        """
        Closes the connection. Returns the ticket.
        """
    def connect(self, /, mailbox: Mailbox, place: Place, group: str | None = None) -> int:
        """
        Connects to the server at a place; `group` is its name in a group. Returns the ticket.
        """
    def connect_stream(self, /, mailbox: Mailbox, name: str, stream: SupportsIndex, group: str | None = None) -> int:
        """
        Connects to a server in memory. `stream` is one end of a socket pair, which is duplicated; `group` is the
        server's name in a group. Returns the ticket.
        """
    def fail(self, /, group: str, why: str) -> None:
        """
        Records that the server with this name in a group can't be started, with the reason.
        """
    def identity(self, /) -> bytes | None:
        """
        Returns the server's description of itself as JSON; None if it was not reached.
        """
    def middleware_fail(self, /, run: SupportsIndex, exception: Any) -> None:
        """
        Ends a run of middleware with its exception.
        """
    def middleware_finish(self, /, run: SupportsIndex, result: bytes) -> None:
        """
        Ends a run of middleware with its result, JSON.
        """
    def middleware_next(self, /, mailbox: Mailbox, run: SupportsIndex, params: bytes, ticket: SupportsIndex | None = None) -> int:
        """
        Sends the request of a run of middleware with these params, JSON. The outcome arrives under this ticket, or else
        under a new one. Returns the ticket.
        """
    def move_to(self, /, mailbox: Mailbox) -> None:
        """
        Events that belong to no request arrive in this mailbox from now on, also those that were not taken yet.
        """
    def notify(self, /, method: str, params: bytes) -> None: ...
    @property
    def number(self, /) -> int:
        """
        The client's number in events that belong to no request.
        """
    def refuse(self, /, number: SupportsIndex, why: bytes) -> None:
        """
        Rejects a question of the server with a reason, as JSON.
        """
    def session_id(self, /) -> str | None:
        """
        The session id; legacy HTTP only.
        """
    def set_roots(self, /, roots: bytes) -> bytes | None:
        """
        Reads roots, JSON, and sets them. Returns an error as JSON if the server does not allow that.
        """
    def subscribe(self, /, mailbox: Mailbox, filter: bytes) -> int:
        """
        Subscribes to a filter, as on the wire. Returns the ticket, which identifies the subscription from then on.
        """
    def take_change(self, /, subscription: SupportsIndex) -> Any | None:
        """
        Returns `(kind, uri, None)`, `("failed", error, None)` or `("end", None, None)`; None if there is no event yet.
        """
    def unsubscribe(self, /, subscription: SupportsIndex) -> None: ...

@final
class Connection:
    """
    A connection that carries messages in both directions.
    """
    def hang_up(self, /) -> None:
        """
        Closes the connection, because the peer disconnected.
        """
    @property
    def has_expired(self, /) -> bool:
        """
        Returns `true` if the connection is to be closed because its access token has expired.
        """
    @property
    def is_full(self, /) -> bool:
        """
        Returns `true` if no more messages should be read, because too much is unanswered or unsent.
        """
    def message(self, /, message: bytes) -> None:
        """
        Processes a received message.
        """
    def take(self, /) -> list:
        """
        Returns the new messages to send; None if the connection is to be closed.
        """
    def too_long(self, /, limit: SupportsIndex, message: bytes) -> None:
        """
        Answers a message that is longer than the limit, in bytes.
        """
    def wait(self, /, future: Any) -> bool:
        """
        Resolves this future when there is more to send. Returns `false` if there is already.
        """
    def wait_for_room(self, /, future: Any) -> bool:
        """
        Resolves this future when there may be room for more messages. Returns `false` if there is room.
        """

@final
class Endpoint:
    """
    An endpoint for peers served by an event loop. Their sessions outlive the loop.
    """
    def alarm(self, /) -> float | None:
        """
        Returns the seconds until `tick` must be called; None if unchanged.
        """
    def close(self, /) -> None:
        """
        Cancels everything.
        """
    def collect(self, /) -> list[Any]:
        """
        Returns the futures to resolve.
        """
    def connect(self, /, principal: Principal | None = None, remote: str | None = None) -> Connection:
        """
        Opens a connection that carries messages in both directions, for a client at the address `remote`.
        """
    def end_streams(self, /) -> None:
        """
        Ends the streams that carry only notifications; everything else continues.
        """
    def fileno(self, /) -> int:
        """
        Readable when `collect` or `tick` has something to do.
        """
    @property
    def has_auth(self, /) -> bool:
        """
        Returns `true` if callers have to be authenticated.
        """
    def head(self, /, method: str, path: bytes, query: bytes, headers: Any, arrival: tuple[bool, SupportsIndex | None], peer: str | None, mount: tuple[SupportsGetItem[int, SupportsIndex], bool] | None = None, trace: tuple[str | None, str | None, str | None] | None = None) -> Any:
        """
        Checks the head of a request, before its body is read. `arrival`: whether it arrived on the loopback interface, and its
        port if that is known; `peer`: the address of the other side of the connection, or "unix"; `mount`: the prefix of the path
        below which the app is mounted, and whether the host is reached by https; `trace`: `traceparent`, `tracestate` and `baggage` of
        the span that is active in the host. Returns the first part of the response instead if the request is refused.
        """
    @property
    def max_body(self, /) -> int:
        """
        The maximum length of a request body, in bytes.
        """
    @property
    def open_exchanges(self, /) -> int:
        """
        The number of incomplete responses.
        """
    def probe(self, /, method: str, path: bytes, is_started: bool) -> Any | None:
        """
        Returns the response to a request for `health` or `ready`; None for a request with another path. `is_started`: the
        lifespan was entered.
        """
    def serve(self, /, of: Server, app: Any, context: Any) -> Serving:
        """
        Starts the threads for handlers. Only one set may run at a time: stop it before starting the next.
        """
    def shut_down(self, /) -> None:
        """
        Accepts no more requests and ends subscriptions; calls in flight continue.
        """
    def tick(self, /) -> None:
        """
        Handles the deadlines that have passed.
        """
    def upgrade(self, /, path: bytes, query: bytes, headers: Any, arrival: tuple[bool, SupportsIndex | None], peer: str | None, mount: tuple[SupportsGetItem[int, SupportsIndex], bool] | None = None) -> Any:
        """
        Checks the head of a request to become a WebSocket, as `head` does. Returns the response instead if it is refused.
        """

@final
class Exchange:
    """
    A request and its response. Dropping it before the response is complete cancels it.
    """
    def give_up(self, /) -> None:
        """
        Ends the exchange: its response was sent, or the peer disconnected, which cancels it.
        """
    def take(self, /) -> list:
        """
        Returns the new parts of the response: `(status, headers, body, more)` first, then bytes, and None at the end.
        """
    def wait(self, /, future: Any) -> bool:
        """
        Resolves this future when there are more parts. Returns `false` if there are already.
        """

@final
class FaultyLink:
    """
    Drops, repeats or delivers each message between a test's client and its server.
    """
    def __new__(cls, /, seed: SupportsIndex, drop: SupportsFloat | SupportsIndex, duplicate: SupportsFloat | SupportsIndex, restart_between_rounds: bool) -> FaultyLink: ...
    def sent_by_client(self, /, message: bytes) -> tuple[bool, list, list]:
        """
        Returns the delivery of a message of the client.
        """
    def sent_by_server(self, /, message: bytes) -> tuple[bool, list, list]:
        """
        Returns the delivery of a message of the server.
        """

@final
class Group:
    """
    The clients of a group, each of which was connected or tried to.
    """
    def __new__(cls, /, clients: SupportsGetItem[int, Client]) -> Group: ...
    def await_change(self, /, mailbox: Mailbox, subscription: SupportsIndex) -> int:
        """
        Waits for the next event of a subscription. Returns the ticket.
        """
    def call(self, /, mailbox: Mailbox, what: str, params: SupportsGetItem[int, SupportsIndex]) -> int:
        """
        Starts an operation: its name and its params. Returns the ticket.
        """
    def cancel(self, /, mailbox: Mailbox, ticket: SupportsIndex) -> None:
        """
        Cancels an operation: nothing more arrives for this ticket.
        """
    def errors(self, /) -> list[tuple[str, bytes]]:
        """
        Returns the errors of the servers: their names, and the errors as JSON.
        """
    def find_now(self, /, name: str) -> tuple[str, str] | None:
        """
        Returns the server that the name of a tool or prompt belongs to and the name there, if it is connected and
        certain without lists.
        """
    def subscribe(self, /, mailbox: Mailbox, params: SupportsGetItem[int, SupportsIndex]) -> int:
        """
        Subscribes to `{"filter", "server"?}`. Returns the ticket, which identifies the subscription from then on.
        """
    def take_change(self, /, subscription: SupportsIndex) -> Any | None:
        """
        Returns `(kind, uri, server)` or `("end", None, None)`; None if there is no event yet.
        """
    def unsubscribe(self, /, subscription: SupportsIndex) -> None: ...

@final
class Mailbox:
    """
    Holds events until they are taken.
    """
    def __new__(cls, /) -> Mailbox: ...
    def close(self, /) -> None:
        """
        Refuses the open questions of the clients whose events arrive here, and those to come, because the event loop is
        closed. Other events wait for the mailbox that a client moves to.
        """
    def fileno(self, /) -> int:
        """
        Readable when there are events.
        """
    def take(self, /) -> list[Any]:
        """
        Returns the next outcomes of requests, and at most one other event; an empty list if nothing has arrived.
        """
    def wait(self, /, ticket: SupportsIndex) -> Any:
        """
        Blocks until there is an event for this ticket or for a client as a whole, and returns the next one; signals are
        handled in the meantime.
        """

@final
class NativeAuthorizationServer:
    """
    A server that listens on 127.0.0.1 until it is closed.
    """
    def __new__(cls, /, options: bytes) -> NativeAuthorizationServer:
        """
        `options` is JSON. Raises `ValueError` for an option that can't be used, and `OSError` for a port in use.
        """
    def browse(self, /, url: str) -> str:
        """
        Opens a URL as the user's browser does. Returns the URL to which it is redirected.
        """
    def close(self, /) -> None: ...
    def identity_token(self, /, client_id: str, subject: str | None, expires_in: SupportsFloat | SupportsIndex) -> str: ...
    @property
    def issuer(self, /) -> str: ...
    def requests(self, /) -> str:
        """
        Returns the requests so far, as JSON.
        """
    def revoke_all(self, /) -> None: ...
    def rotate_keys(self, /, keep_former: bool) -> None: ...
    def set_faults(self, /, faults: bytes) -> None:
        """
        Replaces the faults by others, from JSON.
        """
    def token(self, /, options: bytes) -> str:
        """
        Issues an access token; `options` is JSON.
        """

@final
class NativeWatchdog:
    """
    Receives the signals of a process and ends it if handlers keep it from ending by itself.
    """
    def __new__(cls, /) -> NativeWatchdog: ...
    @property
    def came(self, /) -> bool:
        """
        Returns whether a signal has arrived.
        """
    def clear(self, /) -> None: ...
    def close(self, /) -> None:
        """
        Never ends the process from now on.
        """
    def fileno(self, /) -> int:
        """
        Readable after a signal, until `clear`.
        """
    def handlers_ended(self, /) -> None:
        """
        Reports that no handler runs any more that could block the process.
        """
    def signal(self, /, number: SupportsIndex, count: SupportsIndex) -> None:
        """
        Reports a signal, in case the pipe belongs to someone else. `count` is the number of signals so far.
        """
    def signals_fileno(self, /) -> int:
        """
        The descriptor for `signal.set_wakeup_fd`.
        """

@final
class Place:
    """
    The address or the command of a server.
    """
    def __new__(cls, /, given: bytes, headers: bytes) -> Place:
        """
        Reads a URL, a command, or an entry of a host's configuration, and the headers of the client's options, as JSON.
        """
    @staticmethod
    def check_headers(headers: bytes) -> None:
        """
        Checks the headers of the client's options for any other target, which takes none.
        """
    @property
    def name(self, /) -> str:
        """
        The server's name in errors.
        """

@final
class Principal:
    """
    An authenticated principal.
    """
    def __new__(cls, /, said: bytes) -> Principal:
        """
        `said` is JSON.
        """

@final
class Questions:
    """
    Questions that a handler asks together, until it has accepted an answer to each.
    """
    @property
    def is_open(self, /) -> bool:
        """
        `True` until an outcome of each question was taken and none is rejected.
        """
    def reject(self, /, at: SupportsIndex, problem: str) -> None:
        """
        Rejects an answer because of this problem: its question is sent again.
        """
    def send(self, /, resolve: Any) -> bool:
        """
        Sends the open questions. Returns `True` if there are any: `resolve(answered)` is then called from any thread,
        with `False` if the call was cancelled or its connection closed.
        """
    def take(self, /) -> list[tuple[int, tuple]]:
        """
        Returns the new outcomes: the question's index and `(result, failure)`.
        """
    def wait(self, /) -> bool:
        """
        Sends the open questions and blocks until all are answered. If the thread leads, the lead is passed on first.
        Returns `False` if the call was cancelled or its connection closed.
        """

@final
class RateLimit:
    """
    A limit for the rate of requests.
    """
    def __new__(cls, /, per_second: SupportsFloat | SupportsIndex, burst: SupportsFloat | SupportsIndex, by: str) -> RateLimit: ...
    def admit(self, /, now: SupportsFloat | SupportsIndex, method: str, principal: str | None, client: str, remote: str | None) -> tuple[int | None, str] | None:
        """
        Counts a request of a client at the address `remote`, `now` in seconds. Returns the code and the message of its rejection, or None.
        """
    @staticmethod
    def counts(method: str) -> bool:
        """
        Returns `True` if requests of this method are counted.
        """

@final
class Read:
    """
    Converts the reply of a resource read by another handler.
    """
    def contents(self, /, reply: Any) -> str: ...

@final
class Registered:
    """
    The handler of one registration, as returned to the registering code.
    """
    @property
    def warnings(self, /) -> list[str]:
        """
        Warnings about properties that known hosts reject.
        """
    def wrap(self, /, invoke: Any) -> None:
        """
        Replaces the handler by this async function. Only the first call has an effect.
        """

@final
class RequestHead:
    """
    The head of a request that was admitted.
    """
    def authenticate(self, /, future: Any) -> bool:
        """
        Authenticates the sender. Returns `true` if `future` is resolved when that is done, `false` if it is done.
        """
    def authenticated(self, /) -> Any:
        """
        Returns the principal that was authenticated, or the response to a sender that is refused.
        """
    def received(self, /, bytes: SupportsIndex) -> Any:
        """
        Counts the bytes received of a body that is not complete. Returns the seconds within which more must come, or the
        response to a request that is refused.
        """
    @property
    def remote(self, /) -> str | None:
        """
        The address of the client, if it is known.
        """
    def request(self, /, body: bytes, principal: Principal | None) -> Exchange:
        """
        Handles the request. `principal`: the authenticated caller.
        """
    def too_large(self, /) -> Any:
        """
        Returns the response to a request whose body is too long.
        """
    def too_slow(self, /) -> Any:
        """
        Returns the response to a request whose body did not come in time.
        """
    def unauthorized(self, /, message: str, scopes: SupportsGetItem[int, str] | None) -> Any:
        """
        Returns the response to a request whose credentials are refused: 401, or 403 if `scopes` are needed.
        """
    def unidentified(self, /) -> Any:
        """
        Returns the response to a request whose principal could not be determined.
        """

@final
class ResponseLimit:
    """
    A limit for the size of results.
    """
    def __new__(cls, /, max_bytes: SupportsIndex) -> ResponseLimit: ...
    def check(self, /, method: str, subject: str | None, reply: Any) -> tuple[int | None, str] | None:
        """
        Returns the code and the message of the rejection of a handler's reply whose result is too large, or None.
        """

@final
class Server:
    """
    The registrations of one server.
    """
    def __new__(cls, /, facts: bytes) -> Server:
        """
        `facts`: the server's declaration, as JSON.
        """
    def add(self, /, kind: str, spec: bytes, invoke: Any, is_async: bool, expose: Any, thread: bool | None) -> Registered: ...
    def add_completion(self, /, target: str, argument: str, invoke: Any, is_async: bool, expose: Any) -> Registered: ...
    def add_method(self, /, name: str, params: str, invoke: Any, is_async: bool, expose: Any) -> Registered:
        """
        `params` is the JSON Schema that the params are checked against.
        """
    def add_notification(self, /, name: str, invoke: Any, is_async: bool, expose: Any) -> Registered: ...
    def add_route(self, /, method: str, path: str, needs_auth: bool, invoke: Any, is_async: bool, thread: bool | None) -> None:
        """
        Adds a route: a handler of HTTP requests with this method and path. `needs_auth`: callers are authenticated as those of the
        endpoint.
        """
    def check_middleware(self, /, methods: SupportsGetItem[int, str]) -> None:
        """
        Errors for method names for which middleware would never run.
        """
    def check_mount(self, /, inner: Server) -> None:
        """
        Raises `ValueError` for a server that can't be mounted into this one.
        """
    def check_without_routes(self, /) -> None:
        """
        Errors if there are routes, which a server inside another application does not serve.
        """
    def declare_mounted(self, /, inner: Server) -> None:
        """
        Declares the extensions of a server that is mounted into this one.
        """
    def endpoint(self, /, options: bytes) -> Endpoint:
        """
        Creates an endpoint whose IO is done by an event loop, at any path. `options`: the HTTP options, as JSON.
        """
    def find_resource(self, /, uri: str) -> tuple[Any, bool, str, Read] | None:
        """
        Returns the handler that reads this URI: `(invoke, is_async, raw, finish)`, where `finish(reply)` returns the
        contents as JSON; `None` if there is none.
        """
    def get(self, /, kind: str, key: str) -> str | None:
        """
        Returns the listed entry of a component, as JSON; `None` if it is not registered.
        """
    @property
    def handler_threads(self, /) -> int:
        """
        The maximum number of threads held by handlers, including those that wait for their clients.
        """
    @property
    def has_async(self, /) -> bool:
        """
        Returns `true` if a handler needs an event loop.
        """
    def keys(self, /, kind: str) -> list[str]: ...
    def listen(self, /, at: str, options: bytes, app: Any, context: Any, *, shares_port: bool = False, group: str | PathLike[str] | None = None) -> Serving:
        """
        Listens at an address. `options`: the HTTP options, as JSON. `shares_port`: other processes listen on the same
        port. `group`: the folder in which they find each other.
        """
    def mount_upstream(self, /, prefix: str, place: Place, options: bytes, around: Any, expose: Any, ask: Any) -> None:
        """
        Mounts the server at a place, which a client with these options, JSON, reaches. `around(raw, call)` is an async function
        that runs middleware around its calls; `ask(question)` answers what the client asks the program, on any thread.
        """
    @staticmethod
    def new_group() -> Path:
        """
        Creates a folder for the processes that are forked from this one. Raises `ValueError` if none can be made.
        """
    def page_done(self, /, page: str) -> None:
        """
        Notifies clients that the page of this elicitation is completed.
        """
    def remove(self, /, kind: str, key: str) -> None: ...
    def serve(self, /, fd_in: SupportsIndex, fd_out: SupportsIndex, app: Any, context: Any, testing: TestServing | None = None) -> Serving:
        """
        Serves one stream of frames. The descriptors are duplicated; the caller keeps its own.
        """
    def set_auth(self, /, methods: bytes, verify: Any) -> None:
        """
        Sets the methods by which callers are authenticated, as JSON. `verify` calls a function of the program:
        `verify(method, token, request)`, which returns the kind of the reply and its data. Needs the store before, if there is
        one.
        """
    def set_enabled(self, /, kind: str, keys: SupportsGetItem[int, str], tags: SupportsGetItem[int, str], enabled: bool) -> None: ...
    def set_middleware(self, /, invoke: Any, methods: SupportsGetItem[int, str], expose: Any) -> None:
        """
        Sets the middleware for these methods (`*`: all), as far as no handler answers them: an async function
        `invoke(raw, call)` → a coroutine of the reply; None leaves the answer unchanged.
        """
    def set_store(self, /, call: Any, methods: SupportsGetItem[int, str]) -> None:
        """
        Sets the store of the program: `call(operation)` returns the reply, both as JSON. `methods` are the names of those that
        the object has.
        """
    def set_store_address(self, /, address: str) -> None:
        """
        Sets the store at an address. Raises `ValueError` if there is none.
        """
    def set_visibility_filter(self, /, invoke: Any) -> None:
        """
        Sets the visibility filter: `invoke(raw)` → a list of booleans as JSON, one for each component in question.
        """
    def share_key(self, /) -> None:
        """
        Makes a key for the processes that are forked from this one, unless keys were given.
        """
    def share_store(self, /, folder: str | PathLike[str]) -> None:
        """
        Has the processes that are forked from this one share what a store has, in a file in their folder, if the server has no
        store.
        """
    def telemetry(self, /) -> Telemetry:
        """
        Begins to count metrics, and returns them for OpenTelemetry.
        """
    def update(self, /, kind: str, key: str, changes: bytes) -> None:
        """
        `changes`: new values by their JSON names; null removes a member.
        """
    def updated(self, /, uri: str) -> None:
        """
        Notifies subscribers that this resource has changed.
        """
    def wrap_upstream(self, /, prefix: str, kinds: SupportsGetItem[int, str]) -> None:
        """
        Has middleware run around these kinds of registrations of a mounted upstream server.
        """

@final
class Serving:
    """
    One stream of frames being served.
    """
    def attach(self, /, spawn: Any, flush_soon: Any, settle_soon: Any, watch: Any) -> None:
        """
        Attaches an event loop for `async def` handlers: `spawn(coroutine)` starts one, `flush_soon()` and
        `settle_soon()` schedule `flush` and `settle` for the end of the loop's iteration, `watch()` wakes the thread that
        notices handlers which block the loop.
        """
    def cancel(self, /) -> None:
        """
        Cancels everything in flight: handlers are cancelled, and nothing more is answered.
        """
    def clear(self, /) -> None: ...
    def detach(self, /) -> None: ...
    def drain(self, /) -> None: ...
    def end(self, /) -> None:
        """
        Reads nothing more; calls in flight continue.
        """
    @property
    def ended(self, /) -> bool:
        """
        Returns `true` if nothing more is read: the input has ended, the peer disconnected, or `end` was called.
        """
    def fileno(self, /) -> int:
        """
        Readable when one of the three above may have changed; call `clear` before checking.
        """
    def flush(self, /) -> None: ...
    @property
    def in_flight(self, /) -> int:
        """
        The number of unanswered requests.
        """
    def is_to_be_watched(self, /) -> bool:
        """
        Returns whether `async def` handlers run, so that the watching thread must go on; otherwise `watch()` wakes it.
        """
    @property
    def max_message(self, /) -> int:
        """
        The maximum length of a message, in bytes.
        """
    def queue_fileno(self, /) -> int:
        """
        Readable when `drain` has something to do.
        """
    def settle(self, /) -> None: ...
    def stop(self, /, timeout: SupportsFloat | SupportsIndex) -> bool:
        """
        Writes queued frames and releases the threads. Returns `true` if all have ended within this many seconds.
        """
    def tasks(self, /) -> tuple[list[Any], list[Any]]:
        """
        The tasks of running handlers, and those of cancelled ones that have not ended.
        """
    @property
    def url(self, /) -> str | None:
        """
        The address that it listens at.
        """
    def wait(self, /, timeout: SupportsFloat | SupportsIndex | None = None, other: SupportsIndex | None = None) -> None:
        """
        Blocks until `fileno()` or `other` is readable, or a signal has arrived.
        """
    @property
    def wants_loop(self, /) -> bool:
        """
        Returns `true` if a handler waits for an event loop and none is attached.
        """
    @property
    def warning(self, /) -> str | None:
        """
        A warning about the address, for the operator of the server.
        """
    def watch(self, /, watchdog: NativeWatchdog, grace: SupportsFloat | SupportsIndex) -> None:
        """
        Ends the process if handlers keep it from ending by itself, from the end of the input or the first signal on.
        `grace`: seconds for calls in flight; a server at an address has its own.
        """

@final
class Slot:
    """
    The slot for the answer of an `async def` handler: it is filled exactly once, also when the coroutine is dropped.
    """
    def fail(self, /, error: Any) -> None: ...
    def reply(self, /, result: Any) -> None: ...

@final
class StoreFeed:
    """
    Takes the messages of a subscription.
    """
    def close(self, /) -> bool:
        """
        Says that nothing more comes. Returns `True` if that is to be reported.
        """
    def connected(self, /) -> None:
        """
        Says that all messages from now on come.
        """
    def message(self, /, topic: str, message: SupportsGetItem[int, SupportsIndex]) -> None: ...

@final
class Telemetry:
    """
    The metrics of one server. They are counted from its creation on.
    """
    def durations(self, /) -> str:
        """
        Returns the durations since the last call as a JSON list: the name of the histogram, a duration in seconds, how many times
        to record it, and the attributes.
        """
    def observe(self, /, instrument: str) -> str:
        """
        Returns the values of a counter or gauge as a JSON list of pairs: the value, and its attributes.
        """

@final
class TestServing:
    """
    The options of a test's connection: replay, and the principal and headers of every call.
    """
    def __new__(cls, /, *, replays: bool, state_key: SupportsLenAndGetItem[SupportsIndex], principal: Principal | None, headers: SupportsGetItem[int, tuple[str, str]]) -> TestServing:
        """
        `state_key` seals request states where the server has no keys of its own.
        """

def change_problem(kind: str, name: str) -> str | None:
    """
    Returns the problem of a member of a component that is to be changed; None if it may be.
    """

def check_http(options: bytes) -> None:
    """
    Raises `ValueError` if the values of HTTP options, as JSON, don't fit their purpose, such as a host that matches no
    request.
    """

def check_options(taker: str, place: str, options: dict) -> None:
    """
    Checks options. `taker` is the function that takes them, and `place` begins the error.

    Raises `TypeError` for an unknown option and a value of a wrong type, and `ValueError` for a value out of range.
    """

def check_prefix(prefix: str) -> None:
    """
    Raises `ValueError` for a prefix that no name can begin with.
    """

def check_store(call: Any, methods: SupportsGetItem[int, str]) -> None:
    """
    Checks a store, whose operations `call(operation)` carries out, and whose object has these methods. Raises `AssertionError` with
    the first rule that it does not keep.
    """

def declared_options(taker: str, options: dict) -> dict:
    """
    Returns checked options as members of a declaration for the core, with durations in milliseconds.
    """

def expand(template: str, variables: bytes) -> str:
    """
    Expands a URI template with these variables (a JSON object).
    """

def flush_logs() -> None:
    """
    Passes the events that wait to `logging`; called when the interpreter exits.
    """

def forked() -> None:
    """
    Handles a fork, in the child process.
    """

def form_problem(name: str, schema: str) -> str | None:
    """
    Returns the problem and the fix if no form can have this schema; None otherwise. `name` is the message for the user,
    or the type that is asked for.
    """

def form_schema(schema: bytes, reading: str, value: bool | None) -> str:
    """
    Returns the schema of the form for a schema, as JSON. `reading` is "plain", "validated" or "typed"; `value` says
    whether an answer to a single value is required, and is None where the schema is that of the whole form.
    """

def group_file(path: str, text: bytes) -> str:
    """
    Returns the targets by name in the text of a JSON file, as JSON.
    """

def group_targets(given: Any) -> tuple[Any, str | None]:
    """
    Returns the mapping of names to targets in what a group was given, and the JSON of those that replace others of the same
    names; or the path of the file that holds it, and None.
    """

def has_null(text: bytes) -> bool:
    """
    Returns whether a JSON text contains `null`. Python's `in` takes many times as long for large texts.
    """

def instruments() -> str:
    """
    Returns the instruments as a JSON list of their `name`, `unit`, `description` and `kind`; of histograms also the `bounds`.
    """

def invalid_arguments(schema: str, arguments: bytes) -> str | None:
    """
    Returns the problem of arguments, as JSON, in the words of errors about tools; `None` if they are valid.
    """

def key_pair_for_tests() -> tuple[str, str]:
    """
    Returns a new private key for ES256, as PEM, and its public key, a JWK as JSON.
    """

def log_later(level: SupportsIndex, logger: str, message: str, fields: dict | None = None) -> None:
    """
    Has a message logged by a thread. The newest of more than a thousand that wait are dropped and counted. `level` is 30
    for a warning, 40 for an error, lower for information. `fields` are those of an event, strings and integers.
    """

def middleware_input(kind: str, params: bytes) -> str | None:
    """
    Returns the handler's input for params that middleware changed; both are JSON. None if it stays what it was.
    """

def middleware_params(kind: str, key: str, argument: str, input: bytes) -> str:
    """
    Returns the params of a request with this input of its handler; both are JSON. `key` is the name, URI or template
    under which the server has the handler, and `argument` that of a completion.
    """

def middleware_result(kind: str, mime_type: str | None, reply: Any) -> str:
    """
    Returns the complete result of a handler's reply, as JSON. The contents of a resource have no URI.
    """

def mounted_key(kind: str, prefix: str, key: str) -> str:
    """
    Returns the key of a component of this kind in the server that its server is mounted into.
    """

def name_problem(kind: str, name: str, known: SupportsGetItem[int, str], hint: str | None = None) -> str:
    """
    Returns the problem of a name that is not one of the known names, with the fix.
    """

def nothing_returned(method: str) -> str:
    """
    Returns the error of middleware that returned nothing in place of a result.
    """

def params_changed(method: str) -> str:
    """
    Returns the error of middleware that changed the params of a request which runs no handler.
    """

def portable(schema: bytes) -> str:
    """
    Returns a schema, as JSON, normalized for hosts with limited support: references expanded, nullable types
    simplified.
    """

def resolve_inside(root: str | PathLike[str], path: str) -> tuple[Path | None, str | None]:
    """
    Returns the real path of a file in the folder `root`, and None; or None and the problem for the model. Raises `OSError`
    if `root` is not a folder that can be read.
    """

def shut_down(timeout: SupportsFloat | SupportsIndex) -> bool:
    """
    Stops every stream, before the interpreter is finalized. Returns `true` if all threads have ended within this many
    seconds.
    """

def shut_down_clients(timeout: SupportsFloat | SupportsIndex) -> None:
    """
    Closes all open clients and ends the thread, within about this many seconds.
    """

def single_line(text: str) -> str:
    """
    Returns a string in which control characters are escaped, so that it stays on its line of a log.
    """

def stderr_has_room() -> bool:
    """
    Returns `true` if standard error has room for a message.
    """

def take_stdio() -> tuple[int, int]:
    """
    Reserves standard input and output for the protocol: prints go to standard error from now on. Returns the
    descriptors.
    """

def variables(template: str) -> list[str]:
    """
    Returns the names of a template's variables.
    """

def without_flags(pattern: str, flags: str) -> str | None:
    """
    Returns a pattern that matches without flags what `pattern` matches with `flags`, such as "im"; `None` where there is none.
    """

def __getattr__(name: str) -> Incomplete: ...
