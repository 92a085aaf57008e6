//! The figures as text for people and as JSON for programs.

use std::fmt::Write as _;
use std::io;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::records::{Account, Unreadable};
use super::tally::{Figures, Tally};
use crate::json;
use crate::terminal::{COLUMNS, Paint, escape, fit, fit_end, grouped, one_line, share};

/// The figures as aligned text. `names` are those of the inputs.
#[must_use]
pub fn text(figures: &Figures, names: &[String], paint: Paint) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    _ = write_summary(&mut text, figures, paint);
    _ = write_top(&mut text, figures, paint);
    _ = write_unreadable(&mut text, &figures.account, names, paint);
    text
}

fn write_summary(
    text: &mut String,
    figures: &Figures,
    paint: Paint,
) -> Result<(), std::fmt::Error> {
    let account = &figures.account;
    let width = grouped(account.lines).len();
    let span_ns = figures.last_ns.saturating_sub(figures.first_ns);
    let span = SignedDuration::from_nanos(i64::try_from(span_ns).unwrap_or(i64::MAX));
    let count = |label: &str, count: u64, note: &str| {
        format!("{label:<18} {:>width$}  {note}", grouped(count))
            .trim_end()
            .to_owned()
    };
    writeln!(text, "limit              {}", figures.quota)?;
    writeln!(text, "first              {}", utc(figures.first_ns))?;
    writeln!(
        text,
        "last               {}  ({span:#} later)",
        utc(figures.last_ns)
    )?;
    writeln!(text, "{}", count("lines", account.lines, ""))?;
    writeln!(
        text,
        "{}",
        count("unreadable lines", account.unreadable, "")
    )?;
    writeln!(
        text,
        "{}",
        count("records", account.records, &notes(account))
    )?;
    writeln!(text, "{}", count("clients", figures.clients, ""))?;
    let limited = [
        (
            "limited requests",
            figures.limited_requests,
            account.records,
        ),
        ("limited clients", figures.limited_clients, figures.clients),
    ];
    for (label, part, whole) in limited {
        let line = count(label, part, &format!("{:>7}", share(part, whole)));
        writeln!(text, "{}", if part == 0 { line } else { paint.hit(&line) })?;
    }
    Ok(())
}

/// What was done to records that were not quite as they should be.
fn notes(account: &Account) -> String {
    let mut notes = Vec::new();
    if account.out_of_order != 0 {
        notes.push(format!(
            "{} out of order, sorted",
            grouped(account.out_of_order)
        ));
    }
    if account.without_offset != 0 {
        notes.push(format!(
            "{} without offset, read as UTC",
            grouped(account.without_offset)
        ));
    }
    notes.join("; ")
}

fn write_top(text: &mut String, figures: &Figures, paint: Paint) -> Result<(), std::fmt::Error> {
    if figures.top.is_empty() {
        return Ok(());
    }
    let heads = ["client", "requests", "limited", "share", "longest wait"].map(str::to_owned);
    let row = |tally: &Tally| {
        [
            escape(&tally.client),
            grouped(tally.requests),
            grouped(tally.limited),
            share(tally.limited, tally.requests),
            format!("{:?}", tally.longest_wait),
        ]
    };
    let rows: Vec<[String; 5]> = std::iter::once(heads)
        .chain(figures.top.iter().map(row))
        .collect();
    let mut widths = [0_usize; 5];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [client, numbers @ ..] = widths;
    let taken = numbers
        .iter()
        .fold(0_usize, |sum, width| sum.saturating_add(*width));
    let gaps = numbers.len().saturating_mul(2);
    let client = client.min(COLUMNS.saturating_sub(taken).saturating_sub(gaps));
    text.push('\n');
    for (position, [name, cells @ ..]) in rows.iter().enumerate() {
        let mut line = format!("{:<client$}", fit(name, client));
        for (cell, width) in cells.iter().zip(numbers) {
            write!(line, "  {cell:>width$}")?;
        }
        writeln!(
            text,
            "{}",
            if position == 0 {
                paint.head(&line)
            } else {
                line
            }
        )?;
    }
    Ok(())
}

