//! `endstone::ConsoleCommandSender`: a `CommandSender` at offset 0 without slots of its own.

use super::sender::CommandSender;

/// The console as a receiver of messages.
pub type ConsoleCommandSender<'host> = CommandSender<'host>;
