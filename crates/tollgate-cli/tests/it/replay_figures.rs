//! The figures of real logs. They were computed by a script of its own in exact fractions:
//! `logs/SOURCE.md` says how.

use serde_json::{Value, json};

use crate::harness::{file, gzip, log, record, replay, tollgate};

/// What [`Value`] says of these names.
fn of(figures: &Value, names: &[&str]) -> Value {
    names.iter().map(|&name| figures[name].clone()).collect()
}

#[test]
fn every_log_gives_the_figures_of_an_exact_bucket_a_client() {
    let names = [
        "records",
        "unreadable",
        "clients",
        "out_of_order",
        "limited_requests",
        "limited_clients",
    ];
    let table = [
        (
            "data-api-2024.combined",
            "1/s",
            "1",
            [10_479, 5_796, 917, 0, 3_017, 14],
        ),
        (
            "data-api-2024.combined",
            "5/s",
            "10",
            [10_479, 5_796, 917, 0, 35, 1],
        ),
        (
            "blog-2015-shuffled.combined",
            "1/s",
            "1",
            [10_000, 0, 1_753, 4_915, 773, 186],
        ),
        (
            "probes-2015.combined",
            "1/s",
            "1",
            [3_456, 0, 520, 0, 175, 76],
        ),
        (
            "nasa-1995-head.common",
            "1/s",
            "1",
            [4_000, 0, 416, 0, 318, 174],
        ),
        (
            "wordpress-2016-head.combined",
            "5/s",
            "10",
            [20_000, 0, 1_349, 553, 630, 66],
        ),
        (
            "wordpress-2016-head.combined",
            "1/s",
            "1",
            [20_000, 0, 1_349, 553, 3_088, 231],
        ),
    ];
    for (name, rate, burst, expected) in table {
        let figures = replay(&log(&format!("{name}.log.gz")), rate, burst);
        assert_eq!(
            of(&figures, &names),
            json!(expected),
            "{name} {rate} burst {burst}"
        );
    }
}

#[test]
fn the_span_is_in_utc() {
    let table = [
        (
            "data-api-2024.combined",
            "2024-05-12T00:00:17Z",
            "2024-05-20T23:54:29Z",
        ),
        (
            "nasa-1995-head.common",
            "1995-07-01T04:00:01Z",
            "1995-07-01T05:08:54Z",
        ),
        (
            "probes-2015.combined",
            "2015-10-25T03:11:25Z",
            "2015-10-30T14:59:39Z",
        ),
        (
            "wordpress-2016-head.combined",
            "2016-02-20T05:00:45Z",
            "2016-02-24T07:00:27Z",
        ),
    ];
    for (name, first, last) in table {
        let figures = replay(&log(&format!("{name}.log.gz")), "1/s", "1");
        assert_eq!(
            of(&figures, &["first", "last"]),
            json!([first, last]),
            "{name}"
        );
    }
}

#[test]
fn the_clients_hit_most_come_first_and_ties_are_in_order_of_name() {
    let figures = replay(&log("nasa-1995-head.common.log.gz"), "1/s", "1");
    let top = figures["top"].as_array().unwrap();
    assert_eq!(top.len(), 10);
    let rows: Vec<Value> = top
        .iter()
        .map(|row| of(row, &["client", "requests", "limited"]))
        .take(5)
        .collect();
    let expected = json!([
        ["10.0.6.200", 43, 7],
        ["10.0.39.234", 27, 6],
        ["host-240.example", 13, 6],
        ["host-284.example", 34, 5],
        ["host-39.example", 58, 5],
    ]);
    assert_eq!(json!(rows), expected);
}

#[test]
fn top_bounds_the_list_and_only_the_list() {
    let nasa = log("nasa-1995-head.common.log.gz");
    for (top, expected) in [("0", 0), ("3", 3), ("100000", 174)] {
        let arguments = [
            "replay",
            nasa.to_str().unwrap(),
            "--rate=1/s",
            "--json",
            "--top",
            top,
        ];
        let figures = tollgate(arguments).json();
        assert_eq!(figures["top"].as_array().unwrap().len(), expected);
        assert_eq!(figures["limited_clients"], 174);
    }
}

