//! A timer for a deadline that changes often.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// Setting a timer wakes the runtime's timer thread. This one is therefore set again only if the deadline becomes
/// earlier, and may fire without a deadline.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    set: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Waits at most until the deadline; without a deadline it may wait forever.
    pub(super) async fn ring(&mut self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            match &mut self.set {
                Some(sleep) if sleep.deadline() <= deadline => (),
                Some(sleep) => sleep.as_mut().reset(deadline),
                None => self.set = Some(Box::pin(sleep_until(deadline))),
            }
        }
        match &mut self.set {
            Some(sleep) => sleep.await,
            None => std::future::pending().await,
        }
        self.set = None;
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, task::Context, time::Duration};

    use super::*;

    /// Returns whether the alarm fires at once.
    fn rings(alarm: &mut Alarm, deadline: Option<Instant>) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(alarm.ring(deadline)).poll(&mut context).is_ready()
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_is_heard_and_a_later_one_sets_nothing() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let mut alarm = Alarm::default();
        assert!(!rings(&mut alarm, None));
        assert!(!rings(&mut alarm, Some(now + hour)));
        assert!(!rings(&mut alarm, Some(now + 2 * hour)));
        assert_eq!(alarm.set.as_ref().map(|sleep| sleep.deadline()), Some(now + hour));
        alarm.ring(Some(now)).await;
        assert!(!rings(&mut alarm, None), "it rings once");
        alarm.ring(Some(now)).await;
    }
}
