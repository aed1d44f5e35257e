//! Tunnels through HTTP proxies: the method `CONNECT` (RFC 9110, 9.3.6).

use http::{Method, Request, header};

use super::ByteStream;
use crate::{
    error::Error,
    transport::{
        Url,
        http::{body::Whole, connection},
        proxy::Proxy,
    },
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
        .body(Whole::default());
    let mut request = request.map_err(|error| Error::misuse(format!("{url}: {error}")))?;
    if let Some(authorization) = proxy.authorization() {
        request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
    }
    let broken = |error: hyper::Error| proxy.incomprehensible(&error).caused_by(error);
    let (mut sender, _) = connection::open(stream, MAX_HEAD).await.map_err(broken)?;
    let response = sender.send_request(request).await.map_err(broken)?;
    if !response.status().is_success() {
        return Err(proxy.refused(&target, response.status()));
    }
    match connection::upgraded(response).await.map_err(broken)? {
        // The server waits for the first bytes of the client, so bytes before them are the proxy's.
        (stream, read) if read.is_empty() => Ok(stream),
        _ => Err(proxy.incomprehensible("its response has a body")),
    }
}
