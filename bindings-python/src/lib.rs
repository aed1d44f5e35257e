//! The Python binding of the core: conversion and scheduling, without protocol logic.
//!
//! Reading order: `server` holds registrations, `stream` is one stream of frames being served, `pool` the threads that
//! read it and run `def` handlers, `asyncio_queue` the queue of the event loop that runs `async def` handlers.

mod asking;
mod authorization_server;
mod call;
mod calling;
mod client;
mod client_calls;
mod client_connected;
mod client_error;
mod client_group;
mod client_mailbox;
mod client_runtime;
mod client_subscriptions;
mod components;
mod convert;
mod endpoint;
mod exchange;
mod error;
mod faulty_link;
mod feed;
mod forks;
mod handler;
mod host_requests;
mod hooks;
mod interpreter;
mod json;
mod asyncio_queue;
mod handler_run;
mod limits;
mod listening;
mod logs;
mod middleware;
mod monitor;
mod mounting;
mod options;
mod response_queue;
mod paths;
mod pin;
mod pool;
mod registration;
mod resource_read;
mod schema;
mod server;
mod serving;
mod serving_limits;
mod spans;
mod source;
mod store;
mod stream;
mod telemetry;
mod test_serving;
mod uri_templates;
mod upstreams;
mod verifier;
mod waker;
mod watchdog;

#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::{prelude::*, types::IntoPyDict};

    #[pymodule_export]
    use super::{
        asking::Questions,
        authorization_server::{NativeAuthorizationServer, key_pair_for_tests},
        call::{Call, Slot},
        client::{NativeClient, NativePlace},
        client_group::{NativeGroup, group_file, group_targets},
        client_mailbox::Mailbox,
        client_runtime::shut_down_clients,
        endpoint::{Connection, Endpoint, NativePrincipal},
        exchange::{Exchange, RequestHead},
        faulty_link::FaultyLink,
        forks::forked,
        handler::Registered,
        json::has_null,
        limits::{RateLimit, ResponseLimit},
        logs::{flush_logs, log_later, single_line, stderr_has_room},
        middleware::{
            middleware_input, middleware_params, middleware_result, nothing_returned,
            params_changed,
        },
        mounting::{check_prefix, mounted_key},
        options::{change_problem, check_http, check_options, declared_options, name_problem},
        paths::resolve_inside,
        resource_read::Read,
        schema::{form_problem, form_schema, invalid_arguments, portable, without_flags},
        server::NativeServer,
        serving::{Serving, shut_down, take_stdio},
        store::{StoreFeed, check_store},
        telemetry::{Telemetry, instruments},
        test_serving::TestServing,
        uri_templates::{expand, variables},
        watchdog::NativeWatchdog,
    };

    /// Does nothing in a sub-interpreter, which can't use the package.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if super::interpreter::check_is_main().is_err() {
            return Ok(());
        }
        gudgeon::error::Language::Python.set();
        let py = module.py();
        super::logs::install(py)?;
        py.import("atexit")?.call_method1("register", (module.getattr("flush_logs")?,))?;
        let os = py.import("os")?;
        if os.hasattr("register_at_fork")? {
            let hook = [("after_in_child", module.getattr("forked")?)].into_py_dict(py)?;
            os.call_method("register_at_fork", (), Some(&hook))?;
        }
        Ok(())
    }
}
