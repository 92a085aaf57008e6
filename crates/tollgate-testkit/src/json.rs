//! JSON objects whose errors say which field is wrong, as a path: `calls[3].cost: ...`.
//!
//! Derived readers name the place in the text only, and take `null` for a field that is absent.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// An object as it is written: every field may be absent, none may be unknown, twice or null.
macro_rules! object {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(Default, serde::Serialize)]
        pub(crate) struct $name {
            $(#[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) $field: Option<$type>,)*
        }

        impl<'de> serde::de::Deserialize<'de> for $name {
            fn deserialize<D: serde::de::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> serde::de::Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<$name, A::Error> {
                        let mut object = $name::default();
                        while let Some(field) = map.next_key::<String>()? {
                            match field.as_str() {
                                $(stringify!($field) => {
                                    let value = map.next_value();
                                    $crate::json::put(&mut object.$field, &field, value)?;
                                })*
                                _ => {
                                    let known: &[&str] = &[$(stringify!($field)),*];
                                    return Err(serde::de::Error::custom(format_args!(
                                        "unknown field `{field}`, expected one of {}",
                                        known.join(", "),
                                    )));
                                }
                            }
                        }
                        Ok(object)
                    }
                }

                from.deserialize_map(Fields)
            }
        }
    };
}

pub(crate) use object;

pub(crate) fn put<T, E: Error>(
    slot: &mut Option<T>,
    field: &str,
    value: Result<T, E>,
) -> Result<(), E> {
    let value = value.map_err(|error| below(&format!(".{field}"), &error))?;
    if slot.replace(value).is_some() {
        return Err(E::custom(format_args!("{field} is given twice")));
    }
    Ok(())
}

/// The error, as seen from one step further up: `.calls`, then `[3]`, then `.cost`, then a colon
/// and what is wrong.
fn below<E: Error>(step: &str, error: &E) -> E {
    let text = error.to_string();
    let colon = if text.starts_with(['.', '[']) {
        ""
    } else {
        ": "
    };
    E::custom(format_args!("{step}{colon}{text}"))
}

/// A list whose errors say at which place.
#[derive(Serialize)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let mut items = Vec::new();
                loop {
                    let item = seq.next_element();
                    match item.map_err(|error| below(&format!("[{}]", items.len()), &error))? {
                        Some(item) => items.push(item),
                        None => return Ok(List(items)),
                    }
                }
            }
        }

        from.deserialize_seq(Items(PhantomData))
    }
}

/// The field's value, or that it is missing.
pub(crate) fn need<T>(field: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{field} is missing"))
}

/// That the fields which were given do not belong where they stand.
pub(crate) fn no_place_for(given: &[(&str, bool)], beside: &str) -> Result<(), String> {
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(format!("{field} does not belong beside {beside}")),
        None => Ok(()),
    }
}

/// The value on one line, spaced as the trace files are: `{"at_ns": 0, "client": "a"}`.
pub(crate) fn line(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced));
    debug_assert!(
        written.is_ok(),
        "text and numbers under names that are text"
    );
    String::from_utf8(bytes).unwrap_or_default()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        w.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}
