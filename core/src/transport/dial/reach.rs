//! The addresses that a request may be sent to, whatever the name of their host is.

use std::net::{IpAddr, SocketAddr};

use super::public::is_public;
use crate::{
    auth::{
        fetch::Reach,
        url::{WebUrl, is_loopback},
    },
    error::Error,
};

/// Errors if an address of a host is out of reach.
pub(super) async fn check(
    host: &str,
    addresses: &[SocketAddr],
    reach: &Reach,
) -> Result<(), Error> {
    let find = |is_out_of_reach: fn(IpAddr) -> bool| {
        addresses.iter().map(SocketAddr::ip).find(|address| is_out_of_reach(*address))
    };
    match reach {
        Reach::Anywhere => Ok(()),
        Reach::Public => match find(|address| !is_public(address)) {
            None => Ok(()),
            Some(private) => {
                // Not in the error, which tells a peer about this network.
                tracing::info!("{host} has the address {private}");
                Err(Error::misuse(format!("the address of {host} is not public"))
                    .with_hint("use a host that everybody can reach"))
            }
        },
        Reach::LocalIf(named) => {
            let Some(local) = find(is_of_this_machine) else { return Ok(()) };
            for url in named {
                if is_local(url).await {
                    return Ok(());
                }
            }
            Err(Error::misuse(format!(
                "{host} has the address {local}: a URL on this machine is allowed only if the server is on this machine"
            )))
        }
    }
}

/// Returns whether the host of a URL has addresses of this machine only.
async fn is_local(url: &str) -> bool {
    let Ok(url) = WebUrl::parse(url) else { return false };
    let host = url.host().trim_start_matches('[').trim_end_matches(']');
    if is_loopback(host) {
        return true;
    }
    let Ok(addresses) = tokio::net::lookup_host((host, 0)).await else { return false };
    let addresses: Vec<_> = addresses.map(|address| address.ip()).collect();
    !addresses.is_empty() && addresses.into_iter().all(is_of_this_machine)
}

fn is_of_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    // Connections to an unspecified address reach this machine.
    address.is_loopback() || address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reached(address: &str, reach: &Reach) -> bool {
        let address = SocketAddr::new(address.parse().unwrap(), 443);
        check("host.example", &[address], reach).await.is_ok()
    }

    #[tokio::test]
    async fn a_name_does_not_hide_an_address_of_this_machine() {
        let local = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"];
        let elsewhere = Reach::LocalIf(vec!["https://192.0.2.1/mcp".into()]);
        // A spelling of 127.0.0.1 that is not an IP address to the standard library.
        for named in ["http://127.0.0.1:8000/mcp", "http://[::1]/mcp", "https://127.1/mcp"] {
            let here = Reach::LocalIf(vec!["https://192.0.2.1/mcp".into(), named.into()]);
            for address in local {
                assert!(!reached(address, &elsewhere).await, "{address}");
                assert!(reached(address, &here).await, "{named} {address}");
            }
        }
        for address in ["192.0.2.1", "10.0.0.1", "2001:db8::1"] {
            assert!(reached(address, &elsewhere).await, "{address}");
            assert!(!reached(address, &Reach::Public).await, "{address}");
        }
        let several = ["192.0.2.1:443", "127.0.0.1:443"].map(|address| address.parse().unwrap());
        let refused = check("host.example", &several, &elsewhere).await.unwrap_err();
        assert!(refused.message.contains("host.example has the address 127.0.0.1"), "{refused}");
    }
}