fn write_unreadable(
    text: &mut String,
    account: &Account,
    names: &[String],
    paint: Paint,
) -> Result<(), std::fmt::Error> {
    if account.unreadable == 0 {
        return Ok(());
    }
    writeln!(text, "\n{}", paint.head("unreadable lines"))?;
    let width = grouped(account.unreadable).len();
    for (reason, count) in &account.by_reason {
        writeln!(text, "  {:>width$}  {reason}", grouped(*count))?;
    }
    writeln!(
        text,
        "{}",
        paint.head(&format!("the first {}", account.shown.len()))
    )?;
    for shown in &account.shown {
        let place = format!("{}:{}: ", one_line(name_of(names, shown)), shown.line);
        let reason = shown.reason.to_string();
        let left = COLUMNS.saturating_sub(2).saturating_sub(reason.len());
        writeln!(text, "  {}{reason}", fit_end(&place, left))?;
        let line = format!("    {}", escape(&shown.text));
        writeln!(text, "{}", fit(line.trim_end(), COLUMNS))?;
    }
    Ok(())
}

fn name_of<'a>(names: &'a [String], shown: &Unreadable) -> &'a str {
    names.get(shown.input).map_or("?", String::as_str)
}

/// Nanoseconds since 1970 as `2026-06-21 23:49:36 UTC`.
fn utc(ns: u64) -> String {
    timestamp(ns)
        .to_string()
        .replace('T', " ")
        .replace('Z', " UTC")
}

/// Every time that was read is before 2500, and jiff's range ends with 9999.
fn timestamp(ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::MAX)
}

/// Text from a log as JSON can hold it: as it is, or where it is not UTF-8, escaped as in the text
/// report, so that names which differ in one such byte stay apart.
fn utf8_or_escaped(text: &[u8]) -> String {
    match str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => escape(text),
    }
}

/// The figures as one line of JSON.
///
/// # Errors
///
/// None but those of writing to memory.
pub fn json(figures: &Figures, names: &[String]) -> io::Result<String> {
    let account = &figures.account;
    let by_reason = account
        .by_reason
        .iter()
        .map(|(reason, count)| (reason.name(), *count));
    let shown = |shown: &Unreadable| JsonUnreadable {
        file: name_of(names, shown).to_owned(),
        line: shown.line,
        reason: shown.reason.name(),
        text: utf8_or_escaped(&shown.text),
    };
    let tally = |tally: &Tally| JsonTally {
        client: utf8_or_escaped(&tally.client),
        requests: tally.requests,
        limited: tally.limited,
        longest_wait_ns: tally.longest_wait.as_nanos(),
    };
    json::line(&JsonFigures {
        rate: figures.quota.rate().to_string(),
        burst: figures.quota.burst(),
        first: timestamp(figures.first_ns).to_string(),
        last: timestamp(figures.last_ns).to_string(),
        lines: account.lines,
        records: account.records,
        out_of_order: account.out_of_order,
        without_offset: account.without_offset,
        unreadable: account.unreadable,
        unreadable_by_reason: by_reason.collect(),
        unreadable_shown: account.shown.iter().map(shown).collect(),
        clients: figures.clients,
        limited_requests: figures.limited_requests,
        limited_clients: figures.limited_clients,
        top: figures.top.iter().map(tally).collect(),
    })
}

#[derive(Serialize)]
struct JsonFigures {
    rate: String,
    burst: u64,
    first: String,
    last: String,
    lines: u64,
    records: u64,
    out_of_order: u64,
    without_offset: u64,
    unreadable: u64,
    unreadable_by_reason: std::collections::BTreeMap<&'static str, u64>,
    unreadable_shown: Vec<JsonUnreadable>,
    clients: u64,
    limited_requests: u64,
    limited_clients: u64,
    top: Vec<JsonTally>,
}

#[derive(Serialize)]
struct JsonUnreadable {
    file: String,
    line: u64,
    reason: &'static str,
    text: String,
}

#[derive(Serialize)]
struct JsonTally {
    client: String,
    requests: u64,
    limited: u64,
    longest_wait_ns: u128,
}
