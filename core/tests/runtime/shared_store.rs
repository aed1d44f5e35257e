//! Listening servers of one address that share a store: what one of them announces, the clients of all get to know.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    Client, Error, Listening, Resource, Revision, Server, Tool,
    client::{Change, ListKind, Target},
    server::{Expect, MemoryStore, Store},
    store::BoxFuture,
};

use crate::support::memory;

const ABOUT: &str = "shelf://about";

fn server(store: &Arc<dyn Store>) -> Server {
    Server::new("shelf")
        .options(|options| {
            options.store = Some(Arc::clone(store));
            options.request_state_keys = vec![vec![7; 32]];
        })
        .tool("add", || async { 1 })
        .add(Resource::new(ABOUT, || async { Ok("two books") }))
}

async fn connect(listening: &Listening, revision: Revision) -> Client {
    Client::builder(Target::url(listening.url()).unwrap())
        .options(|options| options.revisions = vec![revision])
        .connect()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_change_that_one_server_announces_reaches_the_clients_of_another() {
    for revision in Revision::ALL {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (one, other) = (server(&store), server(&store));
        let [listening, _elsewhere] =
            [one.listen(memory::HTTP).await.unwrap(), other.listen(memory::HTTP).await.unwrap()];
        let client = connect(&listening, revision).await;
        let updated = Change::Updated(ABOUT.into());
        let tools = Change::List(ListKind::Tools);
        let mut changes = client.subscribe([updated.clone(), tools.clone()]).await.unwrap();
        other.registry().notify_updated(ABOUT);
        assert_eq!(changes.next().await.unwrap().unwrap(), updated, "{revision:?}");
        other.registry().add(Tool::new("more", || async { 2 })).unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), tools, "{revision:?}");
        client.close().await;
    }
}

/// A store that never replies.
struct Silent;

impl Store for Silent {
    fn get(&self, _: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
        never()
    }

    fn put(&self, _: String, _: Vec<u8>, _: Duration, _: Expect) -> BoxFuture<Option<u64>> {
        never()
    }

    fn take(&self, _: String) -> BoxFuture<Option<Vec<u8>>> {
        never()
    }
}

fn never<T: Send + 'static>() -> BoxFuture<T> {
    Box::pin(std::future::pending::<Result<T, Error>>())
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_replies_holds_up_nothing() {
    for revision in Revision::ALL {
        let store: Arc<dyn Store> = Arc::new(Silent);
        let served = server(&store);
        let listening = served.listen(memory::HTTP).await.unwrap();
        let client = connect(&listening, revision).await;
        let mut changes = client.subscribe([Change::Updated(ABOUT.into())]).await.unwrap();
        for _ in 0..10 {
            client.call_tool("add", ()).await.unwrap();
        }
        served.registry().notify_updated(ABOUT);
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Updated(ABOUT.into()));
        client.close().await;
    }
}
