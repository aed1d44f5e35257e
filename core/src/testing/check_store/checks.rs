//! The checks of logs, leases and messages.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    time::{sleep, timeout},
};

use super::{LONG, PAUSE, RACERS, SHORT, broken, run};
use crate::{
    clock,
    error::Error,
    store::{Expect, StoreEngine, StoreEvent, StoreOperation, StoreReply, StoreSubscription},
};

/// The number of messages on each topic.
const MESSAGES: u8 = 20;

/// A store that is checked.
pub(super) struct Checks<'a> {
    pub(super) store: &'a dyn StoreEngine,
    /// The beginning of all names.
    pub(super) prefix: &'a str,
    pub(super) limit: Duration,
}

impl Checks<'_> {
    pub(super) async fn delete(&self) -> Result<(), Error> {
        let key = self.name("deleted");
        let delete = || StoreOperation::Delete { key: key.clone() };
        let put = StoreOperation::Put {
            key: key.clone(),
            value: b"1".into(),
            ttl: LONG,
            expect: Expect::Absent,
        };
        let rule = "delete must remove a value, if there is one";
        self.require(rule, delete(), |reply| *reply == StoreReply::Deleted).await?;
        self.require("put must store a value", put, |reply| matches!(reply, StoreReply::Stored(_)))
            .await?;
        self.require(rule, delete(), |reply| *reply == StoreReply::Deleted).await?;
        let get = StoreOperation::Get { key: key.clone() };
        self.require(rule, get, |reply| *reply == StoreReply::Found(None)).await?;
        Ok(())
    }

    pub(super) async fn logs(&self) -> Result<(), Error> {
        let read = |log: &str, after| StoreOperation::Read { log: self.name(log), after };
        let nothing = StoreReply::Events(Vec::new());
        let rule =
            "read of an unknown log must return no events after 0, and miss some after others";
        self.require(rule, read("log", 0), |reply| *reply == nothing).await?;
        self.require(rule, read("log", 1), |reply| *reply == StoreReply::Gone).await?;
        let first = self.append("log", b"", 3, LONG, 0).await?;
        let second = self.append("log", &[0, 0xff], 3, LONG, first).await?;
        let rule = "read must return the events after a number, in their order";
        let both = StoreReply::Events(vec![(first, Vec::new()), (second, vec![0, 0xff])]);
        self.require(rule, read("log", 0), |reply| *reply == both).await?;
        let newer = StoreReply::Events(vec![(second, vec![0, 0xff])]);
        self.require(rule, read("log", first), |reply| *reply == newer).await?;
        self.require(rule, read("log", second), |reply| *reply == nothing).await?;
        let rule = "read after a number that no event has must miss events";
        let unknown = read("log", second + 1_000);
        self.require(rule, unknown, |reply| *reply == StoreReply::Gone).await?;
        let third = self.append("log", b"3", 3, LONG, second).await?;
        let fourth = self.append("log", b"4", 3, LONG, third).await?;
        let rule =
            "append must remove the oldest events above max_events, and read tell that it did";
        self.require(rule, read("log", 0), |reply| *reply == StoreReply::Gone).await?;
        let left = StoreReply::Events(vec![
            (second, vec![0, 0xff]),
            (third, b"3".into()),
            (fourth, b"4".into()),
        ]);
        self.require(rule, read("log", first), |reply| *reply == left).await?;
        let long = |length| StoreOperation::Append {
            log: self.name("log"),
            event: vec![b'5'; length],
            max_events: 3,
            max_bytes: 100,
            ttl: LONG,
        };
        let rule = "append must fail if the event is longer than max_bytes";
        self.require(rule, long(101), |reply| matches!(reply, StoreReply::Failed(_))).await?;
        let rule = "append must remove the oldest events above max_bytes";
        let fits = |reply: &StoreReply| matches!(reply, StoreReply::Appended(_));
        let fifth = self.require(rule, long(100), fits).await?;
        let StoreReply::Appended(fifth) = fifth else { return Ok(()) };
        let left = StoreReply::Events(vec![(fifth, vec![b'5'; 100])]);
        self.require(rule, read("log", fourth), |reply| *reply == left).await?;
        self.require(rule, read("log", third), |reply| *reply == StoreReply::Gone).await?;

        let old = self.append("short", b"1", 9, SHORT, 0).await?;
        self.wait("a log must end with its ttl", || read("short", old), &StoreReply::Gone).await?;
        let new = self.append("short", b"2", 9, LONG, old).await?;
        let rule = "a log must not continue one that has ended";
        let only = StoreReply::Events(vec![(new, b"2".into())]);
        self.require(rule, read("short", 0), |reply| *reply == only).await?;
        self.require(rule, read("short", old), |reply| *reply == StoreReply::Gone).await?;

        let event = StoreOperation::Append {
            log: self.name("race"),
            event: b"1".into(),
            max_events: 100,
            max_bytes: 1_000,
            ttl: SHORT,
        };
        let mut appended = run(self.store, &event, RACERS, self.limit).await;
        appended.sort_by_key(|reply| match reply {
            StoreReply::Appended(number) => *number,
            _ => 0,
        });
        let rule = "several append at once must each add an event";
        let numbered = |reply: &StoreReply| match reply {
            StoreReply::Appended(number) => Some((*number, b"1".to_vec())),
            _ => None,
        };
        let Some(events) = appended.iter().map(numbered).collect::<Option<Vec<_>>>() else {
            return Err(broken(rule, "append", &appended));
        };
        let all = StoreReply::Events(events);
        self.require(rule, read("race", 0), |reply| *reply == all).await?;
        // So that they end soon.
        self.append("log", b"6", 3, SHORT, fifth).await?;
        self.append("short", b"3", 9, SHORT, new).await?;
        Ok(())
    }

    /// Adds an event whose number must be greater than another.
    async fn append(
        &self,
        log: &str,
        event: &[u8],
        max_events: u64,
        ttl: Duration,
        above: u64,
    ) -> Result<u64, Error> {
        let log = self.name(log);
        let event = event.to_vec();
        let operation = StoreOperation::Append { log, event, max_events, max_bytes: 1_000, ttl };
        let rule =
            "append must return a number from 1 that is greater than each earlier one of the log";
        let is_greater =
            |reply: &StoreReply| matches!(reply, StoreReply::Appended(number) if *number > above);
        match self.require(rule, operation, is_greater).await? {
            StoreReply::Appended(number) => Ok(number),
            _ => Ok(0),
        }
    }

    pub(super) async fn leases(&self) -> Result<(), Error> {
        let names = |key: &str, owner: &str| (self.name(key), owner.to_owned());
        let lease = |key, owner, ttl| {
            let (key, owner) = names(key, owner);
            StoreOperation::Lease { key, owner, ttl }
        };
        let renew = |key, owner, ttl| {
            let (key, owner) = names(key, owner);
            StoreOperation::Renew { key, owner, ttl }
        };
        let release = |key, owner| {
            let (key, owner) = names(key, owner);
            StoreOperation::Release { key, owner }
        };
        let rule = "renew must be refused if the owner does not have the lease";
        let held = |reply: &StoreReply| *reply == StoreReply::Held;
        let released = |reply: &StoreReply| *reply == StoreReply::Released;
        self.require(rule, renew("lease", "one", LONG), held).await?;
        let first = self.leased(lease("lease", "one", LONG), None).await?;
        self.require(rule, renew("lease", "two", LONG), held).await?;
        let rule = "a lease must have one owner";
        self.require(rule, lease("lease", "two", LONG), held).await?;
        let rule = "release must end a lease only for its owner";
        self.require(rule, release("lease", "two"), released).await?;
        self.require(rule, lease("lease", "two", LONG), held).await?;
        let rule = "renew must return the token of the lease";
        let same = |reply: &StoreReply| *reply == StoreReply::Leased(first);
        self.require(rule, renew("lease", "one", LONG), same).await?;
        self.require(rule, renew("lease", "one", LONG), same).await?;
        let second = self.leased(lease("lease", "one", LONG), Some(first)).await?;
        let rule = "release must end a lease for its owner";
        self.require(rule, release("lease", "one"), released).await?;
        self.require(rule, renew("lease", "one", LONG), held).await?;
        self.leased(lease("lease", "two", LONG), Some(second)).await?;
        self.require(rule, release("lease", "two"), released).await?;

        let first = self.leased(lease("short", "one", SHORT), None).await?;
        let other = || lease("short", "two", LONG);
        let begun = clock::now();
        let second = loop {
            let reply = run(self.store, &other(), 1, self.limit).await.pop();
            match reply {
                Some(StoreReply::Leased(token)) if token > first => break token,
                Some(StoreReply::Held) if clock::since(begun) <= self.limit => sleep(PAUSE).await,
                reply => {
                    let rule = "a lease must end with its ttl, and the next have a greater token";
                    return Err(broken(rule, "lease", &reply));
                }
            }
        };
        let rule = "an owner whose lease has ended must not renew or release that of another";
        self.require(rule, renew("short", "one", LONG), held).await?;
        self.require(rule, release("short", "one"), released).await?;
        let same = |reply: &StoreReply| *reply == StoreReply::Leased(second);
        self.require(rule, renew("short", "two", LONG), same).await?;
        self.require(rule, release("short", "two"), released).await?;
        Ok(())
    }

    /// Takes a lease whose token must be greater than another.
    async fn leased(&self, operation: StoreOperation, above: Option<u64>) -> Result<u64, Error> {
        let rule = "lease must return a token that is greater than each earlier one of the key";
        let is_greater = |reply: &StoreReply| match (reply, above) {
            (StoreReply::Leased(token), Some(above)) => *token > above,
            (reply, _) => matches!(reply, StoreReply::Leased(_)),
        };
        match self.require(rule, operation, is_greater).await? {
            StoreReply::Leased(token) => Ok(token),
            _ => Ok(0),
        }
    }

    /// Checks messages, if the store carries any.
    pub(super) async fn messages(&self) -> Result<(), Error> {
        let topics = || ["one", "two"].map(|topic| self.name(topic));
        let Some((subscription, mut events)) = self.subscribe(topics().to_vec()).await? else {
            return Ok(());
        };
        let publish = |topic: &str, number: u8| StoreOperation::Publish {
            topic: self.name(topic),
            message: vec![number, 0xff],
        };
        let rule = "publish must send a message";
        for number in 0..MESSAGES {
            for topic in ["one", "three", "two"] {
                let published = |reply: &StoreReply| *reply == StoreReply::Published;
                self.require(rule, publish(topic, number), published).await?;
            }
        }
        let mut received = topics().map(|topic| (topic, Vec::new()));
        while received.iter().any(|(_, messages)| messages.len() < usize::from(MESSAGES)) {
            let (topic, message) = self.next(&mut events).await?;
            let known = received.iter_mut().find(|(name, _)| *name == topic);
            let Some((_, messages)) = known else {
                let rule = "a listener must get the messages of its topics only";
                return Err(broken(rule, "subscribe", &topic));
            };
            messages.push(message);
        }
        let sent: Vec<_> = (0..MESSAGES).map(|number| vec![number, 0xff]).collect();
        if let Some((_, messages)) = received.iter().find(|(_, messages)| *messages != sent) {
            let rule = "a listener must get the messages of a topic once and in their order";
            return Err(broken(rule, "subscribe", messages));
        }
        drop(subscription);
        let Some((_subscription, mut later)) = self.subscribe(topics().to_vec()).await? else {
            return Err(broken("every subscribe must succeed", "subscribe", &()));
        };
        let published = |reply: &StoreReply| *reply == StoreReply::Published;
        self.require(rule, publish("one", MESSAGES), published).await?;
        self.next(&mut later).await?;
        while let Ok(event) = events.try_recv() {
            if event != StoreEvent::Lost {
                let rule = "a listener must get no messages after its subscription ended";
                return Err(broken(rule, "subscribe", &event));
            }
        }
        Ok(())
    }

    /// Subscribes, and waits for the connection; `None` if the store carries no messages.
    async fn subscribe(
        &self,
        topics: Vec<String>,
    ) -> Result<Option<(StoreSubscription, UnboundedReceiver<StoreEvent>)>, Error> {
        let (sender, mut events) = mpsc::unbounded_channel();
        let listener = Arc::new(move |event| drop(sender.send(event)));
        let Some(subscription) = self.store.subscribe(topics, listener) else { return Ok(None) };
        match timeout(self.limit, events.recv()).await {
            Ok(Some(StoreEvent::Lost)) => Ok(Some((subscription, events))),
            other => {
                let rule = "subscribe must first report that it is connected, and that messages may be lost";
                Err(broken(rule, "subscribe", &other.ok().flatten()))
            }
        }
    }

    async fn next(
        &self,
        events: &mut UnboundedReceiver<StoreEvent>,
    ) -> Result<(String, Vec<u8>), Error> {
        loop {
            match timeout(self.limit, events.recv()).await {
                Ok(Some(StoreEvent::Message { topic, message })) => return Ok((topic, message)),
                Ok(Some(StoreEvent::Lost)) => {}
                _ => {
                    let rule = "a listener must get every message while it is connected";
                    return Err(broken(rule, "subscribe", &"nothing"));
                }
            }
        }
    }

    async fn require(
        &self,
        rule: &str,
        operation: StoreOperation,
        is_met: impl Fn(&StoreReply) -> bool,
    ) -> Result<StoreReply, Error> {
        let reply = run(self.store, &operation, 1, self.limit).await.pop();
        match reply {
            Some(reply) if is_met(&reply) => Ok(reply),
            reply => Err(broken(rule, operation.name(), &reply)),
        }
    }

    /// Repeats an operation until it has this reply.
    async fn wait(
        &self,
        rule: &str,
        operation: impl Fn() -> StoreOperation,
        wanted: &StoreReply,
    ) -> Result<(), Error> {
        let begun = clock::now();
        loop {
            let reply = run(self.store, &operation(), 1, self.limit).await.pop();
            if reply.as_ref() == Some(wanted) {
                return Ok(());
            }
            if clock::since(begun) > self.limit {
                return Err(broken(rule, operation().name(), &reply));
            }
            sleep(PAUSE).await;
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
