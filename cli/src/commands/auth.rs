//! `gudgeon auth`: signs in to servers over HTTP, and shows and removes what a sign-in stored.

use std::{
    io::{self, BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand};
use gudgeon::{
    auth::client::stored::StoredSignIn,
    client::auth::{Auth, OAuth},
    error::{Error, ErrorKind},
};
use serde_json::{Value, json};

use super::cimd;
use crate::{
    browser,
    connection::{ConnectionArguments, ConsentArguments},
    escape,
    failure::{Failure, FailureKind},
    files::read,
    output,
    target::Target,
    tokens::{SignInOptions, Tokens, stored_url},
};

/// A token that expires sooner than this is renewed before it is printed.
const MARGIN: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  gudgeon auth login https://shelf.example.com/mcp
  gudgeon auth status
  gudgeon auth logout https://shelf.example.com/mcp

Tokens are stored in a file that only you can read, ~/.local/share/gudgeon/tokens.json, or with --keyring in the system's \
keyring. Every command with the same URL uses and renews them.";

const LOGIN_EXAMPLES: &str = "\
Examples:
  gudgeon auth login https://shelf.example.com/mcp
  gudgeon auth login --headless https://shelf.example.com/mcp
  gudgeon auth login --client-id shelf-cli --scope books:read https://shelf.example.com/mcp

With --headless the URL to visit is printed, and the URL to which the browser was sent afterwards, which it need not be able \
to open, is read from standard input.";

const STATUS_EXAMPLES: &str = "\
Examples:
  gudgeon auth status
  gudgeon auth status https://shelf.example.com/mcp --json";

const LOGOUT_EXAMPLES: &str = "\
Examples:
  gudgeon auth logout https://shelf.example.com/mcp
  gudgeon auth logout --all";

const TOKEN_EXAMPLES: &str = "\
Examples:
  curl -H \"Authorization: Bearer $(gudgeon auth token https://shelf.example.com/mcp)\" …";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sign in to a server and store the tokens
    Login(Box<LoginArguments>),
    /// Show the sign-ins, without tokens
    Status(StatusArguments),
    /// Revoke and remove the tokens of a server
    Logout(LogoutArguments),
    /// Print the access token of a server, for scripts
    Token(TokenArguments),
    /// Client-id metadata documents
    Cimd(cimd::Arguments),
}

#[derive(Args, Debug)]
#[command(after_help = LOGIN_EXAMPLES)]
struct LoginArguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    /// Print the URL to visit, and read the one of the redirect from standard input
    #[arg(long)]
    headless: bool,
    /// Request this scope in addition; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The id of a client that was registered beforehand
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A file with the secret of that client
    #[arg(long, value_name = "FILE", requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    /// The only authorization server that gets the credentials of that client
    #[arg(long, value_name = "URL", requires = "client_id")]
    issuer: Option<String>,
    /// The URL of the client's metadata document
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    client_metadata_url: Option<String>,
    /// Require tokens that are bound to a key
    #[arg(long)]
    dpop: bool,
    /// Keep the tokens, and the secret of the client, in the system's keyring instead of the file
    #[arg(long)]
    keyring: bool,
    /// The port of the redirect URL on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Args, Debug)]
#[command(after_help = STATUS_EXAMPLES)]
struct StatusArguments {
    /// The server; by default all
    target: Option<String>,
    #[command(flatten)]
    consent: ConsentArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = LOGOUT_EXAMPLES)]
struct LogoutArguments {
    /// The server
    #[arg(required_unless_present = "all")]
    target: Option<String>,
    /// Remove the tokens of all servers
    #[arg(long, conflicts_with = "target")]
    all: bool,
    #[command(flatten)]
    consent: ConsentArguments,
}

#[derive(Args, Debug)]
#[command(after_help = TOKEN_EXAMPLES)]
struct TokenArguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Login(arguments) => Box::pin(login(*arguments)).await,
        Command::Status(arguments) => status(arguments).await,
        Command::Logout(arguments) => logout(arguments).await,
        Command::Token(arguments) => token(arguments).await,
        Command::Cimd(arguments) => cimd::run(arguments).await,
    }
}

