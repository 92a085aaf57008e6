//! Paths in any spelling.

use std::fmt::Write as _;

use tollgate_policy::path::Path;
use tollgate_policy::pattern::{LONGEST_PATTERN, Pattern};

/// Takes the bytes as a request's target, and as a pattern.
///
/// # Panics
///
/// If the path of a bucket is not in its plain form, or does not match a pattern of itself.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(pattern) = text.parse::<Pattern>()
    {
        assert_eq!(pattern.to_string(), text);
    }
    for ignores_case in [false, true] {
        let Some(path) = Path::new(bytes, ignores_case) else {
            continue;
        };
        let plain = path.bytes();
        let segments: Vec<&[u8]> = plain.split(|byte| *byte == b'/').skip(1).collect();
        assert!(plain.starts_with(b"/"));
        let is_plain = |segment: &&[u8]| !matches!(*segment, b"" | b"." | b"..");
        assert!(plain == b"/" || segments.iter().all(is_plain), "{path}");
        let mut own = String::new();
        for byte in &plain {
            if *byte == b'/' {
                own.push('/');
            } else {
                // Writing to a string cannot fail.
                _ = write!(own, "%{byte:02x}");
            }
        }
        if own.len() <= LONGEST_PATTERN {
            let pattern: Pattern = match own.parse() {
                Ok(pattern) => pattern,
                Err(error) => panic!("{own}: {error}"),
            };
            assert!(pattern.matches(&path), "{own} {path}");
        }
        let all: Pattern = match "/**".parse() {
            Ok(all) => all,
            Err(error) => unreachable!("{error}"),
        };
        assert!(all.matches_surely(&path));
    }
}
