//! The traces' format.

use std::fs;

use tollgate_testkit::{Answer, Call, Random, Trace, traces_below, traces_dir};

#[test]
fn a_trace_is_written_as_it_was_read() {
    for path in traces_below(&traces_dir()).unwrap() {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            Trace::parse(&text).unwrap().to_json(),
            text,
            "{}",
            path.display()
        );
    }
}

#[test]
fn what_no_shipped_trace_holds_is_read_as_it_was_written() {
    for seed in 0..100 {
        let mut trace = Random::new(seed).trace(3);
        trace.name = String::from("\"quoted\" \\ \n\u{1f9ea}");
        trace.calls.push(Call {
            at_ns: u64::MAX,
            client: String::new(),
            cost: u64::MAX,
        });
        assert_eq!(Trace::parse(&trace.to_json()).unwrap(), trace);
        let (remaining, longest) = (u64::MAX, u128::MAX);
        trace.expect = vec![
            Answer::Allowed {
                remaining,
                delay_ns: longest,
                reset_after_ns: longest,
            },
            Answer::Limited {
                remaining,
                retry_after_ns: longest,
                reset_after_ns: longest,
            },
            Answer::ClientLimit,
            Answer::ClockBackwards,
        ];
        assert_eq!(
            Trace::parse(&trace.to_json()).unwrap(),
            trace,
            "seed {seed}"
        );
    }
    let mut empty = Random::new(0).trace(0);
    empty.expect.clear();
    assert_eq!(Trace::parse(&empty.to_json()).unwrap(), empty);
}

const BUCKET: &str =
    r#""algorithm": "token-bucket", "rate": {"tokens": 5, "per_ns": 10}, "burst": 10"#;
const WINDOW: &str = r#""algorithm": "sliding-log", "limit": 5, "window_ns": 10"#;
const CALL: &str = r#"{"at_ns": 0, "client": "a"}"#;

/// A line for each of the trace's parts: 2 is the config, 3 the calls, 4 the answers.
fn text(config: &str, calls: &str, expect: &str) -> String {
    format!(
        "{{\"name\": \"n\",\n\"config\": {{{config}}},\n\"calls\": [{calls}],\n\
         \"expect\": [{expect}]}}"
    )
}

fn says(text: &str, wanted: &str) {
    match Trace::parse(text) {
        Ok(trace) => panic!("{trace:?}\nshould be refused: {wanted}"),
        Err(error) => assert_eq!(
            error.to_string(),
            format!("malformed trace: {wanted}"),
            "{text}"
        ),
    }
}

