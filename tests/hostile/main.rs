//! The server and the client that hostile peers attack. The first argument is the role; each role tells its own.

mod client;
mod server;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("client") => client::run(words),
        Some("server") => Ok(server::run(words)?),
        _ => Err("the roles are client and server".into()),
    }
}
