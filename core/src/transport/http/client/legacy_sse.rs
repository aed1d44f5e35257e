//! HTTP+SSE, the transport of 2024-11-05: one stream delivers all messages and names the URL to send messages to.

use std::{sync::Arc, time::Duration};

use super::{Shared, TaskReport, events, reply::Media};

/// The time limit for the server to name its endpoint for messages.
const ENDPOINT_TIME: Duration = Duration::from_secs(10);

/// Opens the stream; afterwards messages are sent to its endpoint. The error says why the server is not an HTTP+SSE
/// server.
pub(super) async fn open(shared: &Arc<Shared>) -> Result<(), String> {
    let opened = async {
        let reply = shared.get(None).await.map_err(|error| error.into_details().message)?;
        if !reply.status.is_success() || reply.media() != Media::Events {
            let status = reply.status;
            reply.discard().await;
            return Err(format!("the response to GET is HTTP {status}"));
        }
        events::endpoint(shared, reply).await
    };
    let opened = tokio::time::timeout(ENDPOINT_TIME, opened).await;
    let (address, follow) =
        opened.map_err(|_| "no endpoint event arrived in time".to_owned())??;
    let url = shared.url.join(address.trim()).map_err(|error| error.into_details().message)?;
    if !url.has_origin_of(&shared.url) {
        return Err(format!("its endpoint {url} has a different origin"));
    }
    shared.pair_with(url);
    let follower = Arc::clone(shared);
    shared.keep(async move {
        let why = follow.await;
        follower.report(TaskReport::End(why)).await;
    });
    Ok(())
}
