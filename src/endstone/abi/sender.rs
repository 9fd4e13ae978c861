//! `endstone::CommandSender` and its base `Permissible`.

use std::ffi::c_void;

use super::message::Message;
use super::player::Player;
use super::slot::Pass;
use super::string::CxxString;

vtable_slots! {
    /// Slots of `endstone::Permissible`.
    PermissibleSlots of "endstone::Permissible" {
        HAS_PERMISSION = 5 "_ZNK8endstone11Permissible13hasPermissionENSt3__112basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEE" (Pass::Memory) -> Pass::Registers(1);
    }
}

vtable_slots! {
    /// Slots of `endstone::CommandSender` beyond those of `Permissible`.
    CommandSenderSlots of "endstone::CommandSender" {
        AS_CONSOLE = 13 "_ZNK8endstone13CommandSender9asConsoleEv" () -> Pass::Registers(8);
        AS_PLAYER = 16 "_ZNK8endstone13CommandSender8asPlayerEv" () -> Pass::Registers(8);
        SEND_MESSAGE = 17 "_ZNK8endstone13CommandSender11sendMessageERKNSt3__17variantIJNS1_12basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEENS_12TranslatableEEEE" (Pass::Registers(8)) -> Pass::Nothing;
        SEND_ERROR_MESSAGE = 18 "_ZNK8endstone13CommandSender16sendErrorMessageERKNSt3__17variantIJNS1_12basic_stringIcNS1_11char_traitsIcEENS1_9allocatorIcEEEENS_12TranslatableEEEE" (Pass::Registers(8)) -> Pass::Nothing;
        GET_NAME = 20 "_ZNK8endstone13CommandSender7getNameEv" () -> Pass::Memory;
    }
}

host_object! {
    /// Whoever typed a command: never kept beyond the call that brought it.
    CommandSender, "endstone::CommandSender"
}

impl<'host> CommandSender<'host> {
    /// Whether the sender has this permission.
    pub fn has_permission(self, name: &str) -> bool {
        let mut name = CxxString::new(name);
        // SAFETY: hasPermission takes a string by value, that is by pointer to ours, and returns a bool.
        unsafe { call!(self.as_ptr(), PermissibleSlots::HAS_PERMISSION, &raw mut name => *mut CxxString; bool) }
    }

    /// Whether this is the console.
    pub fn is_console(self) -> bool {
        // SAFETY: asConsole takes nothing and returns a pointer.
        unsafe { !call!(self.as_ptr(), CommandSenderSlots::AS_CONSOLE; *mut c_void).is_null() }
    }

    /// The player, when this is one.
    pub fn as_player(self) -> Option<Player<'host>> {
        // SAFETY: asPlayer takes nothing and returns a player or null, who lives as long as the sender does.
        unsafe { Player::borrow(call!(self.as_ptr(), CommandSenderSlots::AS_PLAYER; *mut c_void)) }
    }

    /// Sends one line.
    pub fn send_message(self, text: &str) {
        let message = Message::text(text);
        // SAFETY: sendMessage takes a reference to a message, which lives until it returns.
        unsafe { call!(self.as_ptr(), CommandSenderSlots::SEND_MESSAGE, &raw const message => *const Message; ()) }
    }

    /// Sends one line in the colour of errors.
    pub fn send_error_message(self, text: &str) {
        let message = Message::text(text);
        // SAFETY: sendErrorMessage takes a reference to a message, which lives until it returns.
        unsafe {
            call!(self.as_ptr(), CommandSenderSlots::SEND_ERROR_MESSAGE, &raw const message => *const Message; ())
        }
    }

    /// The sender's name.
    pub fn name(self) -> String {
        // SAFETY: getName takes nothing and returns a string through the hidden pointer.
        let name = unsafe { call_for_object!(self.as_ptr(), CommandSenderSlots::GET_NAME; CxxString) };
        name.to_text().into_owned()
    }
}
