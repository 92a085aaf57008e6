//! See `tollgate_fuzz::key_bytes`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::key_bytes::run(bytes));
