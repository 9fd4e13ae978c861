//! Journals as others see them: what is written is read back, and by a reader of its own too, which knows the format from `docs/journal.md` alone.

mod cost;
mod damage;
mod independent;
#[path = "../fuzz/random.rs"]
#[allow(dead_code)] // Others use all of it.
mod random;
mod sessions;
mod support;
mod writing;
