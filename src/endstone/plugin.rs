//! Our class `SparkPlugin : endstone::Plugin`: its object, its vtable, and the functions in it.

use std::ffi::c_void;
use std::sync::OnceLock;

use super::abi::{
    Command, CommandExecutorSlots, CommandSender, CxxString, CxxVector, Plugin, PluginBase, PluginDescription,
    PluginSlots, PluginVtable, RttiUnavailable,
};
use super::adapter::Adapter;
use super::describe::describe;
use super::pure::pure;
use crate::command::{self, Audience, Granted, Line};
use crate::session::Requester;
use crate::sys::fault;

/// The object. Endstone knows its first 64 bytes; the rest is ours.
#[repr(C)]
#[derive(Debug)]
pub(super) struct SparkPlugin {
    base: PluginBase,
    description: PluginDescription,
    /// Whether the file on disk is another build than this one.
    outdated: bool,
    /// Between `onEnable` and `onDisable`.
    adapter: Option<Adapter>,
}

impl SparkPlugin {
    /// A plugin on the heap, for Endstone to own.
    pub(super) fn create(outdated: bool) -> Result<*mut SparkPlugin, RttiUnavailable> {
        let plugin = SparkPlugin {
            base: PluginBase::new(vtable()?),
            description: describe()?,
            outdated,
            adapter: None,
        };
        Ok(Box::into_raw(Box::new(plugin)))
    }
}

fn vtable() -> Result<&'static PluginVtable, RttiUnavailable> {
    static VTABLE: OnceLock<PluginVtable> = OnceLock::new();
    if let Some(vtable) = VTABLE.get() {
        return Ok(vtable);
    }
    let vtable = PluginVtable::new(
        c"N5spark11SparkPluginE",
        destroy as *const c_void,
        destroy_and_free as *const c_void,
        &[
            (CommandExecutorSlots::ON_COMMAND, on_command as *const c_void),
            (PluginSlots::GET_DESCRIPTION, get_description as *const c_void),
            (PluginSlots::ON_LOAD, on_load as *const c_void),
            (PluginSlots::ON_ENABLE, on_enable as *const c_void),
            (PluginSlots::ON_DISABLE, on_disable as *const c_void),
        ],
    )?;
    Ok(VTABLE.get_or_init(|| vtable))
}

/// The complete destructor. Endstone only ever uses the deleting one: its plugins are pointers to `Plugin`.
unsafe extern "C" fn destroy(this: *mut SparkPlugin) {
    // SAFETY: the caller ends the plugin's life.
    unsafe { std::ptr::drop_in_place(this) }
}

unsafe extern "C" fn destroy_and_free(this: *mut SparkPlugin) {
    // SAFETY: the caller ends the plugin's life, which began as a Box in `create`; nobody else frees it.
    drop(unsafe { Box::from_raw(this) });
}

unsafe extern "C" fn get_description(this: *const SparkPlugin) -> *const PluginDescription {
    // SAFETY: `this` is one of our plugins, alive.
    unsafe { &raw const (*this).description }
}

unsafe extern "C" fn on_load(_this: *mut SparkPlugin) {
    // Runs inside the server's constructor, perhaps not on the thread that will tick: nothing is done before onEnable.
}

/// Unwinds: host calls may throw, and Endstone then logs it and leaves the plugin disabled.
unsafe extern "C-unwind" fn on_enable(this: *mut SparkPlugin) {
    // SAFETY: `this` is one of our plugins, alive, and the host calls its handlers one at a time on the server thread. No host call below
    // comes back into this plugin.
    let plugin = unsafe { &mut *this };
    // SAFETY: the same object, as the host knows it.
    let (Some(server), Some(logger), Some(own)) = (plugin.base.server(), plugin.base.logger(), unsafe {
        Plugin::borrow(this.cast())
    }) else {
        return;
    };
    if plugin.outdated {
        logger.warning("The file of this plugin was replaced. Restart the server to use the new version; this one goes on until then.");
    }
    match Adapter::enable(server, own, plugin.base.data_folder()) {
        Ok((adapter, problems)) => {
            plugin.adapter = Some(adapter);
            problems.iter().for_each(|problem| logger.warning(problem));
        }
        Err(error) => logger.error(&format!("The profiler is not available: {error}.")),
    }
}

/// Unwinds: host calls may throw, and Endstone then logs it.
unsafe extern "C-unwind" fn on_disable(this: *mut SparkPlugin) {
    // SAFETY: as in `on_enable`.
    let plugin = unsafe { &mut *this };
    let Some(adapter) = plugin.adapter.take() else { return };
    let Some(server) = plugin.base.server() else { return };
    let ended = adapter.disable(server);
    if let (Err(error), Some(logger)) = (ended, plugin.base.logger()) {
        logger.error(&format!("{error}."));
    }
}

/// Unwinds: host calls may throw, and Endstone then logs it.
unsafe extern "C-unwind" fn on_command(
    this: *mut SparkPlugin,
    sender: *mut c_void,
    _command: *const Command,
    arguments: *const CxxVector<CxxString>,
) -> bool {
    // SAFETY: as in `on_enable`.
    let plugin = unsafe { &*this };
    // SAFETY: the host passes a live sender, which is not used after this call.
    let Some(sender) = (unsafe { CommandSender::borrow(sender) }) else {
        return true;
    };
    // SAFETY: the host passes a live vector of strings.
    let arguments = unsafe { arguments.as_ref() }
        .map(CxxVector::to_texts)
        .unwrap_or_default();

    // Gather.
    let player = sender.as_player();
    let audience = if player.is_some() {
        Audience::Player
    } else {
        Audience::Console
    };
    let requester = match player {
        Some(player) => Some(Requester::Player {
            name: player.name(),
            unique_id: player.unique_id().to_bytes(),
        }),
        None => sender.is_console().then_some(Requester::Console),
    };
    let granted = Granted::ask(|name| sender.has_permission(name));

    // Compute.
    let answer = pure(|| {
        fault::point("command");
        let lines = match (&plugin.adapter, requester) {
            (_, None) => vec![Line::new().bad("Only players and the console can use spark.")],
            (None, _) => vec![Line::new().bad("The profiler is not available; the server's log says why.")],
            (Some(adapter), Some(requester)) => command::run(&arguments, &requester, &granted, adapter.control()),
        };
        lines.iter().map(|line| line.render(audience)).collect::<Vec<_>>()
    });

    // Deliver.
    match answer {
        Ok(lines) => lines.iter().for_each(|line| sender.send_message(line)),
        Err(panic) => {
            if let Some(adapter) = &plugin.adapter {
                adapter.fail();
            }
            sender.send_message("The command failed inside spark; the server's log has the details.");
            if let Some(logger) = plugin.base.logger() {
                logger.error(&format!("A command failed: {panic}"));
            }
        }
    }
    true
}
