//! Lines from readers that hand over whatever they like.

use std::io::{self, BufReader, Read};

use tollgate_cli::replay::lines::{Lines, MOST_LINE_BYTES, Raw, decoded};

use crate::harness::gzip;

/// Hands over one byte at a time, as a slow pipe does.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let one = buffer.len().min(1);
        self.0.read(&mut buffer[..one])
    }
}

fn lines_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Lines::new(decoded(Trickle(bytes)).unwrap());
    let mut all = Vec::new();
    while let Some(raw) = lines.next_line().unwrap() {
        let Raw::Line(line) = raw else {
            panic!("{raw:?}")
        };
        all.push(line.to_vec());
    }
    assert_eq!(lines.read(), all.len() as u64);
    all
}

#[test]
fn plain_text_is_split_at_newlines() {
    let table: &[(&[u8], &[&[u8]])] = &[
        (b"", &[]),
        (b"a", &[b"a"]),
        (b"\n", &[b""]),
        (b"a\n\nb", &[b"a", b"", b"b"]),
        (b"a\r\nb\n", &[b"a\r", b"b"]),
        (b"\x1f", &[b"\x1f"]),
    ];
    for (bytes, lines) in table {
        assert_eq!(&lines_of(bytes), lines, "{bytes:?}");
    }
}

#[test]
fn gzip_is_told_by_its_first_bytes_and_may_have_several_members() {
    let members = [gzip("a\nb"), gzip(""), gzip("c\nd\n")].concat();
    assert_eq!(lines_of(&members), [&b"a"[..], b"bc", b"d"]);
}

#[test]
fn a_line_that_just_fits_is_read_and_a_longer_one_is_skipped() {
    let mut bytes = vec![b'a'; MOST_LINE_BYTES];
    bytes.push(b'\n');
    bytes.extend(vec![b'b'; MOST_LINE_BYTES + 1]);
    bytes.push(b'\n');
    bytes.extend(vec![b'c'; 3 * MOST_LINE_BYTES]);
    bytes.extend(b"\nd\n");
    bytes.extend(vec![b'e'; MOST_LINE_BYTES]);

    let mut lines = Lines::new(BufReader::new(&bytes[..]));
    assert_eq!(
        lines.next_line().unwrap(),
        Some(Raw::Line(&[b'a'; MOST_LINE_BYTES]))
    );
    assert_eq!(
        lines.next_line().unwrap(),
        Some(Raw::TooLong(&[b'b'; MOST_LINE_BYTES]))
    );
    assert_eq!(
        lines.next_line().unwrap(),
        Some(Raw::TooLong(&[b'c'; MOST_LINE_BYTES]))
    );
    assert_eq!(lines.next_line().unwrap(), Some(Raw::Line(b"d")));
    assert_eq!(
        lines.next_line().unwrap(),
        Some(Raw::Line(&[b'e'; MOST_LINE_BYTES]))
    );
    assert_eq!(lines.next_line().unwrap(), None);
    assert_eq!(lines.read(), 5);
}

#[test]
fn gzip_cut_short_anywhere_is_an_error_or_no_gzip() {
    let whole = gzip("a\nb\n");
    for end in 2..whole.len() {
        let mut lines = Lines::new(decoded(&whole[..end]).unwrap());
        let error = loop {
            match lines.next_line() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{end} of {} bytes were taken for a whole file", whole.len()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{end}");
    }
}
