//! See `tollgate_fuzz::client_address`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::client_address::run(bytes));
