//! One line of an access log, whatever bytes it is.

use tollgate_cli::replay::line::{MOST_CLIENT_BYTES, parse};

/// Reads the bytes as a line.
///
/// # Panics
///
/// If what was read is not what the line says.
pub fn run(bytes: &[u8]) {
    let Ok(line) = parse(bytes) else {
        return;
    };
    assert!(!line.client.is_empty() && line.client.len() <= MOST_CLIENT_BYTES);
    assert!(bytes.starts_with(line.client));
    assert_eq!(bytes.get(line.client.len()), Some(&b' '));
    // What follows the size is not looked at, be it cut short. A carriage return is the line's end
    // only where nothing follows it.
    let whole = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let longer = [whole, b" \"a referer cut sh\r"].concat();
    assert_eq!(parse(&longer), Ok(line));
}
