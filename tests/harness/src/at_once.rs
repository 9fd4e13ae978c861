//! Several pieces of work beside each other.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Does something with each of these, in their order, with as many at once as the machine has processors.
///
/// # Panics
/// If one of them panics, after the others have ended.
pub fn at_once<Item: Send>(items: impl IntoIterator<Item = Item>, each: impl Fn(Item) + Sync) {
    let waiting = Mutex::new(items.into_iter().collect::<VecDeque<Item>>());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some(item) = next() {
                    each(item);
                }
            });
        }
    });
}
