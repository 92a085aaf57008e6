//! JSON that is safe to show: one line, and nothing in it but printable ASCII.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// The value on one line, without a newline. Names from logs may hold what moves a terminal's
/// cursor or turns its text round; beyond ASCII everything is written `\uNNNN`, which reads back
/// as the same text.
///
/// ```
/// use tollgate_cli::json::line;
///
/// assert_eq!(line(&["é\u{9b}2J", "\u{1f9ea}"])?, r#"["\u00e9\u009b2J","\ud83e\uddea"]"#);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// A value that JSON cannot hold.
pub fn line(value: &impl Serialize) -> io::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Ascii))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for c in fragment.chars() {
            if matches!(c, ' '..='~') {
                write!(writer, "{c}")?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}
