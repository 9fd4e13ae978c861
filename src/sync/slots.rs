//! Numbered places that one owner lends out and strangers fill, at most once per loan.
//!
//! **Problem.** A sampler asks a thread to write its stack somewhere. The thread answers from a signal handler: at once, much later, or never. The
//! sampler must be able to take back a place nobody answered for, without ever giving away one that is being written.
//!
//! **Why not a channel.** The writer is a signal handler: it may not allocate, wait or retry without bound.
//!
//! **Algorithm.** Each place has one word, `loan << 2 | phase`:
//!
//! ```text
//!            lend (owner)          claim (writer)         fill (writer)
//!   FREE n ---------------> LENT n+1 ----------> WRITING n+1 --------> FILLED n+1
//!     ^                        |                                           |
//!     |   take back (owner)    |                  reclaim (owner)          |
//!     +------------------------+-------------------------------------------+
//! ```
//!
//! A writer holds a ticket (place and loan number) and claims with one compare-and-exchange against exactly that loan; so does the owner who takes
//! back. One of them wins. A place in WRITING belongs to the writer alone, for as long as it takes; a writer that never finishes costs that
//! one place. The loan number makes every older ticket void.
//!
//! **Price.** One compare-and-exchange to claim, one store to fill.
//!
//! **Assumptions.** One owner at a time ([`Owner`] is that right). A loan number is 32 bits: a ticket would have to be late by 2^32 loans of the same
//! place to be taken for a new one.

use super::primitive::{AtomicBool, AtomicU64, Ordering, UnsafeCell};

const FREE: u64 = 0;
const LENT: u64 = 1;
const WRITING: u64 = 2;
const FILLED: u64 = 3;

/// The right to fill one place once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    place: u16,
    loan: u32,
}

impl Ticket {
    /// The ticket as a number below 2^48.
    pub const fn to_bits(self) -> u64 {
        (self.loan as u64) << 16 | self.place as u64
    }

    /// What [`Ticket::to_bits`] gave; the upper 16 bits are not looked at.
    pub const fn from_bits(bits: u64) -> Self {
        Ticket {
            place: bits as u16,
            loan: (bits >> 16) as u32,
        }
    }

    const fn word(self, phase: u64) -> u64 {
        (self.loan as u64) << 2 | phase
    }
}

#[derive(Debug)]
struct Place<T> {
    word: AtomicU64,
    /// For whom it is lent, so that a writer without a ticket can find it.
    label: AtomicU64,
    value: UnsafeCell<T>,
}

/// See the module's text.
#[derive(Debug)]
pub struct Slots<T> {
    places: Box<[Place<T>]>,
    owned: AtomicBool,
}

// SAFETY: `value` is reached only through the phases: by the owner in FREE and FILLED, by the one writer that won the claim in WRITING. The
// compare-and-exchange of each hand-over orders the accesses before it against those after it.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// As many places as there are values, 65,536 at most.
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let places = values.into_iter().take(1 << 16).map(|value| Place {
            word: AtomicU64::new(FREE),
            label: AtomicU64::new(0),
            value: UnsafeCell::new(value),
        });
        Slots {
            places: places.collect(),
            owned: AtomicBool::new(false),
        }
    }

    /// The owner's right, `None` while somebody else has it.
    pub fn own(&self) -> Option<Owner<'_, T>> {
        // Acquire: pairs with the Release in Owner::drop, so that this owner sees all the last one did.
        let taken = self.owned.swap(true, Ordering::Acquire);
        (!taken).then_some(Owner { slots: self })
    }

    /// Writer: takes the place if the ticket is still good.
    pub fn claim(&self, ticket: Ticket) -> Option<Filling<'_, T>> {
        let place = self.places.get(usize::from(ticket.place))?;
        place
            .word
            // Acquire: pairs with the owner's Release in `lend`, so that what it prepared is visible. Relaxed on failure: nothing is read then.
            .compare_exchange(
                ticket.word(LENT),
                ticket.word(WRITING),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .ok()?;
        Some(Filling { place, ticket })
    }

    /// Writer without a ticket: takes the first place that is lent under this label.
    pub fn claim_label(&self, label: u64) -> Option<Filling<'_, T>> {
        self.places.iter().enumerate().find_map(|(index, place)| {
            // Acquire: pairs with the Release in `lend`; the label read next is then this loan's or a later one's, and a later one fails the claim.
            let word = place.word.load(Ordering::Acquire);
            // Relaxed: ordered by the load above.
            if word & 3 != LENT || place.label.load(Ordering::Relaxed) != label {
                return None;
            }
            self.claim(Ticket {
                place: index as u16,
                loan: (word >> 2) as u32,
            })
        })
    }
}

