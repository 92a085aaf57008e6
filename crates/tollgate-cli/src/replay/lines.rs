//! The lines of a log, plain or gzip, in a bounded buffer.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

/// The longest line that is read, in bytes, without its newline. Servers bound what a client can
/// make them log below it: nginx by header buffers of 8 KiB, Apache by header lines of 8,190 bytes.
pub const MOST_LINE_BYTES: usize = 65_536;

/// What [`Lines::next_line`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Raw<'a> {
    /// A line without its newline.
    Line(&'a [u8]),
    /// The first [`MOST_LINE_BYTES`] of a line that is longer; the rest was skipped.
    TooLong(&'a [u8]),
}

/// The lines of a reader, one at a time, in a buffer of at most [`MOST_LINE_BYTES`] and one.
///
/// ```
/// use tollgate_cli::replay::lines::{Lines, Raw};
///
/// let mut lines = Lines::new(&b"one\ntwo"[..]);
/// assert_eq!(lines.next_line()?, Some(Raw::Line(b"one")));
/// assert_eq!(lines.next_line()?, Some(Raw::Line(b"two")));
/// assert_eq!(lines.next_line()?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    read: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            read: 0,
        }
    }

    /// How many lines were read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next line, or `None` after the last.
    ///
    /// # Errors
    ///
    /// Those of the reader.
    pub fn next_line(&mut self) -> io::Result<Option<Raw<'_>>> {
        // One byte more than a line may have tells a line that just fits from one that does not.
        let most = u64::try_from(MOST_LINE_BYTES)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        self.buffer.clear();
        let mut limited = self.reader.by_ref().take(most);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.read = self.read.saturating_add(1);
        if let Some(line) = self.buffer.strip_suffix(b"\n") {
            return Ok(Some(Raw::Line(line)));
        }
        match self.buffer.get(..MOST_LINE_BYTES) {
            Some(start) if self.buffer.len() > MOST_LINE_BYTES => {
                self.reader.skip_until(b'\n')?;
                Ok(Some(Raw::TooLong(start)))
            }
            _ => Ok(Some(Raw::Line(&self.buffer))),
        }
    }
}

/// What files that are not read begin with, and the program that unpacks them.
const PACKED: [(&[u8], &str); 3] = [
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
];

/// Reads gzip, of as many members as there are, where the first two bytes are those of gzip, and
/// plain text otherwise, whatever the file's name.
///
/// ```
/// use std::io::BufRead;
/// use tollgate_cli::replay::lines::decoded;
///
/// let mut text = String::new();
/// decoded(&b"plain"[..])?.read_line(&mut text)?;
/// assert_eq!(text, "plain");
/// assert!(decoded(&b"BZh91AY&SY"[..]).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Those of the reader; [`Unsupported`](io::ErrorKind::Unsupported) for zstd, xz and bzip2, which
/// would otherwise be taken for text without a record.
pub fn decoded<'a, R: Read + 'a>(mut reader: R) -> io::Result<Box<dyn BufRead + 'a>> {
    // A pipe may hand over a single byte at first, so the start is collected, not peeked at.
    let mut start = Vec::new();
    reader.by_ref().take(6).read_to_end(&mut start)?;
    if let Some((_, program)) = PACKED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("packed by {program}; try {program} -dc FILE | tollgate replay - ..."),
        ));
    }
    let is_gzip = start.starts_with(b"\x1f\x8b");
    let whole = BufReader::with_capacity(MOST_LINE_BYTES, Cursor::new(start).chain(reader));
    if is_gzip {
        let text = MultiGzDecoder::new(whole);
        return Ok(Box::new(BufReader::with_capacity(MOST_LINE_BYTES, text)));
    }
    Ok(Box::new(whole))
}
