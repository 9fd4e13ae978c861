//! `endstone::Player`, as far as it is needed to recognise one, to write to them, and to ask for their ping.

use std::marker::PhantomData;

use super::sender::CommandSender;
use super::slot::Pass;

vtable_slots! {
    /// Slots of `endstone::OfflinePlayer`, the second base class of `Player`.
    OfflinePlayerSlots of "endstone::OfflinePlayer" {
        GET_UNIQUE_ID = 3 "_ZNK8endstone13OfflinePlayer11getUniqueIdEv" () -> Pass::Registers(16);
    }
}

vtable_slots! {
    /// Slots of `endstone::Player` beyond those of `Mob`. Slot 110 and above are not in every 0.11.
    PlayerSlots of "endstone::Player" {
        GET_PING = 96 "_ZNK8endstone6Player7getPingEv" () -> Pass::Registers(8);
    }
}

/// `endstone::UUID`: 16 bytes that travel in two registers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniqueId {
    words: [u64; 2],
}

layout! { UniqueId, mirrors "endstone::UUID", 16 bytes, in memory false {
    words @ 0 = "data";
} }

impl UniqueId {
    /// From its bytes in order.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let halves = u128::from_ne_bytes(bytes);
        UniqueId {
            words: [halves as u64, (halves >> 64) as u64],
        }
    }

    /// Its bytes in order.
    pub const fn to_bytes(self) -> [u8; 16] {
        (self.words[0] as u128 | (self.words[1] as u128) << 64).to_ne_bytes()
    }
}

host_object! {
    /// A player who is online.
    Player, "endstone::Player"
}

impl<'host> Player<'host> {
    /// Where the `OfflinePlayer` part of a `Player` begins.
    pub const OFFLINE_PLAYER_OFFSET: usize = 8;

    /// The player as a receiver of messages: `CommandSender` is the first base class, at offset 0.
    pub fn as_sender(self) -> CommandSender<'host> {
        CommandSender {
            object: self.object,
            alive: PhantomData,
        }
    }

    /// The player's id, stable across sessions.
    pub fn unique_id(self) -> UniqueId {
        let offline = self.as_ptr().wrapping_byte_add(Player::OFFLINE_PLAYER_OFFSET);
        // SAFETY: getUniqueId is a slot of the OfflinePlayer part, whose own vtable pointer is there; it takes nothing and returns 16
        // trivial bytes in two registers, as a Rust struct of two words does.
        unsafe { call!(offline, OfflinePlayerSlots::GET_UNIQUE_ID; UniqueId) }
    }

    /// The player's name.
    pub fn name(self) -> String {
        self.as_sender().name()
    }

    /// How long packets take to the player and back, in milliseconds, as the network measured it.
    pub fn ping_millis(self) -> i64 {
        // SAFETY: getPing takes nothing and returns `std::chrono::milliseconds`, one 64-bit number in a register.
        unsafe { call!(self.as_ptr(), PlayerSlots::GET_PING; i64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_the_order_of_their_bytes() {
        let bytes = std::array::from_fn(|index| index as u8);
        assert_eq!(UniqueId::from_bytes(bytes).to_bytes(), bytes);
    }
}
