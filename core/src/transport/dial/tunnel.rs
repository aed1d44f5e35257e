//! Tunnels through HTTP proxies: the method `CONNECT` (RFC 9110, 9.3.6).

use http::{Method, Request, header};
use hyper::client::conn::http1;

use super::ByteStream;
use crate::{
    driver::boxed,
    error::Error,
    transport::{Url, http::io::HyperIo, proxy::Proxy},
};

/// The maximum size of the head of the proxy's response. The body of a refusal is not read.
const MAX_HEAD: usize = 16 * 1024;

/// Asks the proxy at the other end of `stream` to connect to `url`, and returns the stream to the server.
///
/// Only the host and port of `url` and the proxy's own credentials are sent to the proxy.
pub(super) async fn open(
    proxy: &Proxy,
    stream: Box<dyn ByteStream>,
    url: &Url,
) -> Result<Box<dyn ByteStream>, Error> {
    let target = url.host_and_port();
    let request = Request::builder()
        .method(Method::CONNECT)
        .uri(&target)
        .header(header::HOST, &target)
        .body(String::new());
    let mut request = request.map_err(|it| Error::misuse(format!("{url}: {it}")))?;
    if let Some(authorization) = proxy.authorization() {
        request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
    }
    let broken = |it: hyper::Error| proxy.incomprehensible(&it).caused_by(it);
    let mut builder = http1::Builder::new();
    let opened = builder.max_buf_size(MAX_HEAD).handshake(HyperIo(stream)).await;
    let (mut sender, connection) = opened.map_err(broken)?;
    // This task ends once the tunnel is open, the proxy has refused, or this future is dropped.
    tokio::spawn(boxed(async move {
        if let Err(error) = connection.with_upgrades().await {
            // The request on the connection gets the error as well.
            tracing::trace!(%error, "a connection to a proxy ended");
        }
    }));
    let response = sender.send_request(request).await.map_err(broken)?;
    if !response.status().is_success() {
        return Err(proxy.refused(&target, response.status()));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    let parts = upgraded.downcast::<HyperIo<Box<dyn ByteStream>>>();
    match parts {
        // The server waits for the first bytes of the client, so bytes before them are the proxy's.
        Ok(parts) if parts.read_buf.is_empty() => Ok(parts.io.0),
        _ => Err(proxy.incomprehensible("its response has a body")),
    }
}
