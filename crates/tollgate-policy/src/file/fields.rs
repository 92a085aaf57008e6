//! One table of a policy file, field by field.

use std::ops::Range;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Errors;

/// Where a value stands, and the value.
pub(super) type At<T> = (Range<usize>, T);

/// Names longer than this are not compared with others.
const LONGEST_COMPARED: usize = 32;

/// The fields of a table, which are taken one by one; those that are left are errors.
pub(super) struct Fields<'d, 't, 'e, 'x> {
    table: &'d DeTable<'t>,
    errors: &'e mut Errors<'x>,
    known: Vec<&'static str>,
}

impl<'d, 't, 'e, 'x> Fields<'d, 't, 'e, 'x> {
    pub(super) fn new(table: &'d DeTable<'t>, errors: &'e mut Errors<'x>) -> Self {
        let known = Vec::new();
        Self {
            table,
            errors,
            known,
        }
    }

    pub(super) fn get(&mut self, name: &'static str) -> Option<At<&'d DeValue<'t>>> {
        self.known.push(name);
        let value = self.table.get(name)?;
        Some((value.span(), value.get_ref()))
    }

    /// A field's value, or an error that says what it should have been.
    fn read<T>(
        &mut self,
        name: &'static str,
        wanted: &str,
        read: impl FnOnce(&'d DeValue<'t>) -> Option<T>,
    ) -> Option<At<T>> {
        let (at, value) = self.get(name)?;
        let read = read(value);
        if read.is_none() {
            let found = described(value);
            self.errors
                .add(&at, format!("{name} is {found}; it is {wanted}"));
        }
        Some((at, read?))
    }

    pub(super) fn text(&mut self, name: &'static str, wanted: &str) -> Option<At<&'d str>> {
        self.read(name, wanted, DeValue::as_str)
    }

    pub(super) fn whole(&mut self, name: &'static str, wanted: &str) -> Option<At<u64>> {
        self.read(name, wanted, whole)
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let (_, value) = self.read(name, "true or false", DeValue::as_bool)?;
        Some(value)
    }

    pub(super) fn duration(&mut self, name: &'static str) -> Option<At<Duration>> {
        let wanted = "a length of time, as in \"90s\" or \"1m 30s\"";
        self.read(name, wanted, |value| duration(value.as_str()?))
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Option<At<T>> {
        let quoted: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let mut wanted = quoted.join(" or ");
        let given = self
            .table
            .get(name)
            .and_then(|value| value.get_ref().as_str());
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        if let Some(meant) = given.and_then(|given| meant(given, &known)) {
            wanted.push_str(&format!("; did you mean {meant:?}?"));
        }
        self.read(name, &wanted, |value| {
            let text = value.as_str()?;
            words
                .iter()
                .find(|(word, _)| *word == text)
                .map(|(_, meant)| *meant)
        })
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&mut self, name: &'static str, wanted: &str) -> Option<Vec<At<&'d str>>> {
        let read = |value: &'d DeValue<'t>| match value.as_str() {
            Some(text) => Some(vec![(0..0, text)]),
            None => {
                let text = |value: &'d Spanned<DeValue<'t>>| {
                    Some((value.span(), value.get_ref().as_str()?))
                };
                value.as_array()?.iter().map(text).collect()
            }
        };
        let (whole, mut texts) = self.read(name, wanted, read)?;
        // A text alone stands where its field does.
        for (at, _) in texts.iter_mut().filter(|(at, _)| at.is_empty()) {
            *at = whole.clone();
        }
        Some(texts)
    }

    pub(super) fn table(&mut self, name: &'static str) -> Option<At<&'d DeTable<'t>>> {
        self.read(name, "a table", DeValue::as_table)
    }

    /// All tables of that name, as from `[[name]]`.
    pub(super) fn tables(&mut self, name: &'static str) -> Vec<At<&'d DeTable<'t>>> {
        let wanted = format!("a list of tables, each of which begins with [[{name}]]");
        let tables = self.read(name, &wanted, |value| {
            let table =
                |value: &'d Spanned<DeValue<'t>>| Some((value.span(), value.get_ref().as_table()?));
            value
                .as_array()?
                .iter()
                .map(table)
                .collect::<Option<Vec<_>>>()
        });
        tables.map_or_else(Vec::new, |(_, tables)| tables)
    }

    /// An error if a field is not there.
    pub(super) fn need(&mut self, name: &str, at: &Range<usize>, problem: &str) {
        if !self.table.contains_key(name) {
            self.errors.add(at, problem);
        }
    }

    /// Whether a field is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// An error if a field is there.
    pub(super) fn refuse(&mut self, name: &str, problem: &str) {
        if let Some(value) = self.table.get(name) {
            self.errors.add(&value.span(), problem);
        }
    }

    /// Whatever was not asked for is an error.
    pub(super) fn finish(self) {
        for name in self.table.keys() {
            if self.errors.are_enough() {
                return;
            }
            let (at, name) = (name.span(), name.get_ref());
            if self.known.iter().any(|known| *known == name) {
                continue;
            }
            let meant = meant(name, &self.known);
            let shown: String = name.chars().take(64).collect();
            let problem = match meant {
                Some(meant) => format!("unknown field {shown:?}; did you mean {meant:?}?"),
                None => format!(
                    "unknown field {shown:?}; known ones are {}",
                    self.known.join(", ")
                ),
            };
            self.errors.add(&at, problem);
        }
    }
}

/// The known name that is most like another, if one is.
fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > LONGEST_COMPARED {
        return None;
    }
    let likeness = |known: &&'k str| (strsim::damerau_levenshtein(name, known), *known);
    let (distance, nearest) = known.iter().map(likeness).min()?;
    let is_near = distance.saturating_mul(3) <= nearest.len().max(3);
    is_near.then_some(nearest)
}

/// A value as an error shows it: cut, and on one line.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => {
            let shown: String = text.chars().take(64).collect();
            format!("{shown:?}")
        }
        DeValue::Integer(number) => number.to_string().chars().take(64).collect(),
        DeValue::Float(number) => number.to_string().chars().take(64).collect(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

pub(super) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A length of time: `90s`, `1m 30s`, `2h`, `500ms`; a day is 24 hours.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let days = SpanRelativeTo::days_are_24_hours();
    Duration::try_from(span.to_duration(days).ok()?).ok()
}
