//! The part of a client that the tasks of the runtime share with its Python object.

use std::sync::{Arc, Mutex};

use gudgeon::{
    Client,
    bindings::{
        client_middleware::MiddlewareRuns,
        client_notice::Notice,
        client_questions::{Asked, Questions},
        client_settings::ClientSettings,
        subscriptions::OpenSubscriptions,
    },
    client::{ClientBuilder, Member},
    error::Error,
    protocol::json,
};

use crate::{
    client_calls::Calls,
    client_mailbox::{Content, Entries},
    stream::lock,
};

/// The part shared with the tasks of the runtime, which may outlive a request.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) number: u64,
    /// The client, from the first attempt to connect until it is closed.
    pub(crate) client: Mutex<Option<Arc<Member>>>,
    /// The mailbox for events that belong to no request.
    pub(crate) home: Mutex<Option<Arc<Entries>>>,
    pub(crate) calls: Calls,
    /// The requests that middleware sends.
    pub(crate) inner_calls: Calls,
    pub(crate) middleware: Arc<MiddlewareRuns>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) subscriptions: OpenSubscriptions,
}

impl Connected {
    /// Returns the client to close.
    pub(crate) fn take(&self) -> Option<Arc<Member>> {
        lock(&self.client).take()
    }

    /// Returns whether events that belong to no request arrive in this mailbox.
    pub(crate) fn lives_in(&self, home: &Arc<Entries>) -> bool {
        lock(&self.home).as_ref().is_some_and(|entries| Arc::ptr_eq(entries, home))
    }

    pub(crate) fn refuse_questions(&self) {
        self.questions.refuse_all();
    }

    /// Returns the client, if it is connected.
    pub(crate) fn connected(&self) -> Option<Client> {
        lock(&self.client).as_ref().and_then(|member| member.connected())
    }

    /// Sets the credentials of the options.
    pub(crate) fn authorize(
        self: &Arc<Self>,
        builder: ClientBuilder,
        options: &ClientSettings,
    ) -> Result<ClientBuilder, Error> {
        let shared = Arc::downgrade(self);
        self.questions.authorize(builder, options, move |asked| {
            if let Some(shared) = shared.upgrade() {
                shared.push_question(asked);
            }
        })
    }

    /// Registers the callbacks of the options, whose events arrive in the mailbox.
    pub(crate) fn listen(
        self: &Arc<Self>,
        builder: ClientBuilder,
        options: &ClientSettings,
    ) -> ClientBuilder {
        let mut builder = builder;
        let reconnects = builder.reconnects();
        let shared = Arc::downgrade(self);
        builder = self.questions.register(builder, options, move |asked| {
            if let Some(shared) = shared.upgrade() {
                shared.push_question(asked);
            }
        });
        if options.has("middleware") {
            let shared = Arc::downgrade(self);
            builder = self.middleware.register(builder, move |request| {
                let Some(shared) = shared.upgrade() else { return };
                let to = request.ticket.unwrap_or(shared.number);
                if let Some(home) = &*lock(&shared.home) {
                    let number = shared.number;
                    home.push(Some(number), to, Content::Middleware(number, request));
                }
            });
        }
        if options.has("on_log") {
            let shared = Arc::downgrade(self);
            builder = builder.on_log(move |message| {
                let Some(shared) = shared.upgrade() else { return };
                let mut out = json::ObjectWriter::with_capacity(message.data.get().len() + 64);
                out.member("level", &message.level).member("logger", &message.logger);
                out.raw("data", message.data.get());
                shared.push(Content::Log(json::raw(out.finish())));
            });
        }
        if options.has("on_list_changed") {
            let shared = Arc::downgrade(self);
            builder = builder.on_list_changed(move |list| {
                if let Some(shared) = shared.upgrade() {
                    shared.push(Content::Changed(list.as_str()));
                }
            });
        }
        let shared = Arc::downgrade(self);
        builder.on_event(move |event| {
            let notice = Notice::from_event(event, reconnects);
            if let (Some(shared), Some(notice)) = (shared.upgrade(), notice) {
                shared.push(Content::Notice(notice));
            }
        })
    }

    /// Puts an event that belongs to no request into the mailbox.
    fn push(&self, content: Content) {
        self.push_open(content);
    }

    /// Passes a question on. It is refused if the event loop that would take it is closed.
    fn push_question(&self, asked: Asked<'_>) {
        if !self.push_open(Content::from_asked(asked)) {
            self.refuse_questions();
        }
    }

    /// Returns whether the mailbox that took the event is open.
    fn push_open(&self, content: Content) -> bool {
        lock(&self.home).as_ref().is_none_or(|home| {
            home.push(Some(self.number), self.number, content);
            !home.is_closed()
        })
    }
}
