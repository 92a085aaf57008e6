//! Every line is accounted for, and what cannot be read is shown.

use serde_json::json;

use crate::harness::{file, record, replay, tollgate, tollgate_with_stdin};

/// A first bad line used to abort such tools, or their totals silently missed lines.
#[test]
fn junk_is_skipped_with_a_reason_a_line_and_the_totals_agree() {
    let log = [
        record("-", "21/Jun/2026:23:49:35 +0000"),
        record("::ffff:192.0.2.1", "21/Jun/2026:23:49:36"),
        "\n".to_owned(),
        "192.0.2.2 - - [21/Jun/2026:23:49:36 +0000] \"GET /cut\n".to_owned(),
        record("[2001:db8::1]:443", "21/Jun/2026:23:49:37 +0000"),
    ]
    .concat();
    let log = file("junk.log", log);
    let figures = replay(&log, "1/s", "1");
    assert_eq!(figures["lines"], 5);
    assert_eq!(figures["records"], 3);
    assert_eq!(figures["unreadable"], 2);
    assert_eq!(figures["clients"], 3);
    assert_eq!(figures["without_offset"], 1);
    assert_eq!(
        figures["unreadable_by_reason"],
        json!({"empty": 1, "open_request": 1})
    );
    let name = log.to_str().unwrap();
    let cut = "192.0.2.2 - - [21/Jun/2026:23:49:36 +0000] \"GET /cut";
    let shown = json!([
        {"file": name, "line": 3, "reason": "empty", "text": ""},
        {"file": name, "line": 4, "reason": "open_request", "text": cut},
    ]);
    assert_eq!(figures["unreadable_shown"], shown);
    // The missing offset was taken for UTC: it falls between its neighbours.
    assert_eq!(figures["out_of_order"], 0);

    let text = tollgate(["replay", name, "--rate=1/s"]).stdout;
    assert!(text.contains("1 without offset, read as UTC"), "{text}");
    assert!(text.contains("junk.log:3: empty line\n"), "{text}");
    assert!(
        text.contains("junk.log:4: request without its closing quote\n"),
        "{text}"
    );
}

#[test]
fn continuation_lines_are_counted_as_such() {
    let log = [
        record("a", "21/Jun/2026:23:49:36 +0000"),
        " \"curl/7.54.0\"\n\t\"more\"\n".to_owned(),
        record("a", "21/Jun/2026:23:49:37 +0000"),
    ]
    .concat();
    let figures = replay(&file("continuation", log), "1/s", "1");
    assert_eq!(figures["records"], 2);
    assert_eq!(figures["unreadable_by_reason"], json!({"continuation": 2}));
}

#[test]
fn lines_and_names_beyond_their_bounds_are_unreadable() {
    let good = record("a", "21/Jun/2026:23:49:36 +0000");
    let log = [
        good.clone(),
        record(&"b".repeat(1_025), "21/Jun/2026:23:49:36 +0000"),
        format!("{}{}\n", good.trim_end(), "x".repeat(200_000)),
        record("a", "01/Jan/2500:00:00:00 +0000"),
        good.clone(),
    ]
    .concat();
    let figures = replay(&file("bounds", log), "1/s", "1");
    assert_eq!(figures["records"], 2);
    let reasons = json!({"client_too_long": 1, "line_too_long": 1, "time_out_of_range": 1});
    assert_eq!(figures["unreadable_by_reason"], reasons);
    assert_eq!(figures["unreadable_shown"][1]["line"], 3);
}

#[test]
fn only_the_first_five_are_shown() {
    let log = format!(
        "{}{}",
        record("a", "21/Jun/2026:23:49:36"),
        "junk\n".repeat(1_000)
    );
    let log = file("five.log", log);
    let figures = replay(&log, "1/s", "1");
    assert_eq!(figures["unreadable"], 1_000);
    assert_eq!(figures["unreadable_shown"].as_array().unwrap().len(), 5);
    let text = tollgate(["replay", log.to_str().unwrap(), "--rate=1/s"]).stdout;
    assert_eq!(text.matches("five.log:").count(), 5, "{text}");
}

#[test]
fn nothing_from_a_log_moves_the_cursor() {
    // An escape sequence, the one-character form of its start, text turned round, a bare byte.
    let client = "\u{1b}[2J\u{9b}31m\u{202e}é";
    let mut log = record(client, "21/Jun/2026:23:49:36 +0000")
        .repeat(2)
        .into_bytes();
    log.extend(b"\x1b]0;title\x07 \xff\x9b junk\n");
    let log = file("cursor.log", log);
    let name = log.to_str().unwrap();
    for arguments in [
        &["replay", name, "--rate=1/s"][..],
        &["replay", name, "--rate=1/s", "--json"],
    ] {
        let run = tollgate(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        let harmless = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
        assert!(run.stdout.bytes().all(harmless), "{run:?}");
    }
    let text = tollgate(["replay", name, "--rate=1/s"]).stdout;
    assert!(
        text.contains(r"\x1B[2J\xC2\x9B31m\xE2\x80\xAE\xC3\xA9 "),
        "{text}"
    );
    // As JSON the name reads back as it was.
    assert_eq!(replay(&log, "1/s", "1")["top"][0]["client"], client);
}

/// As replacement characters, two clients had one name in JSON.
#[test]
fn names_that_are_not_utf8_stay_apart_in_json() {
    let mut log = Vec::new();
    for client in [&b"a\xff"[..], b"a\xfe", "é".as_bytes()] {
        let rest = record("", "21/Jun/2026:23:49:36 +0000");
        log.extend([client, rest.as_bytes()].concat().repeat(2));
    }
    log.extend(b"junk \xff\n");
    let figures = replay(&file("not-utf8.log", log), "1/s", "1");
    let top = figures["top"].as_array().unwrap();
    let clients: Vec<&str> = top
        .iter()
        .map(|tally| tally["client"].as_str().unwrap())
        .collect();
    assert_eq!(clients, [r"a\xFE", r"a\xFF", "é"]);
    assert_eq!(figures["unreadable_shown"][0]["text"], r"junk \xFF");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let line = record("a", "21/Jun/2026:23:49:36 +0000");
    let figures = replay(&file("mark", format!("\u{feff}{line}{line}")), "1/s", "1");
    assert_eq!(
        (&figures["clients"], &figures["top"][0]["client"]),
        (&json!(1), &json!("a"))
    );
}

#[test]
fn a_log_without_records_among_others_is_a_note() {
    let good = file("among/good", record("a", "21/Jun/2026:23:49:36 +0000"));
    let empty = file("among/empty", "");
    let binary = file("among/binary", [0, 1, 2, 3, b'\n', 0xff]);
    let paths = [&good, &empty, &binary].map(|path| path.to_str().unwrap());
    let run = tollgate(["replay"].into_iter().chain(paths).chain(["--rate=1/s"]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        run.stderr,
        format!("tollgate: {}: no record in 2 lines\n", paths[2])
    );
}

#[test]
fn standard_input_is_read_where_a_dash_stands() {
    let text = record("a", "21/Jun/2026:23:49:36 +0000").repeat(2);
    let figures = tollgate_with_stdin("replay - --rate 1/s --json", text.as_bytes()).json();
    assert_eq!(figures["limited_requests"], 1);
    let packed = crate::harness::gzip(&text);
    assert_eq!(
        tollgate_with_stdin("replay --rate 1/s --json -", &packed).json(),
        figures
    );
}
