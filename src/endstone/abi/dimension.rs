//! `endstone::Dimension`.

use std::ffi::c_void;

use super::chunk::OwnedChunk;
use super::level::ActorList;
use super::slot::Pass;
use super::string::CxxString;
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::Dimension`.
    DimensionSlots of "endstone::Dimension" {
        GET_NAME = 2 "_ZNK8endstone9Dimension7getNameEv" () -> Pass::Memory;
        GET_LOADED_CHUNKS = 10 "_ZN8endstone9Dimension15getLoadedChunksEv" () -> Pass::Memory;
        GET_ACTORS = 13 "_ZNK8endstone9Dimension9getActorsEv" () -> Pass::Memory;
    }
}

host_object! {
    /// One dimension of the world.
    Dimension, "endstone::Dimension"
}

impl<'host> Dimension<'host> {
    /// e.g. `Overworld`.
    pub fn name(self) -> String {
        // SAFETY: getName takes nothing and returns a string through the hidden pointer.
        let name = unsafe { call_for_object!(self.as_ptr(), DimensionSlots::GET_NAME; CxxString) };
        name.to_text().into_owned()
    }

    /// One object for each loaded chunk, made by the host for us: they go with the vector.
    pub fn loaded_chunks(self) -> CxxVector<OwnedChunk> {
        // SAFETY: getLoadedChunks takes nothing and returns a vector of owning pointers through the hidden pointer; it is ours.
        unsafe { call_for_object!(self.as_ptr(), DimensionSlots::GET_LOADED_CHUNKS; CxxVector<OwnedChunk>) }
    }

    /// The entities in it, players included.
    pub fn actors(self) -> ActorList<'host> {
        // SAFETY: getActors takes nothing and returns a vector of pointers to actors, which the level owns, through the hidden pointer.
        unsafe { ActorList::new(call_for_object!(self.as_ptr(), DimensionSlots::GET_ACTORS; CxxVector<*mut c_void>)) }
    }
}
