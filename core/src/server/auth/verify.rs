//! Functions of the program that verify tokens.

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::{runtime::Handle, time::timeout};

use super::RequestHead;
use crate::{
    auth::{
        Secret,
        server::{
            authenticator::{TIMEOUT, VerifyReply},
            config::Verifier,
        },
    },
    protocol::Principal,
    replier::Replier,
};

/// The reason why a function refuses a request. Spec: RFC 6750, section 3.1.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum VerifyError {
    /// The token is not valid, because of this problem, which the client gets: the answer is 401.
    InvalidToken(String),
    /// The token does not have these scopes: the answer is 403, and names them.
    InsufficientScope(Vec<String>),
    /// The function failed because of this problem, which is only logged: the answer is 500.
    Failed(String),
}

type Verified = Result<Option<Principal>, VerifyError>;
pub(super) type Function = Arc<
    dyn Fn(String, Arc<RequestHead>) -> Pin<Box<dyn Future<Output = Verified> + Send>>
        + Send
        + Sync,
>;

/// The functions of a server, at the places of their methods.
pub(super) struct Functions(pub(super) Vec<Option<Function>>);

impl Verifier for Functions {
    fn verify(
        &self,
        method: usize,
        token: Secret,
        request: Arc<RequestHead>,
        reply: Replier<VerifyReply>,
    ) {
        // Without a runtime the reply is dropped, which refuses the request.
        let (Some(Some(function)), Ok(runtime)) = (self.0.get(method), Handle::try_current())
        else {
            return;
        };
        let function = Arc::clone(function);
        // A panic, also of the function itself, drops the reply.
        runtime.spawn(async move {
            let verified = async { function(token.expose().to_owned(), request).await };
            if let Ok(verified) = timeout(TIMEOUT, verified).await {
                reply.send(answer(verified));
            }
        });
    }
}

fn answer(verified: Verified) -> VerifyReply {
    match verified {
        Ok(Some(principal)) if principal.subject.is_empty() => {
            tracing::error!(
                "auth: a function that verifies tokens returned a principal whose subject is empty"
            );
            VerifyReply::Failed
        }
        Ok(Some(principal)) => VerifyReply::Principal(Box::new(principal)),
        Ok(None) => VerifyReply::Unknown,
        Err(VerifyError::InvalidToken(message)) => VerifyReply::Invalid(message),
        Err(VerifyError::InsufficientScope(scopes)) => {
            let message = format!("this needs the scopes: {}", scopes.join(" "));
            VerifyReply::InsufficientScope { scopes, message }
        }
        Err(VerifyError::Failed(problem)) => {
            tracing::error!("auth: a function that verifies tokens failed: {problem}");
            VerifyReply::Failed
        }
    }
}
