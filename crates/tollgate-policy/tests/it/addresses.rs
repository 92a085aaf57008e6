//! Whose address a request comes from: public bug reports and advisories as cases, and the walk
//! through forwarding headers.
//!
//! The reports are of other projects' rate limiters, told as inputs with the keys that must come of
//! them; each names its source.

use std::net::IpAddr;

use tollgate_policy::address::Prefixes;
use tollgate_policy::proxies::{AddressHeader, Peer, Proxies, Source, Trusted};

fn proxies(trusted: &[&str], header: AddressHeader) -> Proxies {
    let trusted = trusted.iter().map(|text| text.parse::<Trusted>().unwrap());
    Proxies::new(trusted, header)
}

fn forwarded_for() -> Proxies {
    proxies(&["10.0.0.0/8"], AddressHeader::XForwardedFor)
}

/// The client's network, and where it was taken from.
fn origin(proxies: &Proxies, peer: &str, lines: &[&str]) -> (String, Source) {
    let peer = Peer::Address(peer.parse().unwrap());
    let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    let origin = proxies.origin(peer, &lines);
    (network(&origin.address.unwrap().to_string()), origin.source)
}

fn network(address: &str) -> String {
    let address: IpAddr = address.parse().unwrap();
    Prefixes::default().network(address).to_string()
}

