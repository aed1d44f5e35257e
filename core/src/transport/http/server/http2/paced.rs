//! The body of a response on a stream of HTTP/2.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::super::{answer::AnswerBody, watch::Watch};

/// The bytes that hyper is given at once. It asks for more as soon as the client has room for some of these, so this is how much of a
/// complete answer a client can leave unread without a time limit.
const PIECE: usize = 16 * 1024;

/// A body that is passed on in pieces, while the watch of its stream sees how fast the client takes them.
pub(super) struct PacedBody {
    answer: AnswerBody,
    /// The part of the last chunk that is left.
    rest: Bytes,
    is_split: bool,
    /// The length of the last piece.
    given: usize,
    watch: Arc<Watch>,
}

impl PacedBody {
    pub(super) fn new(answer: AnswerBody, watch: &Arc<Watch>) -> Self {
        let watch = Arc::clone(watch);
        Self { answer, rest: Bytes::new(), is_split: false, given: 0, watch }
    }

    fn piece(&mut self) -> Bytes {
        if self.rest.len() > PIECE {
            self.is_split = true;
            return self.rest.split_to(PIECE);
        }
        let rest = std::mem::take(&mut self.rest);
        match std::mem::take(&mut self.is_split) {
            // A slice would keep the memory of the whole chunk.
            true => Bytes::copy_from_slice(&rest),
            false => rest,
        }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        let taken = std::mem::take(&mut this.given);
        if this.rest.is_empty() {
            let Poll::Ready(next) = Pin::new(&mut this.answer).poll_frame(context) else {
                this.watch.wrote(taken, taken);
                return Poll::Pending;
            };
            match next.map(|read| read.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => this.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = this.piece();
        this.given = piece.len();
        this.watch.wrote(taken + piece.len(), taken);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        self.answer
            .size_hint()
            .exact()
            .map(|more| SizeHint::with_exact(rest + more))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, time::Duration};

    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::{http::Part, transport::timeouts::Timeouts};

    const MINUTE: Duration = Duration::from_secs(60);
    const TIMEOUTS: Timeouts = Timeouts { header: MINUTE, idle: MINUTE, body: MINUTE };

    fn paced(body: &[u8]) -> PacedBody {
        let (status, headers) = (StatusCode::OK, HeaderMap::new());
        let head = Part::Head { status, headers, body: body.to_vec(), more: false };
        let watch = Watch::new(TIMEOUTS);
        watch.busy();
        PacedBody::new(AnswerBody::response(head).into_body(), &watch)
    }

    fn next(body: &mut PacedBody) -> Option<Bytes> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            Poll::Ready(None) => None,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn an_answer_arrives_whole_in_pieces_and_says_which_is_the_last() {
        for length in [1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let whole: Vec<u8> =
                (0..length).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect();
            let (mut body, mut read) = (paced(&whole), Vec::new());
            while read.len() < length {
                assert!(!body.is_end_stream());
                assert_eq!(body.size_hint().exact(), Some((length - read.len()) as u64));
                let piece = next(&mut body).expect("there is more");
                assert!(piece.len() <= PIECE);
                read.extend_from_slice(&piece);
            }
            assert!(body.is_end_stream() && read == whole, "{length}");
            assert_eq!(next(&mut body), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_limit_runs_from_a_piece_that_is_not_taken() {
        let mut body = paced(&vec![b'x'; 3 * PIECE]);
        let watch = Arc::clone(&body.watch);
        assert!(
            tokio::time::timeout(2 * MINUTE, watch.expired()).await.is_err(),
            "nothing is unread"
        );
        next(&mut body);
        next(&mut body);
        // The first piece was taken, at 1 KiB a second.
        let time = MINUTE + Duration::from_secs(16);
        let (just_before, second) =
            (time.saturating_sub(Duration::from_millis(10)), Duration::from_secs(1));
        assert!(tokio::time::timeout(just_before, watch.expired()).await.is_err());
        tokio::time::timeout(second, watch.expired()).await.expect("the client reads nothing");
    }
}
