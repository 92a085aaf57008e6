//! Whose address a request comes from, whatever the client sends along.

use std::net::{IpAddr, Ipv4Addr};

use tollgate_policy::proxies::{AddressHeader, Origin, Peer, Proxies, Source, Trusted};

const PROXY: Peer = Peer::Address(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));

/// Takes the bytes as the lines of a header.
///
/// # Panics
///
/// If what stands left of the proxy's own element changes whose request it is, if an untrusted peer
/// is believed, or if an address is found that no line names.
pub fn run(bytes: &[u8]) {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').take(64).collect();
    let xff = (AddressHeader::XForwardedFor, "198.51.100.7");
    let forwarded = (AddressHeader::Forwarded, "for=198.51.100.7;proto=https");
    for (header, own) in [xff, forwarded] {
        let proxies = Proxies::new([network("10.0.0.0/8")], header);
        let expected = Origin {
            address: Some(CLIENT),
            source: Source::Header,
        };
        // On a line of its own, or behind a comma on the last one.
        let more = [&lines[..], &[own.as_bytes()]].concat();
        assert_eq!(proxies.origin(PROXY, &more), expected);
        let mut joined = lines.clone();
        let last = [joined.pop().unwrap_or_default(), b", ", own.as_bytes()].concat();
        joined.push(&last);
        assert_eq!(proxies.origin(PROXY, &joined), expected);

        let stranger = Peer::Address(CLIENT);
        let of_stranger = proxies.origin(stranger, &lines);
        assert_eq!(
            (of_stranger.address, of_stranger.source),
            (Some(CLIENT), Source::Peer)
        );
        let found = proxies.origin(PROXY, &lines);
        let fell_back = found.source == Source::Fallback;
        // Whoever it fell back on is a proxy.
        let is_trusted = |address| proxies.trusts(Peer::Address(address));
        assert!(!fell_back || found.address.is_some_and(is_trusted));
    }
    // The proxy also tells the host, as the client sent it, in quotes.
    let host: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|byte| !b"\"\\\n".contains(byte))
        .collect();
    let proxies = Proxies::new([network("10.0.0.0/8")], AddressHeader::Forwarded);
    for line in [
        [b"for=198.51.100.7;host=\"", &host[..], b"\""].concat(),
        [b"host=\"", &host[..], b"\";for=198.51.100.7;proto=https"].concat(),
    ] {
        let found = proxies.origin(PROXY, &[&line]);
        let is_proxy = found
            .address
            .is_some_and(|address| proxies.trusts(Peer::Address(address)));
        assert!(found.address == Some(CLIENT) || (found.source == Source::Fallback && is_proxy));
    }
    let header = AddressHeader::One("x-real-ip".to_owned());
    let proxies = Proxies::new([network("10.0.0.1")], header);
    let found = proxies.origin(PROXY, &lines);
    assert!(lines.len() == 1 || found.source == Source::Fallback);
}

fn network(text: &str) -> Trusted {
    match text.parse() {
        Ok(trusted) => trusted,
        Err(error) => unreachable!("{error}"),
    }
}
