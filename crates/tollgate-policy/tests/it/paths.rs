//! Paths and patterns, however they are spelled.

use tollgate::Rate;
use tollgate_policy::path::Path;
use tollgate_policy::pattern::{Pattern, PatternError};
use tollgate_policy::{Key, Limit, Policy, Requests, Rule};

use crate::request::{Made, asked};

fn written(target: &str) -> Option<String> {
    Path::new(target.as_bytes(), false).map(|path| path.to_string())
}

fn matches(pattern: &str, target: &str) -> bool {
    let pattern: Pattern = pattern.parse().unwrap();
    Path::new(target.as_bytes(), false).is_some_and(|path| pattern.matches(&path))
}

/// The path of a bucket: everything is undone once.
#[test]
fn one_bucket_for_every_spelling_of_a_path() {
    for (target, path) in [
        ("/", "/"),
        ("//", "/"),
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("//a///b", "/a/b"),
        ("/a/./b/.", "/a/b"),
        ("/a/c/../b", "/a/b"),
        ("/../../a", "/a"),
        ("/%61/%62", "/a/b"),
        ("/a%2Fb", "/a/b"),
        ("/a%5cb", "/a/b"),
        ("/a\\b", "/a/b"),
        ("/a;v=1/b;w", "/a/b"),
        ("/a/x/..;/b", "/a/b"),
        ("/a/%2e%2E/a/b", "/a/b"),
        ("/a/b?c=/d", "/a/b"),
        ("/a/b#c", "/a/b"),
        ("/a/b?#c", "/a/b"),
        ("http://example.com/a/b", "/a/b"),
        ("HTTPS://example.com/a/b?c", "/a/b"),
        ("http://example.com", "/"),
        ("http://example.com?a=/b", "/"),
        // Once, and what is no escape stays.
        ("/%2561", "/%61"),
        ("/%", "/%"),
        ("/%6", "/%6"),
        ("/%zz", "/%zz"),
        ("/a%3Bv", "/a"),
        ("/x/..%3B/a", "/a"),
        ("/a%2Fb%3Bc", "/a/b"),
        ("", "/"),
        ("?a=/b", "/"),
        ("a/b", "/a/b"),
        ("example.com:443", "/example.com:443"),
        ("svn+ssh://h/a", "/a"),
        ("a b://h/a", "/a b:/h/a"),
        ("://x", "/:/x"),
        ("/a%3Fb", "/a?b"),
        ("/a+b", "/a+b"),
        ("/A", "/A"),
        ("//example.com/a", "/example.com/a"),
    ] {
        assert_eq!(written(target).as_deref(), Some(path), "{target}");
    }
    assert_eq!(written("*"), None);
    assert_eq!(written("*?a"), None);
}

#[test]
fn patterns_match_segments() {
    for (pattern, yes, no) in [
        ("/", &["/", "//", "/.", "/?a"][..], &["/a"][..]),
        (
            "/login",
            &["/login", "/login/"],
            &["/", "/login/x", "/Login", "/xlogin"],
        ),
        (
            "/api/**",
            &["/api", "/api/", "/api/a", "/api/a/b"],
            &["/apis", "/", "/a/api"],
        ),
        ("/**", &["/", "/a", "/a/b"], &[]),
        ("/a/*/c", &["/a/b/c"], &["/a/c", "/a/b/b/c", "/a/b"]),
        (
            "/s/*.css",
            &["/s/a.css", "/s/.css"],
            &["/s/css", "/s/a.css/b", "/s/a.css.map"],
        ),
        ("/s/a*a", &["/s/aa", "/s/aba"], &["/s/a", "/s/ab"]),
        ("/100%25", &["/100%25", "/100%"], &["/100", "/100%2525"]),
        ("/%2A", &["/*"], &["/a"]),
        ("/caf%C3%A9", &["/caf%c3%a9", "/café"], &["/cafe"]),
    ] {
        for target in yes {
            assert!(matches(pattern, target), "{pattern} {target}");
        }
        for target in no {
            assert!(!matches(pattern, target), "{pattern} {target}");
        }
    }
}

