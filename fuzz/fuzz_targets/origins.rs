#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sottovoce::fuzzing::origins(bytes));