async fn login(arguments: LoginArguments) -> Result<ExitCode, Failure> {
    let (target, _) = arguments.connection.target(arguments.words)?;
    let builder = arguments.connection.builder(&target)?;
    let url = stored_url(builder.target().0)?;
    let tokens = Tokens::open()?;
    let before = tokens.options(&url).await?;
    let secret = match &arguments.client_secret_file {
        Some(file) => Some(secret_in(file)?),
        None => None,
    };
    let options = SignInOptions {
        client_id: arguments.client_id,
        client_secret: secret,
        issuer: arguments.issuer,
        client_metadata_url: arguments.client_metadata_url,
        scopes: arguments.scopes,
        dpop: arguments.dpop,
        keyring: arguments.keyring,
        ..SignInOptions::default()
    };
    // A file or keyring that can't be used is reported before the user signs in.
    tokens.check_writable(&options).await?;
    let mut oauth = OAuth { redirect_port: arguments.port, ..options.oauth(tokens.path())? };
    match arguments.headless {
        true => oauth.on_redirect = Some(Arc::new(|url| Box::pin(redirected(url)))),
        false => oauth.open_url = Some(Arc::new(|url| Box::pin(async move { visit(&url) }))),
    }
    let connected =
        builder.options(|options| options.auth = Some(Auth::OAuth(oauth))).connect().await;
    // Without the hint to sign in.
    let client = connected.map_err(|error| match error.kind {
        ErrorKind::Auth => Failure::new(FailureKind::Auth, error.to_string()),
        _ => error.into(),
    })?;
    client.close().await;
    let Some(found) = tokens.sign_in(&url, &options).await? else {
        let message = format!("{url} did not ask for credentials");
        return Err(Failure::new(FailureKind::Unsupported, message)
            .with_hint("the server can be used without a sign-in"));
    };
    if let Some(before) = before
        && (before.client_id != options.client_id || before.keyring != options.keyring)
    {
        // The records of another client, or in another place, would not be found any more.
        tokens.remove(&url).await?;
    }
    let shown = Shown { url: &url, found: &found, is_in_keyring: options.keyring };
    let text = shown.text();
    tokens.set_options(&url, options).await?;
    output::line(text)?;
    Ok(ExitCode::SUCCESS)
}

