//! The line parser, as tables.

use tollgate_cli::replay::line::{MOST_CLIENT_BYTES, Reason, parse};

use Reason::{
    BadTime, ClientTooLong, Continuation, Empty, NoRequest, NoStatus, NoTime, OpenRequest,
    TimeOutOfRange,
};

const SECOND: u64 = 1_000_000_000;

/// 2026-06-21T23:49:36Z.
const JUNE: u64 = 1_782_085_776 * SECOND;

#[test]
fn times_are_read_with_their_offsets() {
    let table: &[(&str, Result<u64, Reason>)] = &[
        ("21/Jun/2026:23:49:36 +0000", Ok(JUNE)),
        ("22/Jun/2026:01:49:36 +0200", Ok(JUNE)),
        ("21/Jun/2026:19:49:36 -0400", Ok(JUNE)),
        ("22/Jun/2026:05:34:36 +0545", Ok(JUNE)),
        ("21/jun/2026:23:49:36 -0000", Ok(JUNE)),
        // without an offset: UTC
        ("21/Jun/2026:23:49:36", Ok(JUNE)),
        // a fraction, from servers told to log one
        ("21/Jun/2026:23:49:36.25 +0000", Ok(JUNE + SECOND / 4)),
        (
            "21/Jun/2026:23:49:36.123456789 +0000",
            Ok(JUNE + 123_456_789),
        ),
        ("21/Jun/2026:23:49:36.5", Ok(JUNE + SECOND / 2)),
        // a leap day; a leap second, which stays in its minute
        ("29/Feb/2000:00:00:00 +0000", Ok(951_782_400 * SECOND)),
        ("31/Dec/2016:23:59:60 +0000", Ok(1_483_228_799 * SECOND)),
        // the bounds
        ("01/Jan/1970:00:00:00 +0000", Ok(0)),
        ("01/Jan/1970:02:00:00 +0200", Ok(0)),
        ("31/Dec/2499:23:59:59 +0000", Ok(16_725_225_599 * SECOND)),
        ("31/Dec/1969:23:59:59 +0000", Err(TimeOutOfRange)),
        ("01/Jan/1970:00:59:59 +0100", Err(TimeOutOfRange)),
        ("01/Jan/2500:00:00:00 +0000", Err(TimeOutOfRange)),
        ("31/Dec/2499:23:00:00 -0100", Err(TimeOutOfRange)),
        ("01/Jan/0000:00:00:00 +0000", Err(TimeOutOfRange)),
        ("31/Dec/9999:23:59:59 -2359", Err(TimeOutOfRange)),
        // no times
        ("", Err(BadTime)),
        ("-", Err(BadTime)),
        ("2026-06-21T23:49:36Z", Err(BadTime)),
        ("31/Feb/2026:23:49:36 +0000", Err(BadTime)),
        ("29/Feb/2100:00:00:00 +0000", Err(BadTime)),
        ("00/Jun/2026:23:49:36 +0000", Err(BadTime)),
        ("21/Jum/2026:23:49:36 +0000", Err(BadTime)),
        ("21/Jun/2026:24:00:00 +0000", Err(BadTime)),
        ("21/Jun/2026:23:60:36 +0000", Err(BadTime)),
        ("21/Jun/2026:23:49:61 +0000", Err(BadTime)),
        ("21/Jun/2026:23:49:+6 +0000", Err(BadTime)),
        ("21/Jun/-026:23:49:36 +0000", Err(BadTime)),
        ("1/Jun/2026:23:49:36 +0000", Err(BadTime)),
        ("21/Jun/2026:23:49:36 ", Err(BadTime)),
        ("21/Jun/2026:23:49:36 +000", Err(BadTime)),
        ("21/Jun/2026:23:49:36 +00:00", Err(BadTime)),
        ("21/Jun/2026:23:49:36 0000", Err(BadTime)),
        ("21/Jun/2026:23:49:36 +2400", Err(BadTime)),
        ("21/Jun/2026:23:49:36 +0060", Err(BadTime)),
        ("21/Jun/2026:23:49:36 UTC", Err(BadTime)),
        ("21/Jun/2026:23:49:36. +0000", Err(BadTime)),
        ("21/Jun/2026:23:49:36.1234567890 +0000", Err(BadTime)),
        ("21/Jun/2026:23:49:36               +0000", Err(BadTime)),
    ];
    for (time, expected) in table {
        let line = format!("a - - [{time}] \"GET / HTTP/1.1\" 200 5");
        let parsed = parse(line.as_bytes());
        assert_eq!(parsed.map(|line| line.at_ns), *expected, "{time}");
        let has_offset = time.contains([' ', '-']);
        assert!(
            parsed.is_err() || parsed.unwrap().has_offset == has_offset,
            "{time}"
        );
    }
}

