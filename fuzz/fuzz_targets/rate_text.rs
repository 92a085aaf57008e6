//! See `tollgate_fuzz::rate_text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::rate_text::run(bytes));
