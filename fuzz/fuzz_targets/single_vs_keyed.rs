//! See `tollgate_fuzz::single_vs_keyed`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::single_vs_keyed::run(bytes));
