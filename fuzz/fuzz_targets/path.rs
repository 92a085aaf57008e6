//! See `tollgate_fuzz::path`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::path::run(bytes));
