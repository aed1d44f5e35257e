from _typeshed import SupportsGetItem, SupportsLenAndGetItem
from typing import Any, SupportsFloat, SupportsIndex, final

__all__ = ["Call", "Client", "Connection", "Endpoint", "Exchange", "Mailbox", "Pending", "Principal", "Read", "Registered", "Server", "Serving", "Slot", "expand", "forked", "form_problem", "portable", "shut_down", "shut_down_clients", "take_stdio", "variables"]

@final
class Call:
    """
    The circumstances of one call.
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
    def ask(self, /, key: str, method: str, params: bytes, resolve: Any | None = None, problem: str | None = None) -> Pending | None:
        """
        Asks the client. With `resolve(result, failure)`, that is called from any thread; without, what is given back
        can be waited for. `problem`: it is asked again, because its answer was not what was wanted.
        """
    def begins_round(self, /) -> bool:
        """
        Whether the first question of a round was asked since the last time: who is told so ends it.
        """
    @property
    def cancelled(self, /) -> bool: ...
    @property
    def client_capabilities(self, /) -> str | None:
        """
        What the client declared, as JSON.
        """
    @property
    def client_info(self, /) -> str | None:
        """
        The client's `Implementation`, as JSON.
        """
    def close_stream(self, /, retry: SupportsFloat | SupportsIndex | None = None) -> None:
        """
        Lets the client come back for the answer, after so long (seconds) if given.
        """
    def end_round(self, /, blocks: bool) -> None:
        """
        All is asked that is to be asked now. `blocks`: a thread waits for the answers.
        """
    @property
    def has_room(self, /) -> bool:
        """
        Whether the peer reads fast enough for more to be sent.
        """
    @property
    def has_session(self, /) -> bool:
        """
        Whether it belongs to a session.
        """
    @property
    def headers(self, /) -> list[tuple[str, str]]:
        """
        The headers of the HTTP request: name and value, in the order in which they came.
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
    def principal(self, /) -> str | None:
        """
        Who asks, as JSON.
        """
    def progress(self, /, progress: SupportsFloat | SupportsIndex, total: SupportsFloat | SupportsIndex | None, message: str | None) -> None: ...
    @property
    def questions(self, /) -> dict:
        """
        The keys of the questions that this call has named so far.
        """
    def refusal(self, /, questions: SupportsGetItem[int, tuple[str, SupportsGetItem[int, SupportsIndex]]]) -> Any | None:
        """
        Why these questions, each a method and params as JSON, can't be asked together; None where they can.
        """
    def refuse(self, /, key: str, method: str, params: bytes, problem: str) -> Any | None:
        """
        The answer that came with this call is not what was wanted, because of this problem: it counts no more. Why the
        question can't be asked again; None where it can.
        """
    @property
    def request_id(self, /) -> Any | None:
        """
        `None` for a notification.
        """
    @property
    def revision(self, /) -> str: ...
    def run_deferred(self, /, registered: Registered, context: Any, raw: bytes, resolve: Any) -> None:
        """
        Runs the `def` handler of a registration, which middleware stands in front of, on a thread of the pool, in this
        `contextvars.Context`; `resolve(reply, error)` is called there.
        """
    @property
    def session(self, /) -> dict:
        """
        A dictionary that lives as long as the session.
        """
    @property
    def session_id(self, /) -> str | None:
        """
        The id of the session over HTTP.
        """
    @property
    def state(self, /) -> dict:
        """
        A dictionary that lives as long as this call.
        """
    def step_before(self, /, key: str) -> bytes | None:
        """
        What a step gave in an earlier run, as JSON.
        """
    def step_done(self, /, key: str, gave: bytes) -> None:
        """
        A step is done and gave this: JSON.
        """
    @property
    def steps(self, /) -> dict:
        """
        What the steps of this call came to so far, by their keys.
        """
    @property
    def turn(self, /) -> int:
        """
        Counts the requests that this call went on for: what is known of the request is true for one of them.
        """

