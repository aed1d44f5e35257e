//! The reply to a request that somebody else carries out: a store, a function of the program, or a sender of HTTP requests.

use std::fmt;

/// A reply that has a value for a request that was given up.
pub trait GivenUp {
    /// Returns the reply to a request that nobody answers.
    fn given_up() -> Self;
}

/// Takes the reply to one request, once. Dropped without one, it takes [`GivenUp::given_up`], so that nobody waits in vain.
pub struct Replier<T: GivenUp>(Option<Box<dyn FnOnce(T) + Send>>);

impl<T: GivenUp> Replier<T> {
    pub fn new(take: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Some(Box::new(take)))
    }

    pub fn send(mut self, reply: T) {
        if let Some(take) = self.0.take() {
            take(reply);
        }
    }
}

impl<T: GivenUp> Drop for Replier<T> {
    fn drop(&mut self) {
        if let Some(take) = self.0.take() {
            take(T::given_up());
        }
    }
}

impl<T: GivenUp> fmt::Debug for Replier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Replier")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    impl GivenUp for &str {
        fn given_up() -> Self {
            "given up"
        }
    }

    #[test]
    fn every_request_has_one_reply() {
        let (sender, received) = mpsc::channel();
        let replier = || {
            let sender = sender.clone();
            Replier::new(move |reply| sender.send(reply).unwrap())
        };
        replier().send("done");
        drop(replier());
        assert_eq!(received.try_recv(), Ok("done"));
        assert_eq!(received.try_recv(), Ok("given up"));
        assert!(received.try_recv().is_err());
    }
}
