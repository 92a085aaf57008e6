//! Figures in few characters.

use serde::Serialize;

use crate::row::Unit;

/// An enum's word, as JSON has it.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// At most five characters: nanoseconds without their unit up to 100,000, then us, ms or s; bytes
/// likewise, then MB.
pub(crate) fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => format!("{value:.0}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ if value < 99_999.5 => format!("{value:.0}"),
        Unit::Bytes => format!("{:.0}M", value / 1e6),
        Unit::Ns if value < 999_500.0 => format!("{:.0}us", value / 1e3),
        Unit::Ns if value < 9.95e6 => format!("{:.1}ms", value / 1e6),
        Unit::Ns if value < 999.5e6 => format!("{:.0}ms", value / 1e6),
        Unit::Ns => format!("{:.1}s", value / 1e9),
    }
}

/// At most five characters.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        _ if value < 0.0095 => format!("{value:.4}").trim_start_matches('0').to_owned(),
        _ if value < 9.995 => format!("{value:.2}x"),
        _ if value < 99.95 => format!("{value:.1}x"),
        _ if value < 9_999.5 => format!("{value:.0}x"),
        _ => format!("{:.0}kx", value / 1e3),
    }
}

/// As short as it can be written: `1.25`, `.6`, `64`.
pub(crate) fn bound(value: f64) -> String {
    let text = value.to_string();
    match text.strip_prefix("0.") {
        Some(fraction) => format!(".{fraction}"),
        None => text,
    }
}

/// At most four characters: `1`, `1k`, `1.8M`.
pub(crate) fn keys(count: u32) -> String {
    match f64::from(count) {
        count if count < 1e3 => count.to_string(),
        count if count < 1e6 => format!("{}k", count / 1e3),
        count => format!("{}M", count / 1e6),
    }
}

/// Half of the way from the lowest to the highest, in percent of the median; at most three
/// characters.
pub(crate) fn spread(median: f64, (low, high): (f64, f64)) -> String {
    let percent = (high - low) / 2.0 / median * 100.0;
    match percent {
        _ if !percent.is_finite() => "-".to_owned(),
        _ if percent < 99.5 => format!("{percent:.0}"),
        _ => ">99".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_fit_their_columns() {
        let table = [
            (21.34, "21.3"),
            (99.97, "100"),
            (99_999.0, "99999"),
            (123_456.0, "123us"),
            (999_600.0, "1.0ms"),
            (9_960_000.0, "10ms"),
            (250e6, "250ms"),
            (999.7e6, "1.0s"),
            (2.7e9, "2.7s"),
        ];
        for (value, text) in table {
            assert_eq!(figure(value, Unit::Ns), text);
            assert!(text.len() <= 5);
        }
        assert_eq!(figure(123_456_789.0, Unit::Bytes), "123M");
        assert_eq!(figure(64.0, Unit::Count), "64");
    }

    #[test]
    fn ratios_and_bounds_are_short() {
        let table = [
            (0.00042, ".0004"),
            (0.25, "0.25x"),
            (9.996, "10.0x"),
            (123.4, "123x"),
            (34_567.0, "35kx"),
        ];
        for (value, text) in table {
            assert_eq!(ratio(value), text);
        }
        assert_eq!([1.25, 0.6, 64.0].map(bound), ["1.25", ".6", "64"]);
        assert_eq!([1, 1_000, 1_800_000].map(keys), ["1", "1k", "1.8M"]);
        assert_eq!(spread(10.0, (9.0, 11.0)), "10");
        assert_eq!(spread(0.0, (0.0, 0.0)), "-");
    }
}
