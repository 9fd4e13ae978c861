//! `endstone::Actor` and `endstone::Location`.

use std::ffi::c_void;

use super::slot::Pass;
use super::string::CxxString;

vtable_slots! {
    /// Slots of `endstone::Actor` beyond those of `CommandSender`.
    ActorSlots of "endstone::Actor" {
        GET_TYPE = 23 "_ZNK8endstone5Actor7getTypeEv" () -> Pass::Memory;
        GET_RUNTIME_ID = 24 "_ZNK8endstone5Actor12getRuntimeIdEv" () -> Pass::Registers(8);
        GET_LOCATION = 25 "_ZNK8endstone5Actor11getLocationEv" () -> Pass::Memory;
    }
}

/// `endstone::Location`: a trivial class that is too large for registers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    dimension: *mut c_void,
    /// In blocks.
    pub x: f32,
    /// In blocks.
    pub y: f32,
    /// In blocks.
    pub z: f32,
    /// In degrees.
    pub pitch: f32,
    /// In degrees.
    pub yaw: f32,
}

layout! { Location, mirrors "endstone::Location", 32 bytes, in memory false {
    dimension @ 0 = "dimension_";
    x @ 8 = "x_";
    y @ 12 = "y_";
    z @ 16 = "z_";
    pitch @ 20 = "pitch_";
    yaw @ 24 = "yaw_";
} }

impl Location {
    /// A place; `dimension` points to the `endstone::Dimension` it is in.
    pub fn new(dimension: *mut c_void, x: f32, y: f32, z: f32) -> Self {
        Location {
            dimension,
            x,
            y,
            z,
            pitch: 0.0,
            yaw: 0.0,
        }
    }
}

host_object! {
    /// An entity.
    Actor, "endstone::Actor"
}

impl Actor<'_> {
    /// e.g. `minecraft:zombie`.
    pub fn kind(self) -> String {
        // SAFETY: getType takes nothing and returns a string through the hidden pointer.
        let kind = unsafe { call_for_object!(self.as_ptr(), ActorSlots::GET_TYPE; CxxString) };
        kind.to_text().into_owned()
    }

    /// A number that no other entity of this run of the server has.
    pub fn runtime_id(self) -> u64 {
        // SAFETY: getRuntimeId takes nothing and returns a number.
        unsafe { call!(self.as_ptr(), ActorSlots::GET_RUNTIME_ID; u64) }
    }

    /// Where it is.
    pub fn location(self) -> Location {
        // SAFETY: getLocation takes nothing and returns 32 trivial bytes, which travel through the hidden pointer.
        unsafe { call_for_object!(self.as_ptr(), ActorSlots::GET_LOCATION; Location) }
    }
}