/// Whatever some service would read as one of the pattern's paths is one.
#[test]
fn no_spelling_gets_past_a_pattern() {
    for (pattern, targets) in [
        // Split before it is decoded, or after.
        (
            "/users/*/avatar",
            &[
                "/users/a%2Fb/avatar",
                "/users%2Fa/avatar",
                "/users/a/avatar",
            ][..],
        ),
        // Handed on as it is, or resolved.
        (
            "/api/**",
            &[
                "/api/../x",
                "/api/..%2fx",
                "/x/../api",
                "/x/..;/api/y",
                "/;a/api",
                "/api/x//../../y",
            ],
        ),
        // An empty segment is one, and `..` takes it away (RFC 3986, 5.2.4).
        ("/api/login", &["/api//../login", "/api/x//../../login"]),
        (
            "/login",
            &[
                "/login;jsessionid=1",
                "/./login",
                "/%2Flogin",
                "\\/login",
                "/x\\..\\login",
            ],
        ),
    ] {
        for target in targets {
            let target = target.strip_prefix('\\').unwrap_or(target);
            assert!(matches(pattern, target), "{pattern} {target}");
        }
    }
    // And what is left out is left out in every reading.
    let rule = Rule::TokenBucket(Rate::per_second(1).burst(1));
    let health = Requests::all()
        .paths(["/health/**".parse().unwrap()])
        .unwrap();
    let limit = Limit::new("all", rule).unwrap().except(health);
    let policy = Policy::new(vec![limit]).unwrap();
    let holds = |target: &str| asked(&policy, &Made::get(target)).is_some();
    assert!(!holds("/health") && !holds("/health/live?x") && !holds("//health/"));
    for target in [
        "/",
        "/health/../login",
        "/health/..%2flogin",
        "/login/..;/health",
        "/Health",
    ] {
        assert!(holds(target), "{target}");
    }
}

/// thesp0nge/dawnscanner#172, rack/rack-attack#493: one path, one bucket.
#[test]
fn b109_the_same_path_in_another_spelling() {
    let rule = Rule::TokenBucket(Rate::per_minute(1).burst(1));
    let login = Requests::all().paths(["/login".parse().unwrap()]).unwrap();
    let key = Key::ip().and(Key::path()).unwrap();
    let limit = Limit::new("login", rule)
        .unwrap()
        .for_requests(login)
        .with_key(key);
    let policy = Policy::new(vec![limit]).unwrap();
    let first = asked(&policy, &Made::get("/login"));
    assert!(first.is_some());
    for target in ["/login/", "//login", "/%6Cogin", "/login?x=1", "/./login"] {
        assert_eq!(asked(&policy, &Made::get(target)), first, "{target}");
    }
    assert_eq!(asked(&policy, &Made::get("/logout")), None);
    assert_eq!(asked(&policy, &Made::get("/LOGIN")), None);
    let policy = policy.ignoring_case();
    assert_eq!(
        asked(&policy, &Made::get("/LogIn")),
        asked(&policy, &Made::get("/login"))
    );
    assert_eq!(asked(&policy, &Made::get("/LogIn")), first);
}

#[test]
fn methods_are_of_any_case_and_head_is_get() {
    let rule = Rule::TokenBucket(Rate::per_second(1).burst(1));
    let gets = Requests::all().methods(["get", "Purge"]);
    let limit = Limit::new("gets", rule).unwrap().for_requests(gets);
    let policy = Policy::new(vec![limit]).unwrap();
    for (method, holds) in [
        ("GET", true),
        ("get", true),
        ("HEAD", true),
        ("PURGE", true),
        ("POST", false),
        ("", false),
    ] {
        let request = Made {
            method,
            ..Made::default()
        };
        assert_eq!(asked(&policy, &request).is_some(), holds, "{method}");
    }
}

#[test]
fn what_is_no_pattern_is_told() {
    let says = |text: &str| text.parse::<Pattern>().unwrap_err();
    for (text, error) in [
        ("", PatternError::NoSlash),
        ("api/**", PatternError::NoSlash),
        ("/a?b=1", PatternError::Query),
        ("/a#b", PatternError::Query),
        ("/users/{id}", PatternError::Braces),
        ("/a/../b", PatternError::Dots),
        ("/./b", PatternError::Dots),
        ("/*a*", PatternError::Stars),
        ("/a**", PatternError::Stars),
        ("/***", PatternError::Stars),
        ("/**/b", PatternError::BehindDoubleStar),
        ("/**/**", PatternError::BehindDoubleStar),
    ] {
        assert_eq!(says(text), error, "{text}");
    }
    let long = format!("/{}", "a".repeat(1_024));
    assert_eq!(says(&long), PatternError::TooLong { bytes: 1_025 });
    assert!(long[..1_024].parse::<Pattern>().is_ok());
}
