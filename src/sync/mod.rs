//! The only lock-free code. Everything here is generic: it knows no stacks, samples or Python.
#![allow(unsafe_code)]

mod primitive;
mod seqlock;

pub use seqlock::{ReadError, SeqStack};
