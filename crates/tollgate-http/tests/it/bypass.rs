//! The ways past a limit that advisories tell of, over HTTP: each was somebody's.

use http::Request;
use tollgate::Rate;
use tollgate_http::proxies::{AddressHeader, Proxies};
use tollgate_http::{Key, Policy, WhenFull};

use crate::harness::{App, bucket, from, get, limit};

/// One request an hour for each address, behind proxies that write that header.
fn behind(header: AddressHeader) -> App {
    let proxies = Proxies::new(["10.0.0.0/8".parse().unwrap()], header);
    let policy = Policy::new(vec![limit("a", bucket(Rate::per_hour(1), 1))]).unwrap();
    App::with(policy.with_proxies(proxies), |builder| builder)
}

fn alone() -> App {
    App::new([limit("a", bucket(Rate::per_hour(1), 1))])
}

/// Whether requests are taken for one client's: the first passes, and no other.
fn are_one(app: &App, requests: impl IntoIterator<Item = Request<()>>) -> bool {
    let told: Vec<u16> = requests
        .into_iter()
        .map(|request| app.ask(request).status)
        .collect();
    told.iter().skip(1).all(|status| *status == 429) && told.first() == Some(&200)
}

/// 1: CVE-2026-30827, express-rate-limit 8.0.0 to 8.2.1; 2: its PR 667. An address is IPv4 by its
/// bits, not by how it is written.
#[test]
fn a5_1_and_2_mapped_addresses() {
    let same = ["::ffff:1.2.3.4", "1.2.3.4", "::ffff:102:304"];
    assert!(are_one(&alone(), same.map(from)));
    assert!(!are_one(
        &alone(),
        ["::ffff:1.2.3.4", "::ffff:1.2.3.5"].map(from)
    ));
    let app = alone();
    assert!(are_one(
        &app,
        ["2001:db8:1234:5678::1.2.3.4", "2001:db8:1234:5678::9"].map(from)
    ));
    assert_eq!(app.ask(from("1.2.3.4")).status, 200);
}

/// 3: CVE-2026-45364, better-auth before 1.4.17. One network is one client, however written.
#[test]
fn a5_3_networks_and_spellings() {
    let same = [
        "2001:db8:0:1::1",
        "2001:DB8:0:1:0:0:0:2",
        "2001:db8::1:ffff:0:0:1",
    ];
    assert!(are_one(&alone(), same.map(from)));
    let behind = behind(AddressHeader::XForwardedFor);
    let forwarded = same.map(|address| get("10.0.0.1", "/", &[("x-forwarded-for", address)]));
    assert!(are_one(&behind, forwarded));
}

/// 4: go-chi's `RealIP`; 5: CVE-2026-29794, Vikunja before 2.2.0; 10: `tower_governor`'s
/// `SmartIpKeyExtractor`. What anybody can write changes nothing, and nobody is trusted by default.
#[test]
fn a5_4_5_and_10_forged_headers() {
    let names = [
        "x-forwarded-for",
        "x-real-ip",
        "true-client-ip",
        "forwarded",
        "cf-connecting-ip",
    ];
    let forged = |peer: &str| {
        let each = names.iter().enumerate();
        let each = each.map(|(at, name)| get(peer, "/", &[(*name, &format!("6.6.6.{at}"))]));
        let each = each.chain([get(peer, "/", &[("forwarded", "for=6.6.6.9")])]);
        each.collect::<Vec<_>>()
    };
    assert!(are_one(&alone(), forged("203.0.113.9")));
    for header in [AddressHeader::XForwardedFor, AddressHeader::Forwarded] {
        assert!(are_one(&behind(header), forged("203.0.113.9")));
    }
    // A trusted proxy's header, all its lines, from the right.
    let lines = (0..3).map(|at| {
        let mine = format!("6.6.6.{at}");
        let lines = [
            ("x-forwarded-for", mine.as_str()),
            ("x-forwarded-for", "198.51.100.7"),
        ];
        get("10.0.0.1", "/", &lines)
    });
    assert!(are_one(&behind(AddressHeader::XForwardedFor), lines));
}

/// 6: CVE-2024-45410, Traefik before 2.11.9. A header that is not there leaves the proxy itself:
/// one bucket, and no empty key of its own for each.
#[test]
fn a5_6_a_missing_header_is_the_proxy() {
    let app = behind(AddressHeader::XForwardedFor);
    let requests = [
        from("10.0.0.1"),
        get("10.0.0.1", "/", &[("connection", "x-forwarded-for")]),
        get("10.0.0.1", "/", &[("x-forwarded-for", "")]),
        get("10.0.0.1", "/", &[("x-forwarded-for", "unknown")]),
    ];
    assert!(are_one(&app, requests));
    assert_eq!(app.ask(from("10.0.0.2")).status, 200);
}

