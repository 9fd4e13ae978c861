//! The only lock-free code. Everything here is generic: it knows no stacks, samples or Python.
#![allow(unsafe_code)]

mod door;
mod history;
mod pool;
mod primitive;
mod published;
mod seqlock;
mod slots;

pub use door::Door;
pub use history::History;
pub use pool::Pool;
pub use published::{Published, Publisher, Reading};
pub use seqlock::{ReadError, SeqStack, State};
pub use slots::{Filling, Owner, Slots, TakenBack, Ticket};
