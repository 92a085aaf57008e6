//! The model against the traces, and the trace format against itself.

#![cfg(test)]

use std::fs;

use tollgate_testkit::{Model, Trace, traces_below, traces_dir};

fn shipped_traces() -> Vec<Trace> {
    let paths = traces_below(&traces_dir()).unwrap();
    assert!(paths.len() > 90, "{} traces", paths.len());
    paths
        .iter()
        .map(|path| Trace::parse(&fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

#[test]
fn the_model_gives_every_expected_answer() {
    for trace in shipped_traces() {
        let mut model = Model::new(trace.config.clone());
        assert_eq!(trace.calls.len(), trace.expect.len(), "{}", trace.name);
        for (n, (call, wanted)) in trace.calls.iter().zip(&trace.expect).enumerate() {
            let got = model.call(&call.client, call.cost, call.at_ns);
            assert_eq!(got, *wanted, "{}, call {n}: {call:?}", trace.name);
        }
    }
}

#[test]
fn a_trace_survives_being_written_and_read() {
    for trace in shipped_traces() {
        assert_eq!(Trace::parse(&trace.to_json()).unwrap(), trace);
    }
}

#[test]
fn a_malformed_trace_is_refused_by_the_name_of_what_is_wrong() {
    let bucket = r#""algorithm":"token-bucket","rate":{"tokens":5,"per_ns":1000000000},"burst":10"#;
    let window = r#""algorithm":"sliding-log","limit":5,"window_ns":10"#;
    let trace = |config: &str, calls: &str, rest: &str| {
        format!(r#"{{"name":"n","config":{{{config}}},"calls":[{calls}]{rest}}}"#)
    };
    let call = r#"{"at_ns":0,"client":"a"}"#;
    assert!(
        Trace::parse(&trace(bucket, call, ""))
            .unwrap()
            .expect
            .is_empty()
    );
    for (text, wanted) in [
        (String::new(), "EOF while parsing"),
        ("{}".into(), "missing field `name`"),
        (trace("", call, ""), "missing field `algorithm`"),
        (
            trace(r#""algorithm":"gcra""#, call, ""),
            "unknown variant `gcra`",
        ),
        (
            trace(r#""algorithm":"token-bucket""#, call, ""),
            "config.rate is missing",
        ),
        (
            trace(r#""algorithm":"fixed-window","limit":1"#, call, ""),
            "config.window_ns is missing",
        ),
        (
            trace(&format!("{bucket},\"limit\":3"), call, ""),
            "config.limit does not belong",
        ),
        (
            trace(&format!("{window},\"burst\":3"), call, ""),
            "config.burst does not belong",
        ),
        (
            trace(&format!("{window},\"anchor\":\"first\""), call, ""),
            "config.anchor does not belong",
        ),
        (
            trace(&format!("{bucket},\"bursts\":3"), call, ""),
            "unknown field `bursts`",
        ),
        (
            trace(&bucket.replace("burst\":10", "burst\":-1"), call, ""),
            "invalid value: integer `-1`",
        ),
        (
            trace(&bucket.replace("burst\":10", "burst\":1.5"), call, ""),
            "invalid type: floating point `1.5`",
        ),
        (
            trace(bucket, r#"{"at_ns":0}"#, ""),
            "missing field `client`",
        ),
        (
            trace(bucket, r#"{"at_ns":-1,"client":"a"}"#, ""),
            "invalid value: integer `-1`",
        ),
        (
            trace(bucket, call, r#","expect":[{},{}]"#),
            "expect: decision is missing",
        ),
        (
            trace(bucket, call, r#","expect":[{"decision":"limited"}]"#),
            "expect: remaining is missing",
        ),
        (
            trace(
                bucket,
                call,
                r#","expect":[{"decision":"too_large"},{"decision":"too_large"}]"#,
            ),
            "expect has 2 answers for 1 calls",
        ),
    ] {
        let error = Trace::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with("malformed trace: "), "{error}");
        assert!(
            error.contains(wanted),
            "{text}\n{error}\nshould say {wanted}"
        );
    }
}