async fn status(arguments: StatusArguments) -> Result<ExitCode, Failure> {
    let tokens = Tokens::open()?;
    let urls = match &arguments.target {
        Some(target) => vec![url_of(target, arguments.consent)?],
        None => tokens.urls().await?,
    };
    let mut all = Vec::new();
    for url in urls {
        let found = match tokens.options(&url).await? {
            Some(options) => {
                tokens.sign_in(&url, &options).await?.map(|sign_in| (sign_in, options.keyring))
            }
            None => None,
        };
        match found {
            Some((found, is_in_keyring)) => all.push((url, found, is_in_keyring)),
            None if arguments.target.is_some() => return Err(not_signed_in(&url)),
            None => (),
        }
    }
    let shown = all.iter().map(|sign_in| Shown {
        url: &sign_in.0,
        found: &sign_in.1,
        is_in_keyring: sign_in.2,
    });
    if arguments.json {
        let shown: Vec<_> = shown.map(|sign_in| sign_in.json()).collect();
        output::json(&json!({ "signIns": shown }))?;
    } else {
        for sign_in in shown {
            output::line(sign_in.text())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn logout(arguments: LogoutArguments) -> Result<ExitCode, Failure> {
    let tokens = Tokens::open()?;
    let urls = match &arguments.target {
        Some(target) => vec![url_of(target, arguments.consent)?],
        None => tokens.urls().await?,
    };
    for url in urls {
        if tokens.options(&url).await?.is_none() {
            return Err(not_signed_in(&url));
        }
        let outcome = match tokens.remove(&url).await? {
            true => "the tokens were revoked and removed",
            false => "the tokens were removed here; the authorization server was not notified",
        };
        output::line(escape::one_line(&format!("{url}: {outcome}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn token(arguments: TokenArguments) -> Result<ExitCode, Failure> {
    let (target, _) = arguments.connection.target(arguments.words)?;
    let builder = arguments.connection.builder(&target)?;
    let url = stored_url(builder.target().0)?;
    let tokens = Tokens::open()?;
    let options = tokens.options(&url).await?.ok_or_else(|| not_signed_in(&url))?;
    let mut found = tokens.sign_in(&url, &options).await?.ok_or_else(|| not_signed_in(&url))?;
    if expires_in(&found).is_some_and(|seconds| seconds <= MARGIN.as_secs()) {
        // The client renews it.
        builder.connect().await?.close().await;
        found = tokens.sign_in(&url, &options).await?.ok_or_else(|| not_signed_in(&url))?;
    }
    let token = found.access_token.ok_or_else(|| not_signed_in(&url))?;
    output::line(token.expose())?;
    Ok(ExitCode::SUCCESS)
}

fn url_of(target: &str, consent: ConsentArguments) -> Result<String, Failure> {
    stored_url(Target::parse(target, consent.consent())?.builder()?.target().0)
}

fn not_signed_in(url: &str) -> Failure {
    Failure::new(FailureKind::NotFound, format!("there is no sign-in at {url}"))
        .with_hint(format!("run `gudgeon auth login {url}`"))
}

fn secret_in(file: &Path) -> Result<String, Failure> {
    let text = read::text_file(file, read::MAX_SECRET).map_err(|error| {
        let message = format!("--client-secret-file {}: {error}", file.display());
        Failure::new(FailureKind::File, message)
    })?;
    Ok(text.trim().to_owned())
}

/// Opens the browser, and prints the URL for those whose browser does not open.
fn visit(url: &str) -> Result<(), Error> {
    tell(&format!("sign in with the browser; if it does not open, visit\n  {url}"));
    browser::open(url).map_err(|_| {
        let message = "no browser could be started; use --headless";
        Error::new(ErrorKind::Auth, message)
    })
}

/// Prints the URL to visit and reads the one of the redirect.
async fn redirected(url: String) -> Result<String, Error> {
    let failed = |message: String| Error::new(ErrorKind::Auth, message);
    output::line(&url).map_err(|error| failed(error.message().to_owned()))?;
    tell("visit this URL, then paste the URL of the page to which the browser was sent");
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = read.await.map_err(|error| failed(error.to_string()))?;
    let line = line.map_err(|error| failed(format!("standard input: {error}")))?;
    match line.trim() {
        "" => Err(failed("standard input has ended before the URL of the redirect".into())),
        url => Ok(url.to_owned()),
    }
}

/// Writes a line for the user, who may have closed standard error.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns the seconds until a token expires, if that is known.
fn expires_in(found: &StoredSignIn) -> Option<u64> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    found.expires_at.map(|expiry| expiry.saturating_sub(now))
}

/// A sign-in as it is shown, without tokens.
struct Shown<'a> {
    url: &'a str,
    found: &'a StoredSignIn,
    is_in_keyring: bool,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let Self { url, found, is_in_keyring } = self;
        let scopes: Vec<_> = found.scopes.iter().map(String::as_str).collect();
        let scopes = if scopes.is_empty() { "none named".to_owned() } else { scopes.join(" ") };
        let expiry = match (expires_in(found), found.is_renewable) {
            (Some(0), true) => "expired, is renewed when it is used".to_owned(),
            (Some(0), false) => "expired".to_owned(),
            (Some(seconds), true) => format!("expires in {seconds} s, then is renewed"),
            (Some(seconds), false) => format!("expires in {seconds} s"),
            (None, _) => "does not say when it expires".to_owned(),
        };
        let issuer = &found.issuer;
        let place = if *is_in_keyring { ", in the keyring" } else { "" };
        let text =
            format!("{url}: signed in by {issuer}{place}; scopes: {scopes}; token: {expiry}");
        escape::one_line(&text).into_owned()
    }

    fn json(&self) -> Value {
        let Self { url, found, is_in_keyring } = self;
        json!({
            "url": url,
            "resource": found.resource,
            "issuer": found.issuer,
            "clientId": found.client_id,
            "scopes": found.scopes,
            "expiresAt": found.expires_at,
            "isRenewable": found.is_renewable,
            "isBoundToKey": found.is_bound,
            "isInKeyring": is_in_keyring,
        })
    }
}
