//! An authorization server for tests: of servers with [`HttpOptions::auth`](crate::HttpOptions::auth), and of clients that
//! sign in.
//!
//! ```
//! use std::sync::Arc;
//!
//! use gudgeon::{
//!     Client, Context, Error, Server,
//!     client::{Target, auth::OAuth},
//!     server::auth::Jwt,
//!     testing::auth::{AuthorizationServer, AuthorizationServerOptions},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let options = AuthorizationServerOptions::new(|options| options.subject = "ada".into());
//! let provider = AuthorizationServer::listen(options).await?;
//! let who = |ctx: Context| async move {
//!     Ok(ctx.principal().map(|principal| principal.subject.clone()))
//! };
//! let server = Server::new("shelf").tool("who", who).options(|options| {
//!     options.http.auth = vec![Jwt::new(|jwt| jwt.issuer = provider.issuer().into()).into()];
//! });
//! let listening = server.listen("http://127.0.0.1:0/mcp").await?;
//!
//! let browser = provider.clone();
//! let on_redirect = move |url: String| -> gudgeon::client::auth::BoxFuture<_> {
//!     let browser = browser.clone();
//!     Box::pin(async move { browser.browse(&url).await })
//! };
//! let auth = OAuth::new(|oauth| oauth.on_redirect = Some(Arc::new(on_redirect)));
//! let client = Client::builder(Target::url(listening.url())?)
//!     .options(|options| options.auth = Some(auth.into()))
//!     .connect()
//!     .await?;
//! assert_eq!(client.call_tool("who", ()).await?.text(), "ada");
//! # Ok(())
//! # }
//! ```

use crate::{auth::authorization_server, error::Error};
pub use crate::{
    auth::authorization_server::test_server::{
        AnsweredRequest, AuthFaults, AuthorizationServerOptions, Consent, Dpop, TokenFormat,
        TokenOptions,
    },
    transport::authorization_server::AuthorizationServer,
};

/// Creates a private key for ES256. Returns it as PEM, for
/// [`ClientCredentials::private_key`](crate::client::auth::ClientCredentials::private_key), and the public key as a JWK, for
/// `jwks` of a client.
pub fn generate_key() -> Result<(String, serde_json::Value), Error> {
    authorization_server::key_pair(&authorization_server::generate_key()?)
}
