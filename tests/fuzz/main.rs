//! Everything that the plugin reads and others write, given random inputs: good ones (`tests/fuzz/corpus`) cut, joined, doubled and spoiled. None may end the process,
//! hang or take memory, and what comes of each must be what others count on.
//!
//! `./dev fuzz NAME SECONDS` runs one longer than `./dev test` does; here `SPARK_FUZZ_SECONDS` or `SPARK_FUZZ_INPUTS` say how long, `SPARK_FUZZ_SEED` repeats a run, and
//! `SPARK_FUZZ_FILE` tries one file. Not coverage-guided: that needs a nightly compiler. The formats are small, and the dictionaries hold their words.
//!
//! Each target runs in a process of its own, which is this program again: one that dies of an input leaves the input's number behind (`progress.rs`), and the input is made
//! again from it and written to a file.

mod commands;
mod faults;
mod journal;
mod mutate;
mod progress;
mod properties;
mod random;
mod replies;
mod run;
mod settings;
mod symbols;
mod target;