#[test]
fn a_config_is_refused_by_the_name_of_what_is_wrong() {
    for (config, wanted) in [
        (
            String::new(),
            "config: algorithm is missing at line 2 column 12",
        ),
        (
            r#""algorithm": "gcra""#.into(),
            "config.algorithm: unknown variant `gcra`, expected one of `token-bucket`, \
             `leaky-bucket`, `fixed-window`, `sliding-log`, `sliding-window-counter` at line 2 \
             column 30",
        ),
        (
            r#""algorithm": 5"#.into(),
            "config.algorithm: expected value at line 2 column 25",
        ),
        (
            r#""algorithm": "token-bucket""#.into(),
            "config: rate is missing at line 2 column 39",
        ),
        (
            r#""algorithm": "fixed-window", "limit": 1"#.into(),
            "config: window_ns is missing at line 2 column 51",
        ),
        (
            format!(r#"{BUCKET}, "limit": 3"#),
            "config: limit does not belong beside a bucket at line 2 column 101",
        ),
        (
            format!(r#"{BUCKET}, "window_ns": 3"#),
            "config: window_ns does not belong beside a bucket at line 2 column 105",
        ),
        (
            format!(r#"{BUCKET}, "anchor": "first""#),
            "config: anchor does not belong beside a bucket at line 2 column 108",
        ),
        (
            format!(r#"{WINDOW}, "rate": {{"tokens": 1, "per_ns": 1}}"#),
            "config: rate does not belong beside a window at line 2 column 103",
        ),
        (
            format!(r#"{WINDOW}, "burst": 3"#),
            "config: burst does not belong beside a window at line 2 column 79",
        ),
        (
            format!(r#"{WINDOW}, "anchor": "first""#),
            "config: anchor does not belong beside a sliding window at line 2 column 86",
        ),
        (
            format!(r#"{WINDOW}, "max_client": 3"#),
            "config: unknown field `max_client`, expected one of algorithm, rate, burst, limit, \
             window_ns, anchor, max_clients, idle_ns at line 2 column 80",
        ),
        (
            format!(r#"{WINDOW}, "limit": 3"#),
            "config: limit is given twice at line 2 column 79",
        ),
        (
            format!(r#"{WINDOW}, "idle_ns": null"#),
            "config.idle_ns: invalid type: null, expected u64 at line 2 column 83",
        ),
        (
            BUCKET.replace(r#""burst": 10"#, r#""burst": -1"#),
            "config.burst: invalid value: integer `-1`, expected u64 at line 2 column 88",
        ),
        (
            BUCKET.replace(r#""burst": 10"#, r#""burst": 1.5"#),
            "config.burst: invalid type: floating point `1.5`, expected u64 at line 2 column 89",
        ),
        (
            BUCKET.replace(r#""burst": 10"#, r#""burst": 18446744073709551616"#),
            "config.burst: invalid type: floating point `1.8446744073709552e+19`, expected u64 \
             at line 2 column 106",
        ),
        (
            BUCKET.replace(r#""tokens": 5, "#, ""),
            "config.rate: tokens is missing at line 2 column 62",
        ),
        (
            BUCKET.replace(r#""per_ns": 10"#, r#""per_ns": "1s""#),
            r#"config.rate.per_ns: invalid type: string "1s", expected u64 at line 2 column 76"#,
        ),
        (
            BUCKET.replace(r#""per_ns": 10"#, r#""per_s": 10"#),
            "config.rate: unknown field `per_s`, expected one of tokens, per_ns at line 2 \
             column 69",
        ),
        (
            WINDOW.replace("sliding-log", "fixed-window") + r#", "anchor": "last""#,
            "config.anchor: unknown variant `last`, expected `first` or `aligned` at line 2 \
             column 85",
        ),
    ] {
        says(&text(&config, CALL, r#"{"decision": "too_large"}"#), wanted);
    }
}

#[test]
fn a_call_is_refused_by_the_name_of_what_is_wrong() {
    for (call, wanted) in [
        (
            r#"{"at_ns": 0}"#,
            "calls[1]: client is missing at line 3 column 52",
        ),
        (
            r#"{"client": "a"}"#,
            "calls[1]: at_ns is missing at line 3 column 55",
        ),
        (
            r#"{"at_ns": -1, "client": "a"}"#,
            "calls[1].at_ns: invalid value: integer `-1`, expected u64 at line 3 column 51",
        ),
        (
            r#"{"at_ns": 0, "client": 7}"#,
            "calls[1].client: invalid type: integer `7`, expected a string at line 3 column 63",
        ),
        (
            r#"{"at_ns": 0, "client": "a", "cost": "1"}"#,
            r#"calls[1].cost: invalid type: string "1", expected u64 at line 3 column 78"#,
        ),
        (
            r#"{"at_ns": 0, "client": "a", "costs": 1}"#,
            "calls[1]: unknown field `costs`, expected one of at_ns, client, cost at line 3 \
             column 74",
        ),
        (
            "[0, \"a\"]",
            "calls[1]: invalid type: sequence, expected an object at line 3 column 39",
        ),
    ] {
        says(&text(WINDOW, &format!("{CALL}, {call}"), ""), wanted);
    }
}

#[test]
fn an_answer_is_refused_by_the_name_of_what_is_wrong() {
    for (answer, wanted) in [
        ("", "expect has 0 answers for 1 calls"),
        (
            r#"{"decision": "too_large"}, {"decision": "too_large"}"#,
            "expect has 2 answers for 1 calls",
        ),
        ("{}", "expect[0]: decision is missing at line 4 column 14"),
        (
            r#"{"decision": "denied"}"#,
            "expect[0].decision: unknown variant `denied`, expected one of `allowed`, \
             `limited`, `banned`, `client_limit`, `too_large` at line 4 column 32",
        ),
        (
            r#"{"error": "clock"}"#,
            "expect[0].error: unknown variant `clock`, expected `clock_backwards` at line 4 \
             column 28",
        ),
        (
            r#"{"decision": "too_large", "error": "clock_backwards"}"#,
            "expect[0]: error does not belong beside a decision at line 4 column 65",
        ),
        (
            r#"{"decision": "too_large", "remaining": 0}"#,
            "expect[0]: remaining does not belong beside too_large at line 4 column 53",
        ),
        (
            r#"{"error": "clock_backwards", "reset_after_ns": 0}"#,
            "expect[0]: reset_after_ns does not belong beside clock_backwards at line 4 column 61",
        ),
        (
            r#"{"decision": "allowed", "remaining": 0}"#,
            "expect[0]: reset_after_ns is missing at line 4 column 51",
        ),
        (
            r#"{"decision": "allowed", "reset_after_ns": 0}"#,
            "expect[0]: remaining is missing at line 4 column 56",
        ),
        (
            r#"{"decision": "allowed", "remaining": 0, "retry_after_ns": 1}"#,
            "expect[0]: retry_after_ns does not belong beside allowed at line 4 column 72",
        ),
        (
            r#"{"decision": "limited", "remaining": 0, "reset_after_ns": 1}"#,
            "expect[0]: retry_after_ns is missing at line 4 column 72",
        ),
        (
            r#"{"decision": "limited", "delay_ns": 1}"#,
            "expect[0]: delay_ns does not belong beside limited at line 4 column 50",
        ),
        (
            r#"{"decision": "limited", "retry_after_ns": "1s"}"#,
            "expect[0].retry_after_ns: invalid number at line 4 column 54",
        ),
        (
            r#"{"decision": "limited", "retry_after_ns": -1}"#,
            "expect[0].retry_after_ns: number out of range at line 4 column 54",
        ),
    ] {
        says(&text(WINDOW, CALL, answer), wanted);
    }
}

#[test]
fn a_text_is_refused_by_what_is_wrong() {
    for (text, wanted) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        (
            "[]",
            "invalid type: sequence, expected an object at line 1 column 0",
        ),
        ("{}", "name is missing"),
        ("{\"name\": \"n\"} ", "config is missing"),
        (
            "{\"name\": \"n\",\n\"calls\": [{\"at_ns\": ",
            "calls[0].at_ns: EOF while parsing a value at line 2 column 20",
        ),
        (
            "{\"names\": \"n\"}",
            "unknown field `names`, expected one of name, config, calls, expect at line 1 column 8",
        ),
        (
            "{\"name\": \"n\",\n\"name\": \"m\"}",
            "name is given twice at line 2 column 12",
        ),
        (
            &(text(WINDOW, CALL, r#"{"decision": "too_large"}"#) + "!"),
            "trailing characters at line 4 column 39",
        ),
    ] {
        says(text, wanted);
    }
}

#[test]
fn answers_may_be_absent() {
    let text = text(WINDOW, CALL, "").replace(",\n\"expect\": []", "");
    assert!(Trace::parse(&text).unwrap().expect.is_empty());
}

#[test]
fn a_ban_is_read_as_it_was_written() {
    let banned = Answer::Banned {
        retry_after_ns: u128::MAX,
    };
    let written = format!(r#"{{"decision":"banned","retry_after_ns":{}}}"#, u128::MAX);
    assert_eq!(banned.to_string(), written);
    let read = Trace::parse(&text(WINDOW, CALL, &written)).unwrap();
    assert_eq!(read.expect, [banned]);
    assert_eq!(Trace::parse(&read.to_json()).unwrap(), read);
    for (answer, wanted) in [
        (
            r#"{"decision": "banned"}"#,
            "expect[0]: retry_after_ns is missing at line 4 column 34",
        ),
        (
            r#"{"decision": "banned", "retry_after_ns": 1, "remaining": 0}"#,
            "expect[0]: remaining does not belong beside banned at line 4 column 71",
        ),
        (
            r#"{"decision": "banned", "retry_after_ns": 1, "delay_ns": 0}"#,
            "expect[0]: delay_ns does not belong beside banned at line 4 column 70",
        ),
        (
            r#"{"decision": "banned", "retry_after_ns": 1, "reset_after_ns": 1}"#,
            "expect[0]: reset_after_ns does not belong beside banned at line 4 column 76",
        ),
    ] {
        says(&text(WINDOW, CALL, answer), wanted);
    }
}
