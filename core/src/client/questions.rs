//! What a server may ask this client, and who answers; the same in every era.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use super::connection::{BoxFuture, Question};
use crate::{
    error::{Error, ErrorKind},
    protocol::{
        ClientCapabilities, ElicitationCapability, ListRootsResult, Method, Raw, Root,
        RootsCapability, SamplingCapability, json,
    },
};

/// Answers one kind of question: params in, result out, both as on the wire.
pub type Answerer = Arc<dyn Fn(Raw) -> BoxFuture<Result<Raw, Error>> + Send + Sync>;

/// The registered callbacks.
#[derive(Default)]
pub(super) struct Questions {
    pub(super) elicit: Option<Answerer>,
    pub(super) sample: Option<Answerer>,
    pub(super) roots: RwLock<Option<Roots>>,
}

/// Where the roots come from.
#[derive(Clone)]
pub(super) enum Roots {
    List(Vec<Root>),
    Callback(Answerer),
}

impl Questions {
    /// Adds what can be answered to what the user declares.
    pub(super) fn declare(&self, capabilities: &mut ClientCapabilities) {
        let empty = || Some(json::raw("{}".into()));
        if self.elicit.is_some() && capabilities.elicitation.is_none() {
            capabilities.elicitation = Some(ElicitationCapability { form: empty(), url: empty() });
        }
        if self.sample.is_some() && capabilities.sampling.is_none() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        if self.roots().is_some() && capabilities.roots.is_none() {
            capabilities.roots = Some(RootsCapability { list_changed: Some(true) });
        }
    }

    pub(super) fn set_roots(&self, roots: Vec<Root>) {
        *self.roots.write().unwrap_or_else(PoisonError::into_inner) = Some(Roots::List(roots));
    }

    pub(super) async fn answer(&self, question: Question) -> Result<Raw, Error> {
        let Question { method, params } = question;
        let answerer = match method {
            Method::ListRoots => match self.roots() {
                Some(Roots::List(roots)) => {
                    let result = ListRootsResult { roots, ..ListRootsResult::default() };
                    return Ok(json::to_raw(&result));
                }
                Some(Roots::Callback(callback)) => Some(callback),
                None => None,
            },
            Method::CreateMessage => self.sample.clone(),
            Method::Elicit => self.elicit.clone(),
            _ => None,
        };
        let Some(answerer) = answerer else {
            let message = format!(
                "the server asks {}, which this client did not declare that it can answer",
                method.as_str()
            );
            return Err(Error::new(ErrorKind::Protocol, message));
        };
        match answerer(params).await {
            // A form has words for these.
            Err(error) if method == Method::Elicit => match error.kind {
                ErrorKind::Declined => Ok(json::raw(r#"{"action":"decline"}"#.into())),
                ErrorKind::Cancelled => Ok(json::raw(r#"{"action":"cancel"}"#.into())),
                _ => Err(error),
            },
            outcome => outcome,
        }
    }

    fn roots(&self) -> Option<Roots> {
        self.roots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .finish_non_exhaustive()
    }
}
