//! The opening of a connection, up to the task that owns it.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::{mpsc, oneshot, watch};

use super::{Actor, within};
use crate::{
    client::{
        Target,
        alarm::Alarm,
        connection::{ConnectionConfig, Order},
        error_context::with_context,
        listeners::Listeners,
        message_log::MessageLog,
        target::OpenedTarget,
        wire::WireOptions,
    },
    clock,
    driver::boxed,
    error::{Error, ErrorKind},
    session::client::{ClientSession, ServerIdentity},
    transport::{child::ExitInfo, http::client::SessionId},
};

/// An open connection with its own task.
pub(in crate::client) struct Started {
    pub(in crate::client) orders: mpsc::UnboundedSender<Order>,
    pub(in crate::client) server: Arc<ServerIdentity>,
    pub(in crate::client) session_id: SessionId,
    /// True until the connection is lost or closed.
    pub(in crate::client) is_up: watch::Receiver<bool>,
}

/// Connects to the server, negotiates the revision and starts the connection's task.
pub(in crate::client) async fn start(
    target: Target,
    name: Arc<str>,
    config: ConnectionConfig,
) -> Result<Started, Error> {
    let mut options = WireOptions::new(config.max_message, &config.headers, &config.mirror)?;
    let session_id = options.session.clone();
    options.auth.clone_from(&config.auth);
    if !config.headers.is_empty() && !target.takes_headers() {
        let message =
            format!("{name} takes no headers; only HTTP and WebSocket connections have headers");
        return Err(Error::misuse(message));
    }
    options.network.clone_from(&config.network);
    let nothing = ExitInfo::default();
    if let Target::Url(url) = &target {
        let proxy = config.network.proxy_for(url);
        options.proxy =
            proxy.map_err(|error| with_context(error, &name, &nothing, "connect"))?.map(Arc::new);
    }
    let mut session = ClientSession::new(Arc::new(config.session.clone()));
    let limit = session.connecting_since(clock::now());
    let reached = within(limit, target.reach(&options)).await;
    let reached = reached.unwrap_or_else(|| Err(session.took_too_long()));
    let OpenedTarget { wire, process, reconnect } = reached
        .map_err(|error| options.explain(with_context(error, &name, &nothing, "connect")))?;
    let (sender, orders) = mpsc::unbounded_channel();
    let (opened, outcome) = oneshot::channel();
    let (up, is_up) = watch::channel(true);
    let messages = MessageLog::new(config.on_message.clone());
    let actor = Actor {
        session,
        limit,
        options,
        config,
        target: Arc::clone(&name),
        orders,
        own_orders: sender.downgrade(),
        wire: Some(wire),
        process,
        reconnect,
        exit_info: ExitInfo::default(),
        waiting: HashMap::new(),
        asks: HashMap::new(),
        listeners: Listeners::default(),
        messages,
        alarm: Alarm::default(),
        unshared: 0,
        opened: Some(opened),
        is_up: up,
    };
    tokio::spawn(boxed(actor.run()));
    let lost = || {
        Error::new(ErrorKind::Connect, format!("{name}: the connection attempt was interrupted"))
    };
    let server = outcome.await.unwrap_or_else(|_| Err(lost()))?;
    Ok(Started { orders: sender, server, session_id, is_up })
}