#[test]
fn what_stands_before_the_time_is_a_client_an_ident_and_a_user() {
    let table: &[(&str, Result<&str, Reason>)] = &[
        ("192.0.2.1 - - ", Ok("192.0.2.1")),
        ("- - - ", Ok("-")),
        ("::ffff:192.0.2.1 - - ", Ok("::ffff:192.0.2.1")),
        ("[2001:db8::1]:443 - - ", Ok("[2001:db8::1]:443")),
        ("host.example - - ", Ok("host.example")),
        ("a  -  -  ", Ok("a")),
        ("\u{1b}[2J\u{e9} - - ", Ok("\u{1b}[2J\u{e9}")),
        // users with spaces and brackets; one who claims another time, as Apache escapes it
        ("a - Jane Roe ", Ok("a")),
        ("a - [x] ", Ok("a")),
        ("a - x [y ", Ok("a")),
        ("a - [01/Jan/1970:00:00:00 +0000] ", Ok("a")),
        (
            r#"a - x [01/Jan/1970:00:00:00 +0000] \"GET /\" 200 5 "#,
            Ok("a"),
        ),
        ("", Err(NoTime)),
        ("a ", Err(NoTime)),
        ("a - ", Err(NoTime)),
        ("a - -", Err(NoTime)),
        (" a - - ", Err(Continuation)),
        ("\ta - - ", Err(Continuation)),
    ];
    for (start, expected) in table {
        let line = format!("{start}[21/Jun/2026:23:49:36 +0000] \"GET / HTTP/1.1\" 200 5");
        let parsed = parse(line.as_bytes());
        assert_eq!(
            parsed.map(|line| line.client),
            expected.map(str::as_bytes),
            "{start}"
        );
        assert!(parsed.is_err() || parsed.unwrap().at_ns == JUNE, "{start}");
    }
}

#[test]
fn what_follows_the_time_is_a_closed_request_a_status_and_a_size() {
    let table: &[(&str, Result<(), Reason>)] = &[
        (r#" "GET / HTTP/1.1" 200 5"#, Ok(())),
        (r#" "GET / HTTP/1.1" 304 -"#, Ok(())),
        (r#" "GET / HTTP/1.1" 200 5 "-" "-""#, Ok(())),
        (r#" "GET / HTTP/1.1" 200 5 "-" "-" 0.003 "more""#, Ok(())),
        (r#" "" 400 0"#, Ok(())),
        (" \"-\" 408 -\r", Ok(())),
        // quotes in the request: escaped by Apache, by nginx, not at all; a backslash escaped
        (r#" "GET /\" 200 5\" HTTP/1.1" 200 5"#, Ok(())),
        (r#" "GET /\x22 HTTP/1.1" 200 5"#, Ok(())),
        (r#" "GET /"x" HTTP/1.1" 200 5"#, Ok(())),
        (r#" "GET /\\" 200 5"#, Ok(())),
        // an agent cut short, as in a line of blog-2015, undoes nothing
        (r#" "GET /" 200 5 "-" "Mozilla"#, Ok(())),
        ("", Err(NoRequest)),
        (" ", Err(NoRequest)),
        (" GET / 200 5", Err(NoRequest)),
        (r#""GET /" 200 5"#, Err(NoRequest)),
        (r#" ""#, Err(OpenRequest)),
        (r#" "GET /cut"#, Err(OpenRequest)),
        (r#" "GET /\" 200 5"#, Err(OpenRequest)),
        (r#" "GET /""#, Err(NoStatus)),
        (r#" "GET /" 200"#, Err(NoStatus)),
        (r#" "GET /" 200 "#, Err(NoStatus)),
        (r#" "GET /" 20 5"#, Err(NoStatus)),
        (r#" "GET /" 2000 5"#, Err(NoStatus)),
        (r#" "GET /" 200 5k"#, Err(NoStatus)),
        (r#" "GET /" - 5"#, Err(NoStatus)),
        (r#" "GET /"200 5"#, Err(NoStatus)),
    ];
    for (end, expected) in table {
        let line = format!("a - - [21/Jun/2026:23:49:36 +0000]{end}");
        assert_eq!(parse(line.as_bytes()).map(|_| ()), *expected, "{end}");
    }
}

#[test]
fn what_is_no_log_line_has_a_reason() {
    let table: &[(&[u8], Reason)] = &[
        (b"", Empty),
        (b"\r", Empty),
        (b"  \t ", Empty),
        (b" \"curl/7.54.0\"", Continuation),
        (b"a", NoTime),
        (b"a - -", NoTime),
        (b"a - - [", BadTime),
        (
            br#"a - - [21/Jun/2026:23:49:36 +0000 "GET /" 200 5"#,
            BadTime,
        ),
        (br#"{"remote_addr":"a","request":"GET /"}"#, NoTime),
        (b"\x00\xff\xfe\x00", NoTime),
    ];
    for (line, reason) in table {
        assert_eq!(parse(line), Err(*reason), "{line:?}");
    }
}

#[test]
fn a_client_of_1024_bytes_is_read_and_one_of_1025_is_not() {
    let line = |length| {
        format!(
            "{} - - [21/Jun/2026:23:49:36] \"\" 200 5",
            "a".repeat(length)
        )
    };
    assert_eq!(
        parse(line(1_024).as_bytes()).unwrap().client.len(),
        MOST_CLIENT_BYTES
    );
    assert_eq!(parse(line(1_025).as_bytes()), Err(ClientTooLong));
}

#[test]
fn a_line_cut_or_changed_in_any_byte_is_answered() {
    let line = br#"a - u [21/Jun/2026:23:49:36 +0200] "GET /\" HTTP/1.1" 200 5 "-" "agent""#;
    for end in 0..line.len() {
        _ = parse(&line[..end]);
        for byte in 0..=u8::MAX {
            let mut changed = line.to_vec();
            changed[end] = byte;
            _ = parse(&changed);
            changed.insert(end, byte);
            _ = parse(&changed);
        }
    }
}