/// raullenchai/Rapid-MLX#589, express-rate-limit/express-rate-limit#667, Yeraze/meshmonitor#2001;
/// CVE-2026-30827: mapped addresses are told by bits.
#[test]
fn b01_mapped_addresses_are_ipv4() {
    for (address, client) in [
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.2", "192.0.2.2"),
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("2001:db8:1:2::192.0.2.1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::5", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("0.0.0.1", "0.0.0.1"),
        ("::ffff:102:304", "1.2.3.4"),
        ("2001:db8:1234:5678::1.2.3.4", "2001:db8:1234:5678::/64"),
    ] {
        assert_eq!(network(address), client, "{address}");
    }
}

/// AaronErhardt/actix-governor#47, RussellLuo/caddy-ext#4, Telcoin-Association/
/// telcoin-network#956; CVE-2026-45364: a /64 is one client, however it is written.
#[test]
fn b64_a_64_is_one_client() {
    let first = network("2001:db8:0:1::1");
    for last in 1..=0x64 {
        assert_eq!(network(&format!("2001:DB8:0:1:0:0:0:{last:x}")), first);
    }
    assert_ne!(network("2001:db8:0:2::1"), first);
    assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    // On one link, a network is everybody.
    assert_ne!(network("fe80::1"), network("fe80::2"));
}

/// Flowfin/jellyfin-plugin-sso#194 wants what is embedded, express-rate-limit#667 the prefix. Here
/// the address behind the translator counts.
#[test]
fn b97_behind_nat64_the_ipv4_address_counts() {
    assert_eq!(network("64:ff9b::808:808"), "8.8.8.8");
    assert_eq!(network("64:ff9b::909:909"), "9.9.9.9");
    assert_eq!(network("64:ff9b:1::808:808"), "64:ff9b:1::/64");
}

/// sprawz/gtm-mcp-server#93, Harsh-2002/Orva#69: all lines are one list.
#[test]
fn b07_lines_are_one_list() {
    for last in ["198.51.100.7", "198.51.100.7, ", "198.51.100.7,,"] {
        for forged in 1..=3 {
            let lines = [&*format!("6.6.6.{forged}"), last];
            let client = ("198.51.100.7".to_owned(), Source::Header);
            assert_eq!(origin(&forwarded_for(), "10.0.0.1", &lines), client);
        }
    }
}

/// didip/tollbooth#99, qjoly/talosctl-oidc#128, codelibs/fess#3360; go-chi's `RealIP`,
/// CVE-2026-29794: only a listed peer is believed, and from the right.
#[test]
fn b43_only_listed_peers_are_believed() {
    for (peer, line, client, source) in [
        ("203.0.113.9", "1.2.3.4", "203.0.113.9", Source::Peer),
        (
            "10.0.0.1",
            "6.6.6.6, 198.51.100.7",
            "198.51.100.7",
            Source::Header,
        ),
        (
            "10.0.0.1",
            "6.6.6.6, 198.51.100.7, 10.0.0.9",
            "198.51.100.7",
            Source::Header,
        ),
        (
            "::ffff:10.0.0.1",
            "198.51.100.7",
            "198.51.100.7",
            Source::Header,
        ),
    ] {
        let expected = (client.to_owned(), source);
        assert_eq!(origin(&forwarded_for(), peer, &[line]), expected, "{line}");
    }
    // By default nobody is.
    let expected = ("10.0.0.1".to_owned(), Source::Peer);
    assert_eq!(
        origin(&Proxies::default(), "10.0.0.1", &["6.6.6.6"]),
        expected
    );
}

/// sozu-proxy/sozu#1254, lpinca/forwarded-parse#7, junkurihara/rust-rpxy#624: RFC 7239.
#[test]
fn b55_forwarded() {
    let proxies = proxies(&["10.0.0.0/8"], AddressHeader::Forwarded);
    let peer = ("10.0.0.1", Source::Fallback);
    for (line, (client, source)) in [
        (
            r#"for=6.6.6.6, for="[2001:db8:cafe::17]:4711";proto=https"#,
            ("2001:db8:cafe::/64", Source::Header),
        ),
        (
            r#"For="198.51.100.7:80";by=10.0.0.1"#,
            ("198.51.100.7", Source::Header),
        ),
        ("for=unknown", peer),
        ("for=_hidden", peer),
        ("for=2001:db8::1", peer),
        // Nobody is named, or two are.
        ("by=10.0.0.1", peer),
        ("for=198.51.100.7;for=6.6.6.6", peer),
        ("for", peer),
        ("for=", peer),
        ("", peer),
        // An obfuscated port, blanks, and an open end that is not the proxy's.
        (
            r#"for="198.51.100.7:_gazonk""#,
            ("198.51.100.7", Source::Header),
        ),
        (
            r#"for = "198.51.100.7" ; proto = http"#,
            ("198.51.100.7", Source::Header),
        ),
        (
            r#"for="6.6.6.6, for=198.51.100.7"#,
            ("198.51.100.7", Source::Header),
        ),
        (
            r#"for=6.6.6.6;host="x, for=198.51.100.7"#,
            ("198.51.100.7", Source::Header),
        ),
        // The client's own Host, quoted by the proxy.
        (r#"for=198.51.100.7;host="a;for=6.6.6.6;b""#, peer),
        (r#"host="a;for=6.6.6.6;b";for=198.51.100.7"#, peer),
        (r#"for=198.51.100.7;host="a,for=6.6.6.6;x""#, peer),
        (
            r#"for=198.51.100.7;host="a,for=6.6.6.6;x";proto=https"#,
            peer,
        ),
        (r#"host="a,for=6.6.6.6;""#, peer),
        (r#"host="a,for=6.6.6.6;x=y""#, peer),
        (r#"host="a,for=6.6.6.6;"=y"#, peer),
        (
            r#"for=198.51.100.7;host=example.com:8080"#,
            ("198.51.100.7", Source::Header),
        ),
    ] {
        let expected = (client.to_owned(), source);
        assert_eq!(origin(&proxies, "10.0.0.1", &[line]), expected, "{line}");
    }
}

/// What is no address ends the walk on the last trusted hop before it, however far right it is.
#[test]
fn a_bad_hop_ends_the_walk() {
    for (lines, client) in [
        (&["6.6.6.6, junk"][..], "10.0.0.1"),
        (&["6.6.6.6, junk, 10.0.0.7"], "10.0.0.7"),
        (&["6.6.6.6, 1.2.3"], "10.0.0.1"),
        (&["6.6.6.6, 01.2.3.4"], "10.0.0.1"),
        (&["6.6.6.6, 1.2.3.4:"], "10.0.0.1"),
        (&["6.6.6.6, 1.2.3.4:123456"], "10.0.0.1"),
        (&["6.6.6.6, [2001:db8::1"], "10.0.0.1"),
        (&["6.6.6.6, fe80::1%"], "10.0.0.1"),
        (&["junk", "10.0.0.7"], "10.0.0.7"),
        (&[], "10.0.0.1"),
        (&[" , ,, "], "10.0.0.1"),
    ] {
        let expected = (client.to_owned(), Source::Fallback);
        assert_eq!(
            origin(&forwarded_for(), "10.0.0.1", lines),
            expected,
            "{lines:?}"
        );
    }
}

/// Ports, brackets, zones and quotes are no part of an address.
#[test]
fn an_address_is_read_in_each_of_its_forms() {
    for (text, client) in [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7:5678", "198.51.100.7"),
        ("\"198.51.100.7\"", "198.51.100.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("[2001:db8::1]:80", "2001:db8::/64"),
        ("\"[2001:db8::1]:80\"", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:80", "fe80::1"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
    ] {
        let expected = (client.to_owned(), Source::Header);
        assert_eq!(
            origin(&forwarded_for(), "10.0.0.1", &[text]),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_list_of_trusted_proxies_alone_ends_on_the_leftmost() {
    let expected = ("10.0.0.5".to_owned(), Source::Header);
    let found = origin(&forwarded_for(), "10.0.0.1", &["10.0.0.5, 10.0.0.6"]);
    assert_eq!(found, expected);
    // As many as are followed.
    let long = vec!["10.0.0.6"; 63].join(", ");
    let lines = [&*format!("6.6.6.6, 10.0.0.5, {long}")];
    assert_eq!(origin(&forwarded_for(), "10.0.0.1", &lines), expected);
}

/// What stands left of the first address that is no proxy's is not read, however long it is.
#[test]
fn a_long_forged_header_changes_nothing() {
    let long = format!("{}, 198.51.100.7", "6.6.6.6, ".repeat(100_000));
    let expected = ("198.51.100.7".to_owned(), Source::Header);
    assert_eq!(origin(&forwarded_for(), "10.0.0.1", &[&long]), expected);
}

/// Traefik's depth makes every client one if the list is too short; here it is the peer then.
#[test]
fn hops_are_counted_from_the_right() {
    for (hops, lines, client, source) in [
        (
            1,
            &["6.6.6.6, 198.51.100.7"][..],
            "198.51.100.7",
            Source::Header,
        ),
        (
            2,
            &["6.6.6.6, 198.51.100.7, 192.0.2.9"],
            "198.51.100.7",
            Source::Header,
        ),
        (
            2,
            &["198.51.100.7", "192.0.2.9"],
            "198.51.100.7",
            Source::Header,
        ),
        (2, &["198.51.100.7"], "10.0.0.1", Source::Fallback),
        (2, &["junk, 198.51.100.7"], "10.0.0.1", Source::Fallback),
        (2, &["198.51.100.7, junk"], "198.51.100.7", Source::Header),
    ] {
        let expected = (client.to_owned(), source);
        let found = origin(&forwarded_for().hops(hops), "10.0.0.1", lines);
        assert_eq!(found, expected, "{hops} {lines:?}");
    }
    let untrusted = ("203.0.113.9".to_owned(), Source::Peer);
    assert_eq!(
        origin(&forwarded_for().hops(1), "203.0.113.9", &["6.6.6.6"]),
        untrusted
    );
}

/// CF-Connecting-IP and its like: one address, from the listed networks alone.
#[test]
fn a_header_of_one_address_is_one_address() {
    let header = AddressHeader::One("cf-connecting-ip".to_owned());
    let proxies = proxies(&["10.0.0.0/8", "2001:db8:99::1"], header);
    for (peer, lines, client, source) in [
        (
            "10.0.0.1",
            &["198.51.100.7"][..],
            "198.51.100.7",
            Source::Header,
        ),
        (
            "2001:db8:99::1",
            &["198.51.100.7"],
            "198.51.100.7",
            Source::Header,
        ),
        (
            "10.0.0.1",
            &["6.6.6.6", "198.51.100.7"],
            "10.0.0.1",
            Source::Fallback,
        ),
        (
            "10.0.0.1",
            &["6.6.6.6, 198.51.100.7"],
            "10.0.0.1",
            Source::Fallback,
        ),
        ("10.0.0.1", &[], "10.0.0.1", Source::Fallback),
        ("203.0.113.9", &["6.6.6.6"], "203.0.113.9", Source::Peer),
    ] {
        let expected = (client.to_owned(), source);
        assert_eq!(origin(&proxies, peer, lines), expected, "{peer} {lines:?}");
    }
}

#[test]
fn a_unix_socket_is_trusted_if_it_is_listed() {
    let trusting = proxies(&["unix"], AddressHeader::XForwardedFor);
    let lines: [&[u8]; 1] = [b"198.51.100.7"];
    let found = trusting.origin(Peer::Unix, &lines);
    assert_eq!(found.address, Some([198, 51, 100, 7].into()));
    assert_eq!(trusting.origin(Peer::Unix, &[]).address, None);
    assert_eq!(trusting.origin(Peer::Unknown, &lines).address, None);
    assert_eq!(forwarded_for().origin(Peer::Unix, &lines).address, None);
}

#[test]
fn trusted_networks_are_networks() {
    let says = |text: &str| text.parse::<Trusted>().unwrap_err().to_string();
    assert_eq!(
        says("10.0.0.1/8"),
        "not a network: did you mean 10.0.0.0/8?"
    );
    assert_eq!(
        says("2001:db8::1/32"),
        "not a network: did you mean 2001:db8::/32?"
    );
    let all = "every address is in it, so any client could name any other";
    for text in [
        "0.0.0.0/0",
        "::/0",
        "::ffff:0:0/96",
        "::/64",
        "::ffff:0:0/95",
    ] {
        assert_eq!(says(text), all, "{text}");
    }
    for text in [
        "",
        "10.0.0.0/33",
        "10.0.0",
        "10.0.0.0/",
        "localhost",
        "UNIX",
        "fe80::1%eth0",
    ] {
        assert!(says(text).starts_with("not an address"), "{text}");
    }
    // Mapped notation is the same network; a translator's is not.
    let mapped = proxies(&["::ffff:10.0.0.0/104"], AddressHeader::XForwardedFor);
    assert!(mapped.trusts(Peer::Address("10.1.2.3".parse().unwrap())));
    assert!(mapped.trusts(Peer::Address("::ffff:10.1.2.3".parse().unwrap())));
    assert!(!mapped.trusts(Peer::Address("64:ff9b::a01:203".parse().unwrap())));
    assert!(!mapped.trusts(Peer::Address("11.0.0.0".parse().unwrap())));
}

/// Whoever is in any of many networks, side by side and within each other, is found.
#[test]
fn each_of_many_networks_is_found() {
    let many: Vec<String> = (0..200).map(|n| format!("10.{n}.{n}.0/24")).collect();
    let mut texts: Vec<&str> = many.iter().map(String::as_str).collect();
    texts.extend(["10.7.0.0/16", "2001:db8::/32", "192.0.2.1"]);
    let proxies = proxies(&texts, AddressHeader::XForwardedFor);
    let trusts = |text: &str| proxies.trusts(Peer::Address(text.parse().unwrap()));
    for n in 0..200 {
        assert!(trusts(&format!("10.{n}.{n}.255")));
        assert_eq!(trusts(&format!("10.{n}.200.1")), n == 7);
    }
    assert!(trusts("2001:db8:ffff::1") && trusts("192.0.2.1"));
    assert!(!trusts("2001:db9::") && !trusts("192.0.2.0") && !trusts("192.0.2.2") && !trusts("::"));
}
