//! The figures as text for people and as JSON for programs.

use std::fmt::Write as _;
use std::io;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::policy::{LimitFigures, PolicyFigures};
use super::records::{Account, Unreadable};
use super::tally::{Figures, Summary, Tally};
use crate::json;
use crate::terminal::{COLUMNS, Paint, escape, fit, fit_end, grouped, one_line, share};

/// The figures as aligned text. `names` are those of the inputs.
#[must_use]
pub fn text(figures: &Figures, names: &[String], paint: Paint) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    _ = writeln!(text, "{:<18} {}", "limit", figures.quota);
    _ = write_summary(&mut text, &figures.summary, paint);
    _ = write_top(&mut text, &figures.top, paint);
    _ = write_unreadable(&mut text, &figures.summary.account, names, paint);
    text
}

/// What a policy did as aligned text; `file` is its file.
#[must_use]
pub fn policy_text(figures: &PolicyFigures, file: &str, names: &[String], paint: Paint) -> String {
    let mut text = String::new();
    let file = fit_end(&one_line(file), COLUMNS.saturating_sub(19));
    // Writing to a string cannot fail.
    _ = writeln!(text, "{:<18} {file}", "policy");
    _ = write_summary(&mut text, &figures.summary, paint);
    for limit in &figures.limits {
        _ = write_limit(&mut text, limit, paint);
    }
    _ = write_unreadable(&mut text, &figures.summary.account, names, paint);
    text
}

fn write_limit(
    text: &mut String,
    limit: &LimitFigures,
    paint: Paint,
) -> Result<(), std::fmt::Error> {
    let shadow = if limit.is_shadow { " (shadow)" } else { "" };
    writeln!(text, "\n{}", paint.head(&format!("{}{shadow}", limit.name)))?;
    writeln!(text, "limit              {}", limit.rule)?;
    writeln!(text, "key                {}", limit.key)?;
    if !limit.untold.is_empty() {
        let needs = limit.untold.join(", ");
        return writeln!(text, "not tried          the log does not tell {needs}");
    }
    let width = grouped(limit.requests).len();
    let figures = [
        ("requests", limit.requests, None),
        (
            "limited requests",
            limit.limited_requests,
            Some(limit.requests),
        ),
        ("clients", limit.clients, None),
        (
            "limited clients",
            limit.limited_clients,
            Some(limit.clients),
        ),
    ];
    for (label, count, whole) in figures {
        let share = whole.map_or_else(String::new, |whole| format!("  {:>7}", share(count, whole)));
        let line = format!("{label:<18} {:>width$}{share}", grouped(count));
        let is_hit = whole.is_some() && count > 0;
        writeln!(text, "{}", if is_hit { paint.hit(&line) } else { line })?;
    }
    if limit.client_limit > 0 {
        let count = grouped(limit.client_limit);
        writeln!(text, "without a place    {count:>width$}")?;
    }
    write_top(text, &limit.top, paint)
}

fn write_summary(
    text: &mut String,
    figures: &Summary,
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

fn write_top(text: &mut String, top: &[Tally], paint: Paint) -> Result<(), std::fmt::Error> {
    if top.is_empty() {
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
    let rows: Vec<[String; 5]> = std::iter::once(heads).chain(top.iter().map(row)).collect();
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
    json::line(&JsonFigures {
        rate: figures.quota.rate().to_string(),
        burst: figures.quota.burst(),
        summary: json_summary(&figures.summary, names),
        top: figures.top.iter().map(json_tally).collect(),
    })
}

/// What a policy did as one line of JSON.
///
/// # Errors
///
/// None but those of writing to memory.
pub fn policy_json(figures: &PolicyFigures, file: &str, names: &[String]) -> io::Result<String> {
    let limit = |limit: &LimitFigures| JsonLimit {
        name: limit.name.clone(),
        limit: limit.rule.clone(),
        shadow: limit.is_shadow,
        not_told: limit.untold.clone(),
        requests: limit.requests,
        limited_requests: limit.limited_requests,
        client_limit: limit.client_limit,
        clients: limit.clients,
        limited_clients: limit.limited_clients,
        top: limit.top.iter().map(json_tally).collect(),
    };
    json::line(&JsonPolicy {
        policy: file.to_owned(),
        summary: json_summary(&figures.summary, names),
        limits: figures.limits.iter().map(limit).collect(),
    })
}

#[derive(Serialize)]
struct JsonPolicy {
    policy: String,
    #[serde(flatten)]
    summary: JsonSummary,
    limits: Vec<JsonLimit>,
}

#[derive(Serialize)]
struct JsonLimit {
    name: String,
    limit: String,
    shadow: bool,
    not_told: Vec<String>,
    requests: u64,
    limited_requests: u64,
    client_limit: u64,
    clients: u64,
    limited_clients: u64,
    top: Vec<JsonTally>,
}

fn json_summary(summary: &Summary, names: &[String]) -> JsonSummary {
    let account = &summary.account;
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
    JsonSummary {
        first: timestamp(summary.first_ns).to_string(),
        last: timestamp(summary.last_ns).to_string(),
        lines: account.lines,
        records: account.records,
        out_of_order: account.out_of_order,
        without_offset: account.without_offset,
        unreadable: account.unreadable,
        unreadable_by_reason: by_reason.collect(),
        unreadable_shown: account.shown.iter().map(shown).collect(),
        clients: summary.clients,
        limited_requests: summary.limited_requests,
        limited_clients: summary.limited_clients,
    }
}

fn json_tally(tally: &Tally) -> JsonTally {
    JsonTally {
        client: utf8_or_escaped(&tally.client),
        requests: tally.requests,
        limited: tally.limited,
        longest_wait_ns: tally.longest_wait.as_nanos(),
    }
}

#[derive(Serialize)]
struct JsonFigures {
    rate: String,
    burst: u64,
    #[serde(flatten)]
    summary: JsonSummary,
    top: Vec<JsonTally>,
}

#[derive(Serialize)]
struct JsonSummary {
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