@final
class Client:
    """
    One client. It does nothing before `connect`.
    """
    def __new__(cls, /, options: bytes) -> Client: ...
    def answer(self, /, number: SupportsIndex, result: bytes) -> None:
        """
        The answer to a question of the server's, as on the wire.
        """
    def await_change(self, /, mailbox: Mailbox, subscription: SupportsIndex) -> int:
        """
        Waits until there is a change to take, or the end. The ticket.
        """
    def call(self, /, mailbox: Mailbox, order: bytes, how: bytes | None = None, wants_progress: bool = False) -> int:
        """
        Starts one thing, as JSON, and how to do it. The ticket.
        """
    def cancel(self, /, mailbox: Mailbox, ticket: SupportsIndex) -> None:
        """
        Nobody waits for this ticket any more: the server is told, nothing more arrives.
        """
    def close(self, /, mailbox: Mailbox) -> int:
        """
        Ends the connection. The ticket.
        """
    def connect(self, /, mailbox: Mailbox, place: bytes, stream: SupportsIndex | None = None) -> int:
        """
        Reaches the server. `stream` is one end of a pair of sockets, which is duplicated. The ticket.
        """
    def move_to(self, /, mailbox: Mailbox) -> None:
        """
        What is for nobody in particular goes there from now on.
        """
    def notify(self, /, method: str, params: bytes) -> None: ...
    @property
    def number(self, /) -> int:
        """
        Its number in letters that are for nobody in particular.
        """
    def refuse(self, /, number: SupportsIndex, why: bytes) -> None:
        """
        Why a question is not answered, as JSON.
        """
    def session_id(self, /) -> str | None:
        """
        The session's id, where there is one: legacy HTTP only.
        """
    def set_roots(self, /, roots: bytes) -> bytes | None:
        """
        Why they can't be set, as JSON.
        """
    def subscribe(self, /, mailbox: Mailbox, filter: bytes, may_have_missed: bool = False) -> int:
        """
        Subscribes to what the filter names, as on the wire. The ticket, which names the subscription from then on.
        """
    def take_change(self, /, subscription: SupportsIndex) -> Any | None:
        """
        `(kind, uri)`, or `("failed", error)`, or `("end", None)`; None where there is nothing yet.
        """
    def unsubscribe(self, /, subscription: SupportsIndex) -> None: ...

@final
class Connection:
    """
    One connection that carries messages both ways.
    """
    def hang_up(self, /) -> None:
        """
        The peer is gone.
        """
    @property
    def is_full(self, /) -> bool:
        """
        Whether so much is unanswered or unsent that no more messages should be taken.
        """
    def message(self, /, message: bytes) -> None:
        """
        A message came.
        """
    def take(self, /) -> list:
        """
        The messages to be sent since; None where the connection is to be closed.
        """
    def too_long(self, /, limit: SupportsIndex) -> None:
        """
        A message over the limit, in bytes, was thrown away.
        """
    def wait(self, /, future: Any) -> bool:
        """
        Has this future resolved when there is more to be sent; `false` when there is already.
        """
    def wait_for_room(self, /, future: Any) -> bool:
        """
        Has this future resolved when there may be room for more messages; `false` where there is.
        """

@final
class Endpoint:
    """
    Peers that come by way of an event loop. Their sessions outlive the loop.
    """
    def admit(self, /, path: bytes, query: bytes, headers: Any, via_loopback: bool) -> Any | None:
        """
        Whether a request may become a WebSocket: `None`, or the answer to it.
        """
    def alarm(self, /) -> float | None:
        """
        Seconds until `tick` is to be called, where that changed.
        """
    def close(self, /) -> None:
        """
        Gives up everything.
        """
    def collect(self, /) -> list[Any]:
        """
        The futures of those whose wait is over.
        """
    def connect(self, /, principal: Principal | None = None) -> Connection:
        """
        Opens a connection that carries messages both ways. `principal`: who is at the other end.
        """
    def end_streams(self, /) -> None:
        """
        Ends streams that only tell of changes; all else goes on.
        """
    def fileno(self, /) -> int:
        """
        Readable when `collect` or `tick` has something to do.
        """
    @property
    def max_body(self, /) -> int:
        """
        The longest body that is taken, in bytes.
        """
    @property
    def open_exchanges(self, /) -> int:
        """
        Answers that are not complete.
        """
    def request(self, /, method: str, path: bytes, query: bytes, headers: Any, via_loopback: bool, body: bytes, principal: Principal | None) -> Exchange:
        """
        A request, whole. `via_loopback`: whether it came over this machine's own interface. `principal`: who asks.
        """
    def serve(self, /, of: Server, app: Any, context: Any) -> Serving:
        """
        Starts threads for handlers. There is one such at a time: stop it before the next.
        """
    def shut_down(self, /) -> None:
        """
        Takes nothing new and ends subscriptions; what is in flight goes on.
        """
    def tick(self, /) -> None:
        """
        What is due is done.
        """
    def too_large(self, /, method: str, path: bytes, query: bytes, headers: Any, via_loopback: bool) -> Any:
        """
        The answer to a request whose body is too long to be taken.
        """
    def unidentified(self, /, method: str, path: bytes, query: bytes, headers: Any, via_loopback: bool) -> Any:
        """
        The answer to a request of which finding out who asks failed.
        """

