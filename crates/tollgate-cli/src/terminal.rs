//! Text for people: escaped, cut to fit, aligned, coloured only where colour is wanted.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};

/// What a report fits.
pub const COLUMNS: usize = 80;

/// Text from a log, fit for a terminal: printable ASCII as it is, every other byte as nginx writes
/// it, `\xNN`. One byte of the answer is one column.
///
/// ```
/// use tollgate_cli::terminal::escape;
///
/// assert_eq!(escape(b"plain \"text\""), "plain \"text\"");
/// assert_eq!(escape(b"\x1b[2J caf\xc3\xa9 \\"), r"\x1B[2J caf\xC3\xA9 \\");
/// ```
#[must_use]
pub fn escape(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\\' => escaped.push_str(r"\\"),
            b' '..=b'~' => escaped.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => _ = write!(escaped, r"\x{byte:02X}"),
        }
    }
    escaped
}

/// A message of ours with a name or a value of others in it, on one line and fit for a terminal:
/// letters of every script stay, controls and the characters that reorder text do not.
///
/// ```
/// use tollgate_cli::terminal::one_line;
///
/// assert_eq!(one_line("größe.log: no\nsuch file\u{1b}"), r"größe.log: no such file\u{1b}");
/// ```
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push(' '),
            '\'' | '"' | '\\' => line.push(c),
            _ => line.extend(c.escape_debug()),
        }
    }
    line
}

/// The first `columns` of the text, the last three being dots if there was more.
///
/// ```
/// use tollgate_cli::terminal::fit;
///
/// assert_eq!(fit("10.0.0.1", 8), "10.0.0.1");
/// assert_eq!(fit("host-1.example", 8), "host-...");
/// ```
#[must_use]
pub fn fit(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars()
        .take(columns.saturating_sub(3))
        .chain("...".chars())
        .collect()
}

/// The last `columns` of the text, the first three being dots if there was more: of a path, the end
/// tells most.
///
/// ```
/// use tollgate_cli::terminal::fit_end;
///
/// assert_eq!(fit_end("/var/log/access.log", 13), "...access.log");
/// ```
#[must_use]
pub fn fit_end(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.to_owned();
    }
    let cut = length.saturating_sub(columns.saturating_sub(3));
    "...".chars().chain(text.chars().skip(cut)).collect()
}

/// A count with its thousands apart.
///
/// ```
/// use tollgate_cli::terminal::grouped;
///
/// assert_eq!(grouped(999), "999");
/// assert_eq!(grouped(1_234_567), "1,234,567");
/// ```
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (left, digit) in (0..digits.len()).rev().zip(digits.chars()) {
        grouped.push(digit);
        if left % 3 == 0 && left != 0 {
            grouped.push(',');
        }
    }
    grouped
}

/// A share in tenths of a percent, rounded to the nearest; one that is there but rounds to nothing
/// is shown as below the least.
///
/// ```
/// use tollgate_cli::terminal::share;
///
/// assert_eq!(share(1, 3), "33.3 %");
/// assert_eq!(share(0, 3), "0.0 %");
/// assert_eq!(share(3, 206_860), "<0.1 %");
/// ```
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let half = whole.checked_div(2).unwrap_or(0);
    let doubled = part.saturating_mul(1_000).saturating_add(half);
    let tenths = doubled.checked_div(whole).unwrap_or(0);
    if tenths == 0 && part != 0 {
        return "<0.1 %".to_owned();
    }
    let (percent, tenth) = (tenths.checked_div(10).unwrap_or(0), tenths % 10);
    format!("{percent}.{tenth} %")
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// No colour.
    pub const PLAIN: Self = Self { on: false };

    /// Colour if standard output is a terminal that has it and `NO_COLOR` (<https://no-color.org>)
    /// is not set.
    #[must_use]
    pub fn for_stdout() -> Self {
        let forbidden = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            on: io::stdout().is_terminal() && !forbidden && !dumb,
        }
    }

    /// Bold: the heads of tables.
    #[must_use]
    pub fn head(self, text: &str) -> String {
        self.wrap(text, "1")
    }

    /// Yellow: what a limit would have hit.
    #[must_use]
    pub fn hit(self, text: &str) -> String {
        self.wrap(text, "33")
    }

    fn wrap(self, text: &str, code: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Standard output, or whatever stands for it: a reader that has gone away (`| head`) is no error.
/// What is written after that goes nowhere, and the command still ends with its own exit code.
#[derive(Debug)]
pub struct Output<W> {
    writer: W,
    closed: bool,
}

impl<W: Write> Output<W> {
    /// Writes to `writer` until its reader has gone.
    pub const fn new(writer: W) -> Self {
        Self {
            writer,
            closed: false,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        match self.writer.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(bytes.len())
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.writer.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}