/// A place that is being written.
#[derive(Debug)]
pub struct Filling<'a, T> {
    place: &'a Place<T>,
    ticket: Ticket,
}

impl<T> Filling<'_, T> {
    /// Writes through `write` and hands the place over. (Dropping without filling keeps the place out of use for good: a writer that was torn
    /// away has left it in an unknown state.)
    pub fn fill<R>(self, write: impl FnOnce(&mut T) -> R) -> R {
        let result = self.place.value.with_mut(|value| {
            // SAFETY: this Filling won the claim, so nobody else reaches the value until the store below.
            write(unsafe { &mut *value })
        });
        // Release: pairs with the Acquire load in `Owner::is_filled`: who sees FILLED sees the value.
        self.place.word.store(self.ticket.word(FILLED), Ordering::Release);
        result
    }
}

/// How a request to take a place back went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenBack {
    /// It is free again; the ticket is void.
    Free,
    /// A writer has it or has filled it.
    Claimed,
}

/// The right to lend places out; one at a time.
#[derive(Debug)]
pub struct Owner<'a, T> {
    slots: &'a Slots<T>,
}

impl<T> Owner<'_, T> {
    /// Lends a free place under `label`, prepared by `prepare`. `None` when none is free.
    pub fn lend(&mut self, label: u64, prepare: impl FnOnce(&mut T)) -> Option<Ticket> {
        let (index, place, word) = self.slots.places.iter().enumerate().find_map(|(index, place)| {
            // Relaxed: only an owner makes a place free, and `own` ordered the owners.
            let word = place.word.load(Ordering::Relaxed);
            (word & 3 == FREE).then_some((index, place, word))
        })?;
        place.value.with_mut(|value| {
            // SAFETY: a FREE place is the owner's, and `&mut self` is the only owner.
            prepare(unsafe { &mut *value });
        });
        // Relaxed: published by the store below.
        place.label.store(label, Ordering::Relaxed);
        let ticket = Ticket {
            place: index as u16,
            loan: ((word >> 2) as u32).wrapping_add(1),
        };
        // Release: pairs with the Acquire in `claim` and `claim_label`.
        place.word.store(ticket.word(LENT), Ordering::Release);
        Some(ticket)
    }

    fn place(&self, ticket: Ticket) -> Option<&Place<T>> {
        self.slots.places.get(usize::from(ticket.place))
    }

    /// Whether this loan has been answered.
    pub fn is_filled(&self, ticket: Ticket) -> bool {
        // Acquire: pairs with the Release in `Filling::fill`.
        self.place(ticket)
            .is_some_and(|place| place.word.load(Ordering::Acquire) == ticket.word(FILLED))
    }

    /// Looks at an answer and frees the place; `None` when there is none yet.
    pub fn reclaim<R>(&mut self, ticket: Ticket, read: impl FnOnce(&T) -> R) -> Option<R> {
        if !self.is_filled(ticket) {
            return None;
        }
        let place = self.place(ticket)?;
        let result = place.value.with(|value| {
            // SAFETY: FILLED under this loan was seen, so the writer is done and the value is the owner's.
            read(unsafe { &*value })
        });
        // Relaxed: the next to look is an owner, in `lend`.
        place.word.store(ticket.word(FREE), Ordering::Relaxed);
        Some(result)
    }

    /// Takes back a place nobody has claimed.
    pub fn take_back(&mut self, ticket: Ticket) -> TakenBack {
        let swapped = self.place(ticket).map(|place| {
            // Relaxed: nothing was written to the value that anybody reads, and the word alone decides who wins.
            place.word.compare_exchange(
                ticket.word(LENT),
                ticket.word(FREE),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
        });
        match swapped {
            Some(Ok(_)) => TakenBack::Free,
            _ => TakenBack::Claimed,
        }
    }
}