@final
class Exchange:
    """
    One request and its answer. Dropped before it is complete, it is given up.
    """
    def give_up(self, /) -> None:
        """
        The peer has left.
        """
    def take(self, /) -> list:
        """
        What came of the answer since: `(status, headers, body, more)` first, then bytes, and None where it ends.
        """
    def wait(self, /, future: Any) -> bool:
        """
        Has this future resolved when more has come; `false` when it has already.
        """

@final
class Mailbox:
    """
    Where letters are kept until they are taken.
    """
    def __new__(cls, /) -> Mailbox: ...
    def fileno(self, /) -> int:
        """
        Readable when there is something to take.
        """
    def take(self, /) -> list[Any]:
        """
        All that has arrived.
        """
    def wait(self, /, ticket: SupportsIndex, timeout: SupportsFloat | SupportsIndex | None = None) -> list[Any]:
        """
        Blocks until something has arrived for this ticket, or for a client as a whole, or the time (seconds) is over;
        signals are handled meanwhile.
        """

@final
class Pending:
    """
    An answer that a `def` handler waits for.
    """
    def wait(self, /) -> tuple:
        """
        Blocks until it is here: `(result, failure)`. Whoever leads hands the lead on first.
        """

@final
class Principal:
    """
    Who asks, as the core knows it.
    """
    def __new__(cls, /, said: bytes) -> Principal:
        """
        `said` is JSON.
        """

@final
class Read:
    """
    What becomes of the reply of a resource that another handler reads.
    """
    def contents(self, /, reply: Any) -> str: ...

@final
class Registered:
    """
    The handler of one registration, for who registered it.
    """
    @property
    def warnings(self, /) -> list[str]:
        """
        What known hosts will not take of it.
        """
    def wrap(self, /, invoke: Any) -> None:
        """
        From now on this async function runs in the handler's place. The first wrapper stays.
        """

@final
class Server:
    """
    The components of one server. A change makes the next snapshot and tells every stream.
    """
    def __new__(cls, /, facts: bytes) -> Server:
        """
        `facts`: what the server says of itself, as JSON.
        """
    def add(self, /, kind: str, spec: bytes, invoke: Any, is_async: bool, expose: Any, thread: bool | None) -> Registered: ...
    def add_completion(self, /, target: str, argument: str, invoke: Any, is_async: bool, expose: Any) -> Registered: ...
    def add_method(self, /, name: str, params: str, invoke: Any, is_async: bool, expose: Any) -> Registered:
        """
        `params` is the JSON Schema that they are checked against.
        """
    def add_notification(self, /, name: str, invoke: Any, is_async: bool, expose: Any) -> Registered: ...
    def check_middleware(self, /, methods: SupportsGetItem[int, str]) -> None:
        """
        Refuses names for which middleware would never run.
        """
    def endpoint(self, /, options: bytes) -> Endpoint:
        """
        An endpoint whose bytes an event loop moves, at any path. `options`: those of HTTP, as JSON.
        """
    def find_resource(self, /, uri: str) -> tuple[Any, bool, str, Read] | None:
        """
        Who reads this URI: `(invoke, is_async, raw, finish)`; `finish(reply)` gives the contents as JSON. `None` where
        nobody does.
        """
    def get(self, /, kind: str, key: str) -> str | None:
        """
        What clients see of one component, as JSON; `None` where it is not registered.
        """
    @property
    def handler_threads(self, /) -> int:
        """
        Threads that handlers may hold at once, those that wait for their clients included.
        """
    @property
    def has_async(self, /) -> bool:
        """
        Whether a handler needs an event loop.
        """
    @property
    def has_state_keys(self, /) -> bool:
        """
        Whether other processes can open what this one seals: it was given keys.
        """
    def keys(self, /, kind: str) -> list[str]: ...
    def listen(self, /, at: str, options: bytes, app: Any, context: Any, *, shares_port: bool = False) -> Serving:
        """
        Listens at an address, and serves whoever connects. `options`: those of HTTP, as JSON. `shares_port`: other
        processes listen there too.
        """
    def page_done(self, /, page: str) -> None:
        """
        Tells clients that what this id sent somebody to is finished.
        """
    def remove(self, /, kind: str, key: str) -> None: ...
    def serve(self, /, fd_in: SupportsIndex, fd_out: SupportsIndex, app: Any, context: Any, testing: TestServing | None = None) -> Serving:
        """
        Serves one stream of frames. The descriptors are duplicated; the caller keeps its own.
        """
    def set_enabled(self, /, kind: str, keys: SupportsGetItem[int, str], tags: SupportsGetItem[int, str], enabled: bool) -> None: ...
    def set_middleware(self, /, invoke: Any, methods: SupportsGetItem[int, str], expose: Any) -> None:
        """
        From now on requests with these methods (`*`: all) that no handler answers are given to this async function
        first: `invoke(raw, call)` → a coroutine of the reply; None leaves the answer as it is.
        """
    def set_visibility_filter(self, /, invoke: Any) -> None:
        """
        From now on this function tells who sees what: `invoke(raw, call)` → a list of booleans as JSON, for what the
        core's doubts ask.
        """
    def update(self, /, kind: str, key: str, changes: bytes) -> None:
        """
        `changes`: new values by their JSON names; null takes a member away.
        """
    def updated(self, /, uri: str) -> None:
        """
        Tells subscribers that this resource has changed.
        """

