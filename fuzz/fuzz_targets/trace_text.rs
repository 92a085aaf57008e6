//! See `tollgate_fuzz::trace_text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::trace_text::run(bytes));