impl<T> Drop for Owner<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `own`.
        self.slots.owned.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_once_and_frees_its_place() {
        let slots = Slots::new([0u32]);
        let mut owner = slots.own().unwrap();
        let ticket = owner.lend(7, |value| *value = 1).unwrap();
        assert!(owner.lend(8, |_| ()).is_none());
        slots
            .claim(Ticket::from_bits(ticket.to_bits()))
            .unwrap()
            .fill(|value| *value += 1);
        assert!(slots.claim(ticket).is_none(), "a ticket is good once");
        assert_eq!(owner.reclaim(ticket, |value| *value), Some(2));
        assert_eq!(owner.reclaim(ticket, |value| *value), None);
        assert!(owner.lend(9, |_| ()).is_some());
    }

    #[test]
    fn a_place_that_was_taken_back_makes_its_ticket_void() {
        let slots = Slots::new([0u32]);
        let mut owner = slots.own().unwrap();
        let old = owner.lend(7, |_| ()).unwrap();
        assert_eq!(owner.take_back(old), TakenBack::Free);
        let new = owner.lend(7, |_| ()).unwrap();
        assert!(slots.claim(old).is_none());
        assert!(slots.claim(new).is_some());
    }

    #[test]
    fn a_place_that_is_being_written_is_never_lent_again() {
        let slots = Slots::new([0u32]);
        let mut owner = slots.own().unwrap();
        let ticket = owner.lend(7, |_| ()).unwrap();
        assert!(slots.claim(ticket).is_some(), "and the writer is torn away");
        assert_eq!(owner.take_back(ticket), TakenBack::Claimed);
        assert!(owner.lend(7, |_| ()).is_none());
    }

    #[test]
    fn a_label_finds_its_loan() {
        let slots = Slots::new([0u32, 0]);
        let mut owner = slots.own().unwrap();
        owner.lend(7, |_| ()).unwrap();
        let ticket = owner.lend(8, |_| ()).unwrap();
        assert!(slots.claim_label(9).is_none());
        slots.claim_label(8).unwrap().fill(|value| *value = 5);
        assert!(slots.claim_label(8).is_none());
        assert_eq!(owner.reclaim(ticket, |value| *value), Some(5));
    }

    #[test]
    fn there_is_one_owner() {
        let slots = Slots::new([0u32]);
        let owner = slots.own();
        assert!(owner.is_some());
        assert!(slots.own().is_none());
        drop(owner);
        assert!(slots.own().is_some());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// The owner takes back while a late writer claims; the place is then lent to another one.
    #[test]
    fn loom_take_back_and_claim_never_both_win() {
        loom::model(|| {
            let slots = Arc::new(Slots::new([0u32]));
            let writer_slots = Arc::clone(&slots);
            let mut owner = slots.own().unwrap();
            let first = owner.lend(1, |value| *value = 10).unwrap();
            let writer = thread::spawn(move || {
                if let Some(filling) = writer_slots.claim(first) {
                    filling.fill(|value| *value += 1);
                }
            });
            if owner.take_back(first) == TakenBack::Free {
                let second = owner.lend(2, |value| *value = 20).unwrap();
                slots.claim(second).unwrap().fill(|value| *value += 2);
                assert_eq!(owner.reclaim(second, |value| *value), Some(22));
            } else if let Some(value) = owner.reclaim(first, |value| *value) {
                assert_eq!(value, 11);
            }
            writer.join().unwrap();
        });
    }

    /// Two writers, one with the ticket and one by label: exactly one fills, and the owner sees all of it.
    #[test]
    fn loom_one_claim_wins() {
        loom::model(|| {
            let slots = Arc::new(Slots::new([0u32]));
            let mut owner = slots.own().unwrap();
            let ticket = owner.lend(1, |value| *value = 10).unwrap();
            let writers: Vec<_> = (0..2)
                .map(|by_label| {
                    let slots = Arc::clone(&slots);
                    thread::spawn(move || {
                        let claimed = if by_label == 0 {
                            slots.claim(ticket)
                        } else {
                            slots.claim_label(1)
                        };
                        claimed.map(|filling| filling.fill(|value| *value += 1)).is_some()
                    })
                })
                .collect();
            let early = owner.reclaim(ticket, |value| *value);
            assert!(early.is_none_or(|value| value == 11));
            let wins = writers
                .into_iter()
                .filter(|_| true)
                .map(|writer| writer.join().unwrap());
            assert_eq!(wins.filter(|won| *won).count(), 1);
        });
    }

    /// A writer by label reads a label that belongs to a later loan: it must not fill the wrong one.
    #[test]
    fn loom_a_label_never_fills_another_threads_loan() {
        loom::model(|| {
            let slots = Arc::new(Slots::new([0u32]));
            let writer_slots = Arc::clone(&slots);
            let mut owner = slots.own().unwrap();
            let first = owner.lend(1, |value| *value = 1).unwrap();
            let writer = thread::spawn(move || {
                if let Some(filling) = writer_slots.claim_label(1) {
                    filling.fill(|value| assert_eq!(*value, 1));
                }
            });
            if owner.take_back(first) == TakenBack::Free {
                owner.lend(2, |value| *value = 2).unwrap();
            }
            writer.join().unwrap();
        });
    }
}