@final
class Serving:
    """
    One stream of frames being served.
    """
    def attach(self, /, spawn: Any, flush_soon: Any, settle_soon: Any) -> None:
        """
        From now on `async def` handlers run on this loop: `spawn(coroutine)` starts one, `flush_soon()` and
        `settle_soon()` have `flush` and `settle` called at the end of the loop's turn.
        """
    def cancel(self, /) -> None:
        """
        Gives up all that is in flight: handlers are cancelled, nothing is answered any more.
        """
    def clear(self, /) -> None: ...
    def detach(self, /) -> None: ...
    def drain(self, /) -> None: ...
    def end(self, /) -> None:
        """
        Takes nothing more; what is in flight goes on.
        """
    @property
    def ended(self, /) -> bool:
        """
        Whether nothing more is read: the input has ended, the peer is gone, or `end` was called.
        """
    def fileno(self, /) -> int:
        """
        Readable when one of the three above may have changed; `clear` it before looking.
        """
    def flush(self, /) -> None: ...
    @property
    def in_flight(self, /) -> int:
        """
        Requests that were read and not yet answered.
        """
    def lane_fileno(self, /) -> int:
        """
        Readable when `drain` has something to do.
        """
    @property
    def max_message(self, /) -> int:
        """
        The longest message that is taken, in bytes.
        """
    def settle(self, /) -> None: ...
    def stop(self, /, timeout: SupportsFloat | SupportsIndex) -> bool:
        """
        Writes what is queued and lets the threads go; whether all are gone in time (seconds).
        """
    def tasks(self, /) -> list[Any]:
        """
        The tasks of handlers under way.
        """
    @property
    def url(self, /) -> str | None:
        """
        Where it listens.
        """
    def wait(self, /, timeout: SupportsFloat | SupportsIndex | None = None, other: SupportsIndex | None = None) -> None:
        """
        Blocks until `fileno()` or `other` is readable, or a signal came.
        """
    @property
    def wants_loop(self, /) -> bool:
        """
        Whether a handler waits for an event loop that is not there.
        """
    @property
    def warning(self, /) -> str | None:
        """
        What whoever runs the server should know of its address.
        """

@final
class Slot:
    """
    Where the answer of an `async def` handler goes: exactly one, also when its coroutine is dropped without a word.
    """
    def fail(self, /, error: Any) -> None: ...
    def reply(self, /, result: Any) -> None: ...

@final
class TestServing:
    """
    How a test's connection is served: with replay or without, and with which principal and headers in every call.
    """
    def __new__(cls, /, *, replays: bool, state_key: SupportsLenAndGetItem[SupportsIndex], principal: Principal | None, headers: SupportsGetItem[int, tuple[str, str]]) -> TestServing:
        """
        `state_key` seals request states where the server has no keys of its own.
        """

def expand(template: str, variables: bytes) -> str:
    """
    The URI that a template gives with these variables (a JSON object).
    """

def forked() -> None:
    """
    This process was forked.
    """

def form_problem(name: str, schema: str) -> str | None:
    """
    Why no form can ask by this JSON Schema, and the mend; `None` when one can. `name` is what the user is to read, or the
    type that is asked for.
    """

def portable(schema: bytes) -> str:
    """
    A schema as every host reads it, as JSON: references written out, `null` kept simple.
    """

def shut_down(timeout: SupportsFloat | SupportsIndex) -> bool:
    """
    Stops every stream, before the interpreter is finalised; whether all threads have left it in time (seconds).
    """

def shut_down_clients(timeout: SupportsFloat | SupportsIndex) -> None:
    """
    Closes what is still open and ends the thread; takes about as long as it may (seconds) at most.
    """

def take_stdio() -> tuple[int, int]:
    """
    Takes standard input and output for the protocol: prints go to standard error from now on. The descriptors.
    """

def variables(template: str) -> list[str]:
    """
    The names of a template's variables.
    """
