//! The command map: Endstone's own registers with Bedrock's command parser, which is not here, so this one stands in its place.
//!
//! It is a C++ object like the real one. Endstone's real `setPluginCommands` makes the `PluginCommand` objects and registers them here;
//! a line is split by the declared usages and handed to the real `PluginCommand::execute`, which checks permissions and calls the plugin.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::abi::{Command, CxxString, CxxVector, SharedPtr, vcall};
use crate::endstone_server::send_error;
use crate::say::say;
use crate::usage::{self, Usage};

const COMMAND_EXECUTE: usize = 2;

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
    command: SharedPtr<Command>,
}

/// Slots of `endstone::CommandMap`.
#[repr(C)]
struct Vtable {
    destroy: unsafe extern "C" fn(*mut CommandMap),
    delete: unsafe extern "C" fn(*mut CommandMap),
    register_command: unsafe extern "C" fn(*mut CommandMap, *const SharedPtr<Command>) -> bool,
    dispatch: unsafe extern "C-unwind" fn(*mut CommandMap, *mut c_void, *const CxxString) -> bool,
    clear_commands: unsafe extern "C-unwind" fn(*mut CommandMap),
    get_command:
        unsafe extern "C" fn(*mut SharedPtr<Command>, *mut CommandMap, *const CxxString) -> *mut SharedPtr<Command>,
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

    fn register(&self, shared: &SharedPtr<Command>) -> bool {
        // SAFETY: Endstone passes a live command, which nobody else uses yet.
        let command = unsafe { &mut *shared.object };
        command.command_map = (&raw const *self).cast();
        let name = command.name.text();
        let mut declared: Vec<String> = command.usages.items().iter().map(CxxString::text).collect();
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
        let names = std::iter::once(name).chain(command.aliases.items().iter().map(CxxString::text));
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
    fn run(&self, sender: *mut c_void, line: &str) -> bool {
        let name = line.split_whitespace().next().unwrap_or_default();
        let found = self
            .commands()
            .iter()
            .find(|known| known.name == name)
            .map(|known| (usage::split(&known.usages, line), known.command.clone()));
        let (arguments, command) = match found {
            None => {
                send_error(
                    sender,
                    &format!(
                        "Unknown command: {name}. Please check that the command exists and that you have permission to use it."
                    ),
                );
                return false;
            }
            Some((Err(error), _)) => {
                send_error(sender, &error.to_string());
                return false;
            }
            Some((Ok(arguments), command)) => (arguments, command),
        };
        let arguments = CxxVector::from_vec(arguments.iter().map(|argument| CxxString::new(argument)).collect());
        // SAFETY: the command lives while we hold a share of it; sender and arguments outlive the call.
        unsafe {
            vcall!(
                command.object,
                COMMAND_EXECUTE,
                fn(*mut c_void, *const CxxVector<CxxString>) -> bool,
                sender,
                &raw const arguments
            )
        }
    }
}

/// Runs a line as the given sender, on the server's map.
///
/// # Safety
/// `map` is from [`create`] and still owned by a live server; `sender` is a live command sender.
pub unsafe fn run(map: *mut c_void, sender: *mut c_void, line: &str) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { &*map.cast::<CommandMap>() }.run(sender, line)
}

unsafe extern "C" fn delete(map: *mut CommandMap) {
    // SAFETY: Endstone calls this once, as the owner.
    drop(unsafe { Box::from_raw(map) });
}

unsafe extern "C" fn register_command(map: *mut CommandMap, command: *const SharedPtr<Command>) -> bool {
    // SAFETY: Endstone passes its live map and a shared pointer that it destroys itself.
    unsafe { (*map).register(&*command) }
}

unsafe extern "C-unwind" fn dispatch(map: *mut CommandMap, sender: *mut c_void, line: *const CxxString) -> bool {
    // SAFETY: Endstone passes live objects; the line belongs to the caller.
    unsafe { (*map).run(sender, (*line).text().trim_start_matches('/')) }
}

unsafe extern "C-unwind" fn clear_commands(map: *mut CommandMap) {
    // SAFETY: Endstone passes its live map. The commands are dropped after the lock is released: a destructor may call back.
    let commands = unsafe { std::mem::take(&mut *(*map).commands()) };
    drop(commands);
}

unsafe extern "C" fn get_command(
    result: *mut SharedPtr<Command>,
    map: *mut CommandMap,
    name: *const CxxString,
) -> *mut SharedPtr<Command> {
    // SAFETY: Endstone passes its live map, the caller's name and room for the result.
    unsafe {
        let name = (*name).text();
        let found = (*map)
            .commands()
            .iter()
            .find(|known| known.name == name)
            .map(|known| known.command.clone());
        result.write(found.unwrap_or(SharedPtr::NULL));
    }
    result
}
