//! See `tollgate_fuzz::snapshot`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::snapshot::run(bytes));
