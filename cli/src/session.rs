//! The run of a command with a client: connected, interrupted by Ctrl-C, and closed.

use std::{cell::OnceCell, sync::Arc};

use gudgeon::{Client, client::ClientBuilder, protocol::ServerCapabilities};

use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    interaction::Interaction,
    target::Target,
};

/// Connects to a target and runs `work` with the client. Ctrl-C cancels the requests of `work`.
pub async fn run<T>(
    connection: &ConnectionArguments,
    interaction: &Arc<Interaction>,
    target: &Target,
    work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run_with(connection, interaction, target, |builder| builder, work).await
}

/// Like [`run`], with a change of the client before it is connected.
pub async fn run_with<T>(
    connection: &ConnectionArguments,
    interaction: &Arc<Interaction>,
    target: &Target,
    change: impl FnOnce(ClientBuilder) -> ClientBuilder,
    work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    interaction.check(target)?;
    let builder = change(interaction.attach(connection.builder(target)?));
    let client = OnceCell::new();
    let outcome = tokio::select! {
        biased;
        () = interrupted() => Err(Failure::new(FailureKind::Cancelled, "cancelled")),
        outcome = async {
            let connected = builder.connect().await?;
            work(client.get_or_init(|| connected)).await
        } => outcome,
    };
    interaction.notices.clear();
    if let Some(client) = client.get() {
        // A second Ctrl-C does not wait for the server's process.
        tokio::select! {
            () = client.close() => (),
            () = interrupted() => (),
        }
    }
    match outcome {
        Err(failure)
            if interaction.has_declined()
                && matches!(failure.kind(), FailureKind::Reported | FailureKind::Protocol) =>
        {
            Err(failure.with_kind(FailureKind::Declined))
        }
        outcome => outcome,
    }
}

/// Returns the capabilities that the server declares.
pub fn declared(client: &Client) -> ServerCapabilities {
    serde_json::from_str(client.server().capabilities.get()).unwrap_or_default()
}

/// Waits for Ctrl-C.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler Ctrl-C ends the process.
        std::future::pending::<()>().await;
    }
}