/// 7: Traefik's GHSA-5m6w-wvh7-57vm. A name with underscores is another name.
#[test]
fn a5_7_underscores_are_no_dashes() {
    let forged = (0..3).map(|at| {
        let mine = format!("6.6.6.{at}");
        get(
            "10.0.0.1",
            "/",
            &[
                ("x_forwarded_for", &mine),
                ("x-forwarded-for", "198.51.100.7"),
            ],
        )
    });
    assert!(are_one(&behind(AddressHeader::XForwardedFor), forged));
    let key = limit("a", bucket(Rate::per_hour(1), 1)).with_key(Key::header("x-api-key"));
    let app = App::new([key]);
    let forged = (0..3).map(|at| {
        let mine = format!("key-{at}");
        get(
            "192.0.2.1",
            "/",
            &[("x_api_key", &mine), ("x-api-key", "mine")],
        )
    });
    assert!(are_one(&app, forged));
}

/// 8: Traefik's GHSA-6384-m2mw-rf54. No header is read but the one that is named.
#[test]
fn a5_8_only_the_named_header_is_read() {
    let names = [
        "x-forwarded-prefix",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-uri",
        "x-original-uri",
        "x-original-url",
        "x-rewrite-url",
        "x-http-method-override",
        "x-client-ip",
        "host",
    ];
    let key = Key::ip()
        .and(Key::path())
        .unwrap()
        .and(Key::method())
        .unwrap();
    let proxies = Proxies::new(["10.0.0.1".parse().unwrap()], AddressHeader::XForwardedFor);
    let limit = limit("a", bucket(Rate::per_hour(1), 1)).with_key(key);
    let policy = Policy::new(vec![limit]).unwrap().with_proxies(proxies);
    let app = App::with(policy, |builder| builder);
    let forged = names.iter().map(|name| {
        let lines = [(*name, "/other"), ("x-forwarded-for", "198.51.100.7")];
        get("10.0.0.1", "/", &lines)
    });
    assert!(are_one(&app, forged));
}

/// 9: rack-attack's 4.3.1 and 6.5.0; thesp0nge/dawnscanner#172, rack/rack-attack#493 (B109). One
/// resource is one, however its path is spelled.
#[test]
fn a5_9_one_path_in_other_spellings() {
    let rule = bucket(Rate::per_minute(1), 1);
    let file =
        "[[limit]]\nname = \"a\"\nmatch = { path = \"/login\" }\nkey = \"ip\"\nrate = \"1/min\"";
    let app = App::with(Policy::from_toml(file).unwrap(), |builder| builder);
    let spelled = [
        "/login",
        "/login/",
        "//login",
        "/%6Cogin",
        "/login?x=1",
        "/./login",
    ];
    assert!(are_one(
        &app,
        spelled.map(|path| get("192.0.2.1", path, &[]))
    ));
    let app = App::new([limit("a", rule).with_key(Key::path())]);
    assert!(are_one(
        &app,
        spelled.map(|path| get("192.0.2.1", path, &[]))
    ));
}

/// 11: Caddy's X-Real-IP comes from the client as it was: it is not read, where another header is
/// what the proxy writes.
#[test]
fn a5_11_a_header_that_passes_through() {
    let forged = (0..3).map(|at| {
        let mine = format!("6.6.6.{at}");
        get(
            "10.0.0.1",
            "/",
            &[("x-real-ip", &mine), ("x-forwarded-for", "198.51.100.7")],
        )
    });
    assert!(are_one(&behind(AddressHeader::XForwardedFor), forged));
}

/// 12: CF-Connecting-IP, sent to the origin by whoever knows its address.
#[test]
fn a5_12_a_vendors_header_from_others() {
    let header = || AddressHeader::One("CF-Connecting-IP".to_owned());
    let of = |peer, client: &str| get(peer, "/", &[("cf-connecting-ip", client)]);
    let app = behind(header());
    let forged: Vec<_> = (0..3)
        .map(|at| of("203.0.113.9", &format!("6.6.6.{at}")))
        .collect();
    assert!(are_one(&app, forged));
    let app = behind(header());
    assert!(are_one(
        &app,
        ["10.0.0.1", "10.0.0.2"].map(|peer| of(peer, "198.51.100.7"))
    ));
    assert_eq!(app.ask(of("10.0.0.1", "198.51.100.8")).status, 200);
}

/// 13: made-up clients fill the table, and no more: whoever is known keeps the bucket, and
/// newcomers are answered as the limit says.
#[test]
fn a5_13_made_up_clients_are_bounded() {
    let strict = |when_full| {
        let limit = limit("a", bucket(Rate::per_hour(1), 1));
        App::new([limit.with_max_clients(100).with_when_full(when_full)])
    };
    let made_up = |at: u32| from(&std::net::Ipv4Addr::from(0x0b00_0000 + at).to_string());
    let app = strict(WhenFull::Refuse);
    assert_eq!(app.ask(from("192.0.2.1")).status, 200);
    let passed = (0..1_000)
        .filter(|at| app.ask(made_up(*at)).status == 200)
        .count();
    assert_eq!(passed, 99);
    assert_eq!(
        app.ask(from("192.0.2.1")).status,
        429,
        "and no fresh bucket"
    );
    let app = strict(WhenFull::Share);
    assert_eq!(app.ask(from("192.0.2.1")).status, 200);
    let passed = (0..1_000)
        .filter(|at| app.ask(made_up(*at)).status == 200)
        .count();
    assert_eq!(passed, 99 + 1, "all others have one bucket");
    assert_eq!(app.ask(from("192.0.2.1")).status, 429);
}

