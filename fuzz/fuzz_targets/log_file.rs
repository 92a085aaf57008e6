//! See `tollgate_fuzz::log_file`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::log_file::run(bytes));
