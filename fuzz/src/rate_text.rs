//! Rates from any text and any float.

use tollgate::{Rate, RateError};

/// Reads the bytes as text, and the first eight of them as a float.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        survives_printing(text.parse(), text);
    }
    if let Some(bits) = bytes.first_chunk() {
        float(f64::from_bits(u64::from_le_bytes(*bits)));
    }
}

fn float(per_second: f64) {
    let rate = Rate::try_from(per_second);
    survives_printing(rate.clone(), &format!("{per_second:?}"));
    // A float means the shortest decimal that prints as it, which the text says digit for digit.
    // The errors differ in the value they repeat, so only what is held is compared.
    if per_second.is_finite() {
        let text = format!("{per_second}/s");
        assert_eq!(rate.ok(), text.parse().ok(), "{per_second:?} as {text}");
    }
}

fn survives_printing(rate: Result<Rate, RateError>, from: &str) {
    match rate {
        Ok(rate) => assert_eq!(rate.to_string().parse(), Ok(rate), "{from:?} as {rate}"),
        Err(error) => assert!(error.to_string().starts_with("rate "), "{from:?}: {error}"),
    }
}
