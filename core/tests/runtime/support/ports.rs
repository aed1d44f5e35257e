//! Ports for servers that are started at an address known before.

use std::net::Ipv4Addr;

use tokio::net::TcpSocket;

/// Returns a port of 127.0.0.1 that no other program is given while the socket exists.
///
/// The socket never listens: connections are refused, and a server can bind the same port.
pub(crate) fn reserve_port() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option that all systems have");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    (socket.local_addr().expect("a bound socket").port(), socket)
}
