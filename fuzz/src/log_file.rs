//! A whole log, plain or gzip, whatever bytes it is.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tollgate_cli::replay::lines::{Lines, MOST_LINE_BYTES, Raw, decoded};
use tollgate_cli::replay::records::{Clients, Log, MOST_SHOWN, Parts};

/// Reads the bytes as they are; then as what a gzip file holds, since no fuzzer guesses checksums.
///
/// # Panics
///
/// If a bound is not kept, a line is lost, or packing changes what is read.
pub fn run(bytes: &[u8]) {
    let plain = read(bytes);
    if let Ok(parts) = &plain {
        check(parts);
        assert_eq!(lines(bytes).expect("read once"), parts.account.lines);
    }
    // Text that begins as gzip would be unpacked once only.
    if bytes.starts_with(b"\x1f\x8b") {
        return;
    }
    let Ok(plain) = plain else {
        return;
    };
    let (start, end) = bytes.split_at(bytes.len() / 2);
    let members = [gzip(start), gzip(end)].concat();
    let unpacked = read(&members).expect("well packed");
    assert_eq!(unpacked.records, plain.records);
    assert_eq!(unpacked.clients, plain.clients);
    assert_eq!(unpacked.account, plain.account);
    // Cut short it is an error, never a shorter log.
    assert!(read(&members[..members.len() - 1]).is_err());
}

/// Hands over a few bytes at a time, as a pipe does.
struct Pipe<'a>(&'a [u8]);

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let few = buffer.len().min(5);
        self.0.read(&mut buffer[..few])
    }
}

fn read(bytes: &[u8]) -> io::Result<Parts> {
    let mut log = Log::new(Clients::default());
    let (records, lines) = log.read(0, decoded(bytes)?)?;
    let parts = log.into_parts();
    assert_eq!(
        (records, lines),
        (parts.account.records, parts.account.lines)
    );
    Ok(parts)
}

/// How many lines there are, each held against its bound.
fn lines(bytes: &[u8]) -> io::Result<u64> {
    let mut lines = Lines::new(decoded(Pipe(bytes))?);
    while let Some(raw) = lines.next_line()? {
        match raw {
            Raw::Line(line) => {
                assert!(line.len() <= MOST_LINE_BYTES && !line.contains(&b'\n'));
            }
            Raw::TooLong(start) => assert_eq!(start.len(), MOST_LINE_BYTES),
            other => panic!("neither a line nor the start of one: {other:?}"),
        }
    }
    Ok(lines.read())
}

fn check(parts: &Parts) {
    let account = &parts.account;
    assert_eq!(account.lines, account.records + account.unreadable);
    assert_eq!(account.unreadable, account.by_reason.values().sum::<u64>());
    assert_eq!(account.records, parts.records.len() as u64);
    assert!(account.without_offset <= account.records && account.out_of_order <= account.records);
    assert_eq!(
        account.shown.len() as u64,
        account.unreadable.min(MOST_SHOWN as u64)
    );
    assert!(account.shown.iter().all(|line| line.text.len() <= 256));
    assert!(parts.records.is_sorted_by_key(|record| record.at_ns));
    assert!(parts.clients.len() <= parts.records.len());
    let all_named = |client: u32| usize::try_from(client).is_ok_and(|n| n < parts.clients.len());
    assert!(parts.records.iter().all(|record| all_named(record.client)));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("memory takes it");
    packed.finish().expect("memory takes it")
}
