//! What each fuzz target does with its bytes, as plain functions: the targets in `fuzz_targets`
//! only hand over what libFuzzer found, and a test hands over the seeds.

pub mod client_address;
pub mod client_key;
pub mod key_bytes;
pub mod keyed_vs_model;
pub mod log_file;
pub mod log_line;
pub mod path;
pub mod policy_file;
pub mod rate_text;
pub mod script;
pub mod single_vs_keyed;
pub mod snapshot;
pub mod trace_text;

/// From a trace's words to a limiter: the library's own tests keep that in one place.
#[path = "../../crates/tollgate/tests/it/harness.rs"]
pub(crate) mod harness;

/// What a target does with the bytes it is given: nothing, or it panics.
pub type Run = fn(&[u8]);

/// Every target and the name of its folder of seeds.
pub const TARGETS: [(&str, Run); 12] = [
    ("client_address", client_address::run),
    ("client_key", client_key::run),
    ("key_bytes", key_bytes::run),
    ("keyed_vs_model", keyed_vs_model::run),
    ("log_file", log_file::run),
    ("log_line", log_line::run),
    ("path", path::run),
    ("policy_file", policy_file::run),
    ("rate_text", rate_text::run),
    ("single_vs_keyed", single_vs_keyed::run),
    ("snapshot", snapshot::run),
    ("trace_text", trace_text::run),
];