/// raullenchai/Rapid-MLX#589, express-rate-limit/express-rate-limit#667, Yeraze/meshmonitor#2001.
#[test]
fn b01_mapped_addresses_over_http() {
    let app = App::new([limit("a", bucket(Rate::per_minute(1), 1))]);
    let told: Vec<u16> = [
        "::ffff:192.0.2.1",
        "::ffff:192.0.2.2",
        "192.0.2.1",
        "::ffff:c000:201",
        "2001:db8:1:2::192.0.2.1",
        "2001:db8:1:2::5",
        "::1",
        "0.0.0.1",
    ]
    .iter()
    .map(|peer| app.ask(from(peer)).status)
    .collect();
    assert_eq!(told, [200, 200, 429, 429, 200, 429, 200, 200]);
}

/// sprawz/gtm-mcp-server#93, Harsh-2002/Orva#69.
#[test]
fn b07_a_line_of_the_clients_own() {
    for last in ["198.51.100.7", "198.51.100.7, "] {
        let app = behind(AddressHeader::XForwardedFor);
        let told: Vec<u16> = (1..=3)
            .map(|at| {
                let mine = format!("6.6.6.{at}");
                let lines = [
                    ("x-forwarded-for", mine.as_str()),
                    ("x-forwarded-for", last),
                ];
                app.ask(get("10.0.0.1", "/", &lines)).status
            })
            .collect();
        assert_eq!(told, [200, 429, 429]);
    }
}

/// Flowfin/jellyfin-plugin-sso#194, express-rate-limit/express-rate-limit#667: behind NAT64 each
/// IPv4 address is a client, as the policy's page says.
#[test]
fn b97_a_translators_prefix_is_no_client() {
    let app = alone();
    let told = ["64:ff9b::808:808", "64:ff9b::909:909", "8.8.8.8"];
    let told: Vec<u16> = told.iter().map(|peer| app.ask(from(peer)).status).collect();
    assert_eq!(told, [200, 200, 429]);
}

/// AaronErhardt/actix-governor#47, RussellLuo/caddy-ext#4, Telcoin-Association/telcoin-network#956.
#[test]
fn b64_who_rotates_addresses_within_a_network() {
    let app = App::new([limit("a", bucket(Rate::per_hour(1), 10))]);
    let told: Vec<_> = (1..=100)
        .map(|at| app.ask(from(&format!("2001:db8:0:1::{at:x}"))))
        .collect();
    let left: Vec<u64> = told[..10]
        .iter()
        .map(|answer| answer.figures().unwrap().number("r").unwrap())
        .collect();
    assert_eq!(left, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert!(told[..10].iter().all(|answer| answer.status == 200));
    assert!(
        told[10..]
            .iter()
            .all(|answer| { (answer.status, answer.retry_after()) == (429, Some(3_600)) })
    );
    assert_eq!(app.ask(from("2001:db8:0:2::1")).status, 200);
}

/// didip/tollbooth#99, qjoly/talosctl-oidc#128, codelibs/fess#3360.
#[test]
fn b43_a_header_from_whoever() {
    let app = behind(AddressHeader::XForwardedFor);
    let ask = |peer, header| {
        app.ask(get(peer, "/", &[("x-forwarded-for", header)]))
            .status
    };
    assert_eq!(ask("203.0.113.9", "1.2.3.4"), 200);
    assert_eq!(ask("10.0.0.1", "6.6.6.6, 198.51.100.7"), 200);
    assert_eq!(
        ask("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.0.0.9"),
        429,
        "the same client"
    );
    assert_eq!(
        ask("203.0.113.9", "198.51.100.9"),
        429,
        "the peer, whatever it says"
    );
    // Nobody else's bucket was spent from.
    assert_eq!(app.ask(from("1.2.3.4")).status, 200);
    assert_eq!(app.ask(from("6.6.6.6")).status, 200);
}

/// sozu-proxy/sozu#1254, lpinca/forwarded-parse#7, junkurihara/rust-rpxy#624.
#[test]
fn b55_forwarded_over_http() {
    for (header, client) in [
        (
            "for=6.6.6.6, for=\"[2001:db8:cafe::17]:4711\";proto=https",
            "2001:db8:cafe::1",
        ),
        ("For=\"198.51.100.7:80\";by=10.0.0.1", "198.51.100.7"),
        ("for=unknown", "10.0.0.1"),
        ("for=_hidden", "10.0.0.1"),
        ("for=2001:db8::1", "10.0.0.1"),
    ] {
        let app = behind(AddressHeader::Forwarded);
        assert_eq!(
            app.ask(get("10.0.0.1", "/", &[("forwarded", header)]))
                .status,
            200
        );
        assert_eq!(app.ask(from(client)).status, 429, "{header}");
    }
}
