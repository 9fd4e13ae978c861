//! Endstone's events that the stand-in makes itself, in the layouts of 0.11.14.

use std::ffi::c_void;

use endstone_spark::endstone::abi::CxxString;

use crate::error::HostError;
use crate::runtime::{Runtime, symbol};

/// Bytes from a vtable's symbol to its first function.
const VTABLE_HEAD: usize = 16;
/// Where `ICancellable`'s part of ServerCommandEvent's vtable has its first function.
const CANCELLABLE_PART: usize = 0x58;

/// `endstone::ServerLoadEvent`.
#[repr(C)]
#[derive(Debug)]
pub struct ServerLoadEvent {
    vtable: usize,
    asynchronous: bool,
    cancelled: bool,
    load_type: i32,
}

/// `endstone::ServerCommandEvent`. It can be cancelled, so it has a second vtable.
#[repr(C)]
#[derive(Debug)]
pub struct ServerCommandEvent {
    vtable: usize,
    asynchronous: bool,
    cancelled: bool,
    cancellable_vtable: usize,
    sender: *mut c_void,
    command: CxxString,
}

const _: () = {
    assert!(size_of::<ServerLoadEvent>() == 16);
    assert!(std::mem::offset_of!(ServerLoadEvent, load_type) == 12);
    assert!(size_of::<ServerCommandEvent>() == 56);
    assert!(std::mem::offset_of!(ServerCommandEvent, cancelled) == 9);
    assert!(std::mem::offset_of!(ServerCommandEvent, cancellable_vtable) == 16);
    assert!(std::mem::offset_of!(ServerCommandEvent, sender) == 24);
    assert!(std::mem::offset_of!(ServerCommandEvent, command) == 32);
};

/// Makes events with the runtime's own vtables.
#[derive(Debug, Clone, Copy)]
pub struct EventMaker {
    load_event: usize,
    command_event: usize,
}

impl EventMaker {
    pub fn find(runtime: &Runtime) -> Result<EventMaker, HostError> {
        Ok(EventMaker {
            load_event: runtime.address(symbol::SERVER_LOAD_EVENT)?,
            command_event: runtime.address(symbol::SERVER_COMMAND_EVENT)?,
        })
    }

    /// The event of a server that has started.
    pub fn server_load(&self) -> ServerLoadEvent {
        ServerLoadEvent {
            vtable: self.load_event + VTABLE_HEAD,
            asynchronous: false,
            cancelled: false,
            load_type: 0,
        }
    }

    /// The event of a line that `sender` typed. The sender has to outlive the event.
    pub fn server_command(&self, sender: *mut c_void, line: &str) -> ServerCommandEvent {
        ServerCommandEvent {
            vtable: self.command_event + VTABLE_HEAD,
            asynchronous: false,
            cancelled: false,
            cancellable_vtable: self.command_event + CANCELLABLE_PART,
            sender,
            command: CxxString::new(line),
        }
    }
}

impl ServerCommandEvent {
    /// The line as the plugins left it, or None if one of them cancelled it.
    pub fn outcome(&self) -> Option<String> {
        (!self.cancelled).then(|| self.command.to_text().into_owned())
    }
}
