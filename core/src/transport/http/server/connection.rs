//! The connection of an HTTP server. All servers use the same types, because hyper's code is compiled once for each.

use std::{convert::Infallible, sync::Arc};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::Service};

use super::{
    AnswerBody,
    watch::{Watch, Watched},
};
use crate::{
    driver::Boxed,
    transport::{ByteStream, http::HyperIo},
};

/// The stream of a connection, as hyper reads and writes it.
pub(crate) type Io = HyperIo<Watched<Box<dyn ByteStream>>>;

/// The future of a response.
pub(crate) type Answered = Boxed<Result<Response<AnswerBody>, Infallible>>;

/// The function that answers the requests of a connection.
pub(crate) struct Responder(Box<dyn Fn(Request<Incoming>) -> Answered + Send + Sync>);

impl Service<Request<Incoming>> for Responder {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Answered;

    fn call(&self, request: Request<Incoming>) -> Answered {
        (self.0)(request)
    }
}

/// The limits of the requests on a connection, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    /// The maximum size of a head.
    pub(crate) head: usize,
    /// The maximum size of hyper's buffer.
    pub(crate) buffer: usize,
}

/// Serves the requests on a stream. The caller polls the connection, and closes it once `watch` has expired.
pub(crate) fn serve_requests(
    stream: Box<dyn ByteStream>,
    watch: &Arc<Watch>,
    limits: HeadLimits,
    respond: impl Fn(Request<Incoming>) -> Answered + Send + Sync + 'static,
) -> http1::Connection<Io, Responder> {
    let io = HyperIo::new(Watched::new(stream, watch));
    http1::Builder::new()
        .max_buf_size(limits.buffer)
        .max_header_size(limits.head)
        .serve_connection(io, Responder(Box::new(respond)))
}
