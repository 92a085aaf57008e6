//! See `tollgate_fuzz::keyed_vs_model`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::keyed_vs_model::run(bytes));
