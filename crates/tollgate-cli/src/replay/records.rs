//! What is kept of a log: 16 bytes a record, and each client's name once.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::io::{self, BufRead};

use super::line::{Line, Reason, parse};
use super::lines::{Lines, Raw};

/// How many unreadable lines are kept to be shown.
pub const MOST_SHOWN: usize = 5;

/// Bytes kept of an unreadable line that will be shown.
const MOST_SHOWN_BYTES: usize = 256;

/// One request: when, and whose. 16 bytes; a log of a hundred million fits a laptop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// Whose, by number: see [`Names`].
    pub client: u32,
}

/// A line that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The place of its input among those given.
    pub input: usize,
    /// Counted from 1.
    pub line: u64,
    /// Why.
    pub reason: Reason,
    /// Its first bytes.
    pub text: Vec<u8>,
}

/// Numbers for what tells records apart, from 0.
pub trait Names {
    /// What the numbers stand for.
    type All;
    /// The number of a record; `None` if there are more than a `u32` counts.
    fn number(&mut self, line: &Line<'_>) -> Option<u32>;
    /// All of them, by number.
    fn into_all(self) -> Self::All;
}

/// Numbers for things, in the order in which they came.
#[derive(Debug)]
pub struct Numbered<T>(HashMap<T, u32>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Hash + Eq> Numbered<T> {
    /// The number of a thing, which is made only if it is new.
    pub fn number<Q>(&mut self, thing: &Q, make: impl FnOnce(&Q) -> T) -> Option<u32>
    where
        T: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(&number) = self.0.get(thing) {
            return Some(number);
        }
        let number = u32::try_from(self.0.len()).ok()?;
        self.0.insert(make(thing), number);
        Some(number)
    }

    /// All of them, by number.
    #[must_use]
    pub fn into_all(self) -> Vec<T> {
        let mut all: Vec<(T, u32)> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|&(_, number)| number);
        all.into_iter().map(|(thing, _)| thing).collect()
    }
}

/// The clients' names.
#[derive(Debug, Default)]
pub struct Clients(Numbered<Box<[u8]>>);

impl Names for Clients {
    type All = Vec<Box<[u8]>>;

    fn number(&mut self, line: &Line<'_>) -> Option<u32> {
        self.0.number(line.client, |name| name.into())
    }

    fn into_all(self) -> Self::All {
        self.0.into_all()
    }
}

/// The records of all inputs, and an account of every line.
#[derive(Debug)]
pub struct Log<N = Clients> {
    records: Vec<Record>,
    names: N,
    account: Account,
}

/// What became of the lines. `lines` is `records` and `unreadable` together, always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// All lines.
    pub lines: u64,
    /// Those that were read.
    pub records: u64,
    /// Those that were not.
    pub unreadable: u64,
    /// Those that were not, by reason.
    pub by_reason: BTreeMap<Reason, u64>,
    /// The first [`MOST_SHOWN`] of those that were not.
    pub shown: Vec<Unreadable>,
    /// Records whose time had no offset; it was taken for UTC.
    pub without_offset: u64,
    /// Records earlier than the one before them in the same input.
    pub out_of_order: u64,
}

/// Records in time order, and what their numbers stand for.
#[derive(Debug)]
pub struct Parts<A = Vec<Box<[u8]>>> {
    /// In time order; those of one instant as they were read.
    pub records: Vec<Record>,
    /// The names, or what else tells them apart.
    pub clients: A,
    /// The account.
    pub account: Account,
}

impl<N: Names> Log<N> {
    /// Nothing yet, to be told apart so.
    pub fn new(names: N) -> Self {
        Self {
            records: Vec::new(),
            names,
            account: Account::default(),
        }
    }

    /// Reads every line of one input; `input` is its place among those given. Answers how many
    /// records it held, of how many lines.
    ///
    /// # Errors
    ///
    /// Those of the reader; more clients than a `u32` counts.
    pub fn read(&mut self, input: usize, reader: impl BufRead) -> io::Result<(u64, u64)> {
        let before = (self.account.records, self.account.lines);
        let mut lines = Lines::new(reader);
        let mut previous_ns = 0;
        loop {
            let number = lines.read().saturating_add(1);
            let (text, parsed) = match lines.next_line()? {
                None => break,
                Some(Raw::TooLong(text)) => (text, Err(Reason::LineTooLong)),
                Some(Raw::Line(text)) => {
                    // Editors and shells of Windows put a byte order mark before the first line.
                    let text = match text.strip_prefix(b"\xef\xbb\xbf") {
                        Some(rest) if number == 1 => rest,
                        _ => text,
                    };
                    (text, parse(text))
                }
            };
            self.account.lines = self.account.lines.saturating_add(1);
            match parsed {
                Ok(line) => previous_ns = self.add(&line, previous_ns)?,
                Err(reason) => self.account.count_unreadable(input, number, reason, text),
            }
        }
        let Account { records, lines, .. } = self.account;
        Ok((
            records.saturating_sub(before.0),
            lines.saturating_sub(before.1),
        ))
    }

    /// Adds a record, and answers its time.
    fn add(&mut self, line: &Line<'_>, previous_ns: u64) -> io::Result<u64> {
        let too_many = || io::Error::other("more than 4294967296 clients");
        let client = self.names.number(line).ok_or_else(too_many)?;
        self.records.push(Record {
            at_ns: line.at_ns,
            client,
        });
        let account = &mut self.account;
        account.records = account.records.saturating_add(1);
        account.without_offset = account
            .without_offset
            .saturating_add(u64::from(!line.has_offset));
        account.out_of_order = account
            .out_of_order
            .saturating_add(u64::from(line.at_ns < previous_ns));
        Ok(line.at_ns)
    }

    /// Puts the records in time order.
    #[must_use]
    pub fn into_parts(mut self) -> Parts<N::All> {
        // Most logs are in order already, and then the sort's buffer is not asked for: half of
        // the records' own memory. Stable, so that a log is replayed as written within an instant.
        if !self.records.is_sorted_by_key(|record| record.at_ns) {
            self.records.sort_by_key(|record| record.at_ns);
        }
        Parts {
            records: self.records,
            clients: self.names.into_all(),
            account: self.account,
        }
    }
}

impl Account {
    fn count_unreadable(&mut self, input: usize, line: u64, reason: Reason, text: &[u8]) {
        self.unreadable = self.unreadable.saturating_add(1);
        let count = self.by_reason.entry(reason).or_default();
        *count = count.saturating_add(1);
        if self.shown.len() < MOST_SHOWN {
            let text = text.get(..MOST_SHOWN_BYTES).unwrap_or(text).to_vec();
            self.shown.push(Unreadable {
                input,
                line,
                reason,
                text,
            });
        }
    }
}
