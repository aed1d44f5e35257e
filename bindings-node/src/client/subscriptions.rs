//! The events of subscriptions as JSON.

use gudgeon::{
    bindings::subscriptions::Taken,
    client::{Change, describe},
    protocol::json::ObjectWriter,
};

/// Returns `{"change": …}`, or at the end `{}` or `{"error": …}`. Only changes of a group have a `server`.
pub(super) fn to_json(taken: Taken) -> String {
    let mut out = ObjectWriter::with_capacity(64);
    match taken {
        Taken::Change(change, server) => {
            let mut entry = ObjectWriter::with_capacity(64);
            match change {
                Change::List(list) => entry.member("kind", list.as_str()),
                Change::Updated(uri) => entry.member("kind", "updated").member("uri", &uri),
            };
            if let Some(server) = server {
                entry.member("server", &server);
            }
            out.raw("change", &entry.finish());
        }
        Taken::End(Some(error)) => {
            out.raw("error", &describe(&error, &error.message));
        }
        Taken::End(None) => (),
    }
    out.finish()
}
