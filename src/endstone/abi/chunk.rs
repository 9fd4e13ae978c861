//! `endstone::Chunk`.

use std::ffi::c_void;

use super::slot::{Pass, Slot};
use super::vector::CxxVector;

vtable_slots! {
    /// Slots of `endstone::Chunk`.
    ChunkSlots of "endstone::Chunk" {
        GET_X = 2 "_ZNK8endstone5Chunk4getXEv" () -> Pass::Registers(4);
        GET_Z = 3 "_ZNK8endstone5Chunk4getZEv" () -> Pass::Registers(4);
    }
}

impl ChunkSlots {
    /// The deleting destructor: it destroys the object and frees its memory, with the size that only the host's class knows. The debug information declares
    /// both destructors in one entry at slot 0; `tests/abi/emitted.rs` looks at the emitted vtable.
    pub const DELETE: Slot = Slot {
        index: 1,
        symbol: "D0",
        arguments: &[],
        result: Pass::Nothing,
    };
}

/// `std::unique_ptr<endstone::Chunk>`: where a loaded chunk lies. It is a copy made for whoever asked, not the chunk itself.
#[repr(C)]
#[derive(Debug)]
pub struct OwnedChunk {
    object: *mut c_void,
}

layout! { OwnedChunk, mirrors "std::__1::unique_ptr<endstone::Chunk, std::__1::default_delete<endstone::Chunk> >", 8 bytes, in memory true {
    object @ 0 = "__ptr_";
} }

layout! { CxxVector<OwnedChunk>, mirrors "std::__1::vector<std::__1::unique_ptr<endstone::Chunk, std::__1::default_delete<endstone::Chunk> >, std::__1::allocator<std::__1::unique_ptr<endstone::Chunk, std::__1::default_delete<endstone::Chunk> > > >", 24 bytes, in memory true {
} }

impl OwnedChunk {
    /// Takes over an object of class `endstone::Chunk`; what the stand-in server makes its lists of.
    ///
    /// # Safety
    ///
    /// `object` must be null or a live `endstone::Chunk` that nobody else owns and that its own vtable can delete.
    pub unsafe fn adopt(object: *mut c_void) -> Self {
        OwnedChunk { object }
    }

    /// The chunk's place in its dimension, counted in chunks; `None` of an empty pointer.
    pub fn position(&self) -> Option<(i32, i32)> {
        if self.object.is_null() {
            return None;
        }
        // SAFETY: the object is ours and alive; both slots take nothing and return a number.
        unsafe {
            Some((
                call!(self.object, ChunkSlots::GET_X; i32),
                call!(self.object, ChunkSlots::GET_Z; i32),
            ))
        }
    }
}

impl Drop for OwnedChunk {
    fn drop(&mut self) {
        if !self.object.is_null() {
            // SAFETY: the object is ours and not used again; its deleting destructor takes nothing and returns nothing.
            unsafe { call!(self.object, ChunkSlots::DELETE; ()) }
        }
    }
}