#[test]
fn an_absent_burst_is_the_tokens_of_the_rate() {
    let nasa = log("nasa-1995-head.common.log.gz");
    let table = [
        ("5/s", "5/s", 5),
        ("5.0/s", "5/s", 5),
        ("1/10s", "1/10s", 1),
        ("10/1m", "10/min", 10),
        ("10/100s", "10/100s", 10),
        ("100/min", "100/min", 100),
        // Written with a fraction: its least whole tokens, however it is spelt.
        ("0.5/s", "5/10s", 1),
        ("0.50/s", "5/10s", 1),
        ("0.25/s", "25/100s", 1),
        ("0.125/s", "125/1000s", 1),
        ("2.5/s", "25/10s", 5),
        ("0.3/s", "3/10s", 3),
        ("1.5/2min", "15/20min", 3),
    ];
    for (text, rate, burst) in table {
        let arguments = ["replay", nasa.to_str().unwrap(), "--rate", text, "--json"];
        let figures = tollgate(arguments).json();
        assert_eq!(
            of(&figures, &["rate", "burst"]),
            json!([rate, burst]),
            "{text}"
        );
    }
}

#[test]
fn gzip_and_plain_text_give_the_same_whatever_the_names() {
    let text = record("a", "21/Jun/2026:23:49:36 +0000").repeat(3);
    let plain = replay(&file("same/plain.gz", &text), "1/s", "1");
    let packed = replay(&file("same/packed.log", gzip(&text)), "1/s", "1");
    let members: Vec<u8> = text
        .lines()
        .flat_map(|line| gzip(format!("{line}\n")))
        .collect();
    let members = replay(&file("same/members.log", members), "1/s", "1");
    assert_eq!(plain["limited_requests"], 2);
    assert_eq!(packed, plain);
    assert_eq!(members, plain);
}

/// A clock set back used to mint tokens or refuse everybody: records are put in order first.
#[test]
fn records_out_of_order_are_sorted_and_counted() {
    let lines = |times: &[&str]| -> String {
        times
            .iter()
            .map(|time| record("a", &format!("21/Jun/2026:{time} +0000")))
            .collect()
    };
    let table: [(&str, &[&str], u64); 2] = [
        (
            "order/step",
            &["12:00:10", "12:00:09", "12:00:10", "12:00:11"],
            1,
        ),
        (
            "order/nine-minutes",
            &["12:48:50", "12:39:12", "12:39:24", "12:39:24"],
            1,
        ),
    ];
    for (name, times, out_of_order) in table {
        let figures = replay(&file(name, lines(times)), "1/s", "1");
        let names = ["records", "out_of_order", "limited_requests"];
        assert_eq!(of(&figures, &names), json!([4, out_of_order, 1]), "{name}");
    }
}

#[test]
fn offsets_are_honoured() {
    // The same second in Paris, New York and Kathmandu; then one second later.
    let log = [
        record("a", "21/Jun/2026:14:00:00 +0200"),
        record("a", "21/Jun/2026:08:00:00 -0400"),
        record("a", "21/Jun/2026:17:45:00 +0545"),
        record("a", "21/Jun/2026:12:00:01 +0000"),
    ]
    .concat();
    let figures = replay(&file("offsets", log), "1/s", "1");
    assert_eq!(
        of(&figures, &["limited_requests", "out_of_order"]),
        json!([2, 0])
    );
    let span = of(&figures, &["first", "last"]);
    assert_eq!(
        span,
        json!(["2026-06-21T12:00:00Z", "2026-06-21T12:00:01Z"])
    );
}

#[test]
fn several_logs_are_put_in_one_order() {
    let early = file("several/early", record("a", "21/Jun/2026:12:00:00 +0000"));
    let late = file(
        "several/late",
        record("a", "21/Jun/2026:12:00:01 +0000").repeat(2),
    );
    let arguments = ["replay".as_ref(), late.as_os_str(), early.as_os_str()];
    let arguments = arguments
        .into_iter()
        .chain(["--rate=1/s", "--json"].map(AsRef::as_ref));
    let figures = tollgate(arguments).json();
    // Within neither file is a record out of order.
    let names = ["records", "limited_requests", "out_of_order"];
    assert_eq!(of(&figures, &names), json!([3, 1, 0]));
}

#[test]
fn the_wait_is_the_longest_that_a_refusal_told() {
    let log = file("wait", record("a", "21/Jun/2026:12:00:00 +0000").repeat(11));
    let figures = replay(&log, "5/s", "10");
    assert_eq!(figures["top"][0]["longest_wait_ns"], 200_000_000);
}
