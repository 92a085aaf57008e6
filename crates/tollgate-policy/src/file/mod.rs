//! The policy file: TOML, of which nothing is passed over.
//!
//! Every table takes the fields that it knows; one that is left, or holds what it cannot, is an
//! error with its line, its column and what was probably meant. All errors are told, not the first
//! alone.

mod fields;
mod limit;
mod rule;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use toml::de::DeTable;

use crate::address::{PrefixError, Prefixes};
use crate::key::Part;
use crate::limit::Limit;
use crate::policy::{Policy, PolicyError};
use crate::proxies::{AddressHeader, MOST_HOPS, NetworkError, Proxies};

use fields::{At, Fields};
use limit::limit;

/// The longest file, in bytes.
pub const LONGEST_FILE: usize = 1 << 20;
/// The most errors that are told of one file.
pub const MOST_ERRORS: usize = 20;

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with it.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml(
    ///     r#"
    ///     [[limit]]
    ///     name = "per-key"
    ///     match = { path = "/api/**", method = ["GET", "POST"] }
    ///     key = ["header:x-api-key"]
    ///     rate = "5/s"
    ///     burst = 10
    ///     "#,
    /// )?;
    /// assert_eq!(policy.limits()[0].rule().to_string(), "5/s burst 10");
    ///
    /// let wrong = "[[limit]]\nname = \"a\"\nkey = []\nrate = \"5/s\"\nbrust = 10\n";
    /// assert_eq!(
    ///     Policy::from_toml(wrong).unwrap_err().to_string(),
    ///     "5:1: unknown field \"brust\"; did you mean \"burst\"?",
    /// );
    /// # Ok::<(), tollgate_policy::file::FileErrors>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, FileErrors> {
        let mut errors = Errors::new(text);
        let policy = read(text, &mut errors);
        match policy {
            Some(policy) if errors.found.is_empty() => Ok(policy),
            _ => {
                errors.found.sort_by_key(|error| (error.line, error.column));
                Err(FileErrors(errors.found))
            }
        }
    }
}

/// What is wrong with a policy file; something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(Vec<FileError>);

impl FileErrors {
    /// In the order of the file; at most 20.
    pub fn iter(&self) -> impl Iterator<Item = &FileError> {
        self.0.iter()
    }
}

impl fmt::Display for FileErrors {
    /// One line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            let before = if at > 0 { "\n" } else { "" };
            write!(f, "{before}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FileErrors {}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.problem)
    }
}

/// Errors as they are found.
#[derive(Debug)]
struct Errors<'t> {
    text: &'t str,
    found: Vec<FileError>,
}

impl<'t> Errors<'t> {
    fn new(text: &'t str) -> Self {
        let found = Vec::new();
        Self { text, found }
    }

    fn add(&mut self, at: &Range<usize>, problem: impl fmt::Display) {
        if self.are_enough() {
            return;
        }
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        let error = FileError {
            line: before.matches('\n').count().saturating_add(1),
            column: line.chars().count().saturating_add(1),
            problem: problem.to_string(),
        };
        if !self.found.contains(&error) {
            self.found.push(error);
        }
    }

    /// Whether no more are told.
    fn are_enough(&self) -> bool {
        self.found.len() >= MOST_ERRORS
    }

    /// What a step gave, or `None` with its error noted.
    fn take<T, E: fmt::Display>(&mut self, at: &Range<usize>, got: Result<T, E>) -> Option<T> {
        got.map_err(|error| self.add(at, error)).ok()
    }
}

/// Each of a list through a step that may fail; `None` if one did.
fn each<T, U, E: fmt::Display>(
    errors: &mut Errors<'_>,
    texts: Vec<At<T>>,
    step: impl Fn(T) -> Result<U, E>,
) -> Option<Vec<U>> {
    let steps = texts.into_iter();
    let done: Vec<Option<U>> = steps
        .map(|(at, text)| errors.take(&at, step(text)))
        .collect();
    done.into_iter().collect()
}

