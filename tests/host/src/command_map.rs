//! The command map: Endstone's own registers with Bedrock's command parser, which is not here, so this one stands in its place.
//!
//! It is a C++ object like the real one. Endstone's real `setPluginCommands` makes the `PluginCommand` objects and registers them here;
//! a line is split by the declared usages and handed to the real `PluginCommand::execute`, which checks permissions and calls the plugin.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use endstone_spark::endstone::abi::{Command, CommandSender, CxxString, CxxVector, PluginCommandSlots};

use crate::say::say;
use crate::share::Share;
use crate::usage::{self, Usage};

/// Endstone's `EndstoneCommandMap` begins with the vtable and the server; nothing else in it is read by functions that run here.
#[repr(C)]
struct CommandMap {
    vtable: *const Vtable,
    server: *mut c_void,
    commands: Mutex<Vec<Registered>>,
}

struct Registered {
    name: String,
    usages: Vec<Usage>,
    command: Share<Command>,
}

/// Slots of `endstone::CommandMap`.
#[repr(C)]
struct Vtable {
    destroy: unsafe extern "C" fn(*mut CommandMap),
    delete: unsafe extern "C" fn(*mut CommandMap),
    register_command: unsafe extern "C" fn(*mut CommandMap, *const Share<Command>) -> bool,
    dispatch: unsafe extern "C-unwind" fn(*mut CommandMap, *mut c_void, *const CxxString) -> bool,
    clear_commands: unsafe extern "C-unwind" fn(*mut CommandMap),
    get_command: unsafe extern "C" fn(*mut Share<Command>, *mut CommandMap, *const CxxString) -> *mut Share<Command>,
}

static VTABLE: Vtable = Vtable {
    destroy: delete,
    delete,
    register_command,
    dispatch,
    clear_commands,
    get_command,
};

/// A new map. The server takes ownership and deletes it through its vtable.
pub fn create(server: *mut c_void) -> *mut c_void {
    Box::into_raw(Box::new(CommandMap {
        vtable: &raw const VTABLE,
        server,
        commands: Mutex::default(),
    }))
    .cast()
}

impl CommandMap {
    fn commands(&self) -> std::sync::MutexGuard<'_, Vec<Registered>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, shared: &Share<Command>) -> bool {
        // SAFETY: Endstone passes a live command, which nobody else uses yet.
        let command = unsafe { &mut *shared.as_ptr() };
        command.command_map = (&raw const *self).cast();
        let name = command.name.to_text().into_owned();
        let mut declared: Vec<String> = command.usages.to_texts();
        if declared.is_empty() {
            declared.push(format!("/{name}"));
        }
        let mut usages = Vec::new();
        for text in &declared {
            match Usage::parse(text) {
                Ok(usage) => usages.push(usage),
                Err(reason) => say(&format!("command {name}: {reason}")),
            }
        }
        let names = std::iter::once(name).chain(command.aliases.to_texts());
        let mut commands = self.commands();
        for name in names {
            if commands.iter().any(|known| known.name == name) {
                say(&format!("command {name} is registered already"));
                continue;
            }
            commands.push(Registered {
                name,
                usages: usages.clone(),
                command: shared.clone(),
            });
        }
        true
    }

    /// Runs a line without its slash. The map is not locked meanwhile: a command may dispatch others.
    fn run(&self, sender: CommandSender<'_>, line: &str) -> bool {
        let name = line.split_whitespace().next().unwrap_or_default();
        let found = self
            .commands()
            .iter()
            .find(|known| known.name == name)
            .map(|known| (usage::split(&known.usages, line), known.command.clone()));
        match found {
            None => {
                sender.send_error_message(&format!(
                    "Unknown command: {name}. Please check that the command exists and that you have permission to use it."
                ));
                false
            }
            Some((Err(error), _)) => {
                sender.send_error_message(&error.to_string());
                false
            }
            Some((Ok(arguments), command)) => execute(&command, sender, &arguments),
        }
    }
}

fn execute(command: &Share<Command>, sender: CommandSender<'_>, arguments: &[String]) -> bool {
    let arguments: CxxVector<CxxString> = arguments.iter().map(|argument| CxxString::new(argument)).collect();
    type Execute = unsafe extern "C-unwind" fn(*const Command, *mut c_void, *const CxxVector<CxxString>) -> bool;
    let object = command.as_ptr();
    // SAFETY: the command is a live PluginCommand while we hold a share of it; sender and arguments outlive the call.
    unsafe {
        let execute: Execute = std::mem::transmute(PluginCommandSlots::EXECUTE.entry(object.cast()));
        execute(object, sender.as_ptr(), &raw const arguments)
    }
}

/// Runs a line as the given sender, on the server's map.
///
/// # Safety
/// `map` is from [`create`] and still owned by a live server.
pub unsafe fn run(map: *mut c_void, sender: CommandSender<'_>, line: &str) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { &*map.cast::<CommandMap>() }.run(sender, line)
}

unsafe extern "C" fn delete(map: *mut CommandMap) {
    // SAFETY: Endstone calls this once, as the owner.
    drop(unsafe { Box::from_raw(map) });
}

unsafe extern "C" fn register_command(map: *mut CommandMap, command: *const Share<Command>) -> bool {
    // SAFETY: Endstone passes its live map and a shared pointer that it destroys itself.
    unsafe { (*map).register(&*command) }
}

unsafe extern "C-unwind" fn dispatch(map: *mut CommandMap, sender: *mut c_void, line: *const CxxString) -> bool {
    // SAFETY: Endstone passes live objects, which outlive the call; the line belongs to the caller.
    unsafe {
        let line = (*line).to_text().into_owned();
        CommandSender::borrow(sender).is_some_and(|sender| (*map).run(sender, line.trim_start_matches('/')))
    }
}

unsafe extern "C-unwind" fn clear_commands(map: *mut CommandMap) {
    // SAFETY: Endstone passes its live map. The commands are dropped after the lock is released: a destructor may call back.
    let commands = unsafe { std::mem::take(&mut *(*map).commands()) };
    drop(commands);
}

unsafe extern "C" fn get_command(
    result: *mut Share<Command>,
    map: *mut CommandMap,
    name: *const CxxString,
) -> *mut Share<Command> {
    // SAFETY: Endstone passes its live map, the caller's name and room for the result.
    unsafe {
        let name = (*name).to_text().into_owned();
        let found = (*map)
            .commands()
            .iter()
            .find(|known| known.name == name)
            .map(|known| known.command.clone());
        result.write(found.unwrap_or(Share::NULL));
    }
    result
}
