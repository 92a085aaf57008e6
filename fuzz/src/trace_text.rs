//! Trace files, whatever text they are.

use tollgate_testkit::{Answer, Trace};

/// Reads the bytes as the text of a trace file.
///
/// # Panics
///
/// If what was read is written as something else.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Trace::parse(text) {
        Ok(trace) => {
            let written = trace.to_json();
            let again = Trace::parse(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
            // No answers at all and an empty list of them mean the same.
            assert_eq!(again, trace, "{written}");
            assert!(trace.expect.is_empty() || trace.expect.len() == trace.calls.len());
            for answer in &trace.expect {
                one_line(answer);
            }
        }
        Err(error) => assert!(error.to_string().starts_with("malformed trace: ")),
    }
}

fn one_line(answer: &Answer) {
    assert!(!answer.to_string().contains([' ', '\n']), "{answer}");
}