fn read(text: &str, errors: &mut Errors<'_>) -> Option<Policy> {
    if text.len() > LONGEST_FILE {
        let problem = format!(
            "the file has {} bytes; {LONGEST_FILE} are the most",
            text.len()
        );
        errors.add(&(0..0), problem);
        return None;
    }
    let file = match DeTable::parse(text) {
        Ok(file) => file,
        Err(error) => {
            let message = error.message().lines().next().unwrap_or_default();
            errors.add(&error.span().unwrap_or(0..0), message);
            return None;
        }
    };
    let mut fields = Fields::new(file.get_ref(), errors);
    let limits = fields.tables("limit");
    let clients = fields.table("clients");
    let paths = fields.table("paths");
    fields.finish();
    if limits.is_empty() {
        errors.add(&(0..0), "no limit is here; each begins with [[limit]]");
    }
    let mut names = HashSet::new();
    let mut read = Vec::new();
    for (at, table) in limits {
        if errors.are_enough() {
            return None;
        }
        let limit = limit(&at, table, errors);
        let name = table
            .get("name")
            .filter(|name| !names.insert(name.get_ref().as_str()));
        if let (Some(name), Some(limit)) = (name, &limit) {
            let problem = format!("two limits are called {:?}", limit.name());
            errors.add(&name.span(), problem);
        }
        read.push(limit);
    }
    let (proxies, prefixes) = clients.map_or_else(
        || Some((Proxies::default(), Prefixes::default())),
        |(_, table)| proxies(table, errors),
    )?;
    let ignores_case = paths.is_some_and(|(_, table)| {
        let mut fields = Fields::new(table, errors);
        let ignores_case = fields.boolean("ignore_case").unwrap_or(false);
        fields.finish();
        ignores_case
    });
    let read: Vec<Limit> = read.into_iter().collect::<Option<_>>()?;
    let policy = match Policy::new(read) {
        // Told by place already.
        Err(PolicyError::Twice { .. }) => None,
        made => errors.take(&(0..0), made),
    }?;
    let policy = policy.with_proxies(proxies).with_prefixes(prefixes);
    Some(if ignores_case {
        policy.ignoring_case()
    } else {
        policy
    })
}

fn proxies(table: &DeTable<'_>, errors: &mut Errors<'_>) -> Option<(Proxies, Prefixes)> {
    let mut fields = Fields::new(table, errors);
    let trusted = fields.texts("trusted_proxies", "a list as in [\"10.0.0.0/8\", \"unix\"]");
    let header = fields.text(
        "header",
        "the header that proxies write, as in \"x-forwarded-for\"",
    );
    let hops = fields.whole("hops", "a number of proxies, from 1");
    let ipv4 = fields.whole("ipv4_prefix", "a number of bits, 1 to 32");
    let ipv6 = fields.whole("ipv6_prefix", "a number of bits, 1 to 128");
    fields.finish();
    let named = |text: &str| {
        let read = text.parse();
        read.map_err(|error: NetworkError| format!("{text:?} is {error}"))
    };
    let trusted = each(errors, trusted.unwrap_or_default(), named);
    let header = match header {
        None => Some(AddressHeader::XForwardedFor),
        Some((at, name)) => match name.to_ascii_lowercase().as_str() {
            "x-forwarded-for" => Some(AddressHeader::XForwardedFor),
            "forwarded" => Some(AddressHeader::Forwarded),
            name => {
                let is_name = errors.take(&at, format!("header:{name}").parse::<Part>());
                is_name.map(|_| AddressHeader::One(name.to_owned()))
            }
        },
    };
    let hops = match hops {
        None => Some(None),
        Some((at, hops)) => {
            let hops = usize::try_from(hops)
                .ok()
                .filter(|hops| (1..=MOST_HOPS).contains(hops));
            let hops = hops.ok_or_else(|| format!("hops is 1 to {MOST_HOPS}"));
            errors.take(&at, hops).map(Some)
        }
    };
    let bits = |field: &Option<At<u64>>, default: u8| {
        let bits = field.as_ref().map_or(u64::from(default), |(_, bits)| *bits);
        u8::try_from(bits).unwrap_or(u8::MAX)
    };
    let prefixes = Prefixes::new(bits(&ipv4, 32), bits(&ipv6, 64));
    let at = match (&prefixes, ipv4, ipv6) {
        (Err(PrefixError::Ipv6 { .. }), _, Some((at, _))) | (_, Some((at, _)), _) => at,
        _ => 0..0,
    };
    let prefixes = errors.take(&at, prefixes);
    let proxies = Proxies::new(trusted?, header?);
    let proxies = match hops? {
        Some(hops) => proxies.hops(hops),
        None => proxies,
    };
    Some((proxies, prefixes?))
}
