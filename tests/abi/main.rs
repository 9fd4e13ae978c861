//! What `endstone::abi` says of Endstone's classes, compared with the released Endstone: slots, sizes, offsets and passing with the debug
//! information in its wheel, slots once more with the vtables it emits, and our own vtables and declarations with its running code.

mod built;
mod elf;
mod emitted;
mod layouts;
mod released;
mod running;
mod slots;
