//! `endstone::Level`.

use std::ffi::c_void;

use super::actor::Actor;
use super::dimension::Dimension;
use super::slot::{Pass, Slot};
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::Level`.
    LevelSlots of "endstone::Level" {
        GET_ACTORS = 3 "_ZNK8endstone5Level9getActorsEv" () -> Pass::Memory;
        GET_DIMENSIONS = 6 "_ZNK8endstone5Level13getDimensionsEv" () -> Pass::Memory;
    }
}

host_object! {
    /// The world.
    Level, "endstone::Level"
}

impl<'host> Level<'host> {
    fn pointers(self, slot: Slot) -> CxxVector<*mut c_void> {
        // SAFETY: called with the two slots above, which take nothing and return a vector of pointers through the hidden pointer; we own
        // the vector, not what it points to.
        unsafe { call_for_object!(self.as_ptr(), slot; CxxVector<*mut c_void>) }
    }

    /// How many entities are loaded in all dimensions, players included.
    pub fn actor_count(self) -> usize {
        self.pointers(LevelSlots::GET_ACTORS).as_slice().len()
    }

    /// The dimensions that are there; they come into being when somebody enters them.
    pub fn dimensions(self) -> Vec<Dimension<'host>> {
        let pointers = self.pointers(LevelSlots::GET_DIMENSIONS);
        let dimensions = pointers.as_slice().iter();
        // SAFETY: the level owns its dimensions; they change on the server thread only, never while the host is inside a call into a plugin.
        dimensions
            .filter_map(|dimension| unsafe { Dimension::borrow(*dimension) })
            .collect()
    }
}

/// The actors of a list that the host made. They change on the server thread only, never while the host is inside a call into a plugin.
#[derive(Debug)]
pub struct ActorList<'host> {
    pointers: CxxVector<*mut c_void>,
    alive: std::marker::PhantomData<&'host c_void>,
}

impl<'host> ActorList<'host> {
    /// # Safety
    ///
    /// Every pointer must be null or an `endstone::Actor` that lives for `'host`.
    pub(super) unsafe fn new(pointers: CxxVector<*mut c_void>) -> Self {
        ActorList {
            pointers,
            alive: std::marker::PhantomData,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pointers.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pointers.as_slice().is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Actor<'host>> + '_ {
        // SAFETY: by the promise made in `new`.
        self.pointers
            .as_slice()
            .iter()
            .filter_map(|actor| unsafe { Actor::borrow(*actor) })
    }
}
