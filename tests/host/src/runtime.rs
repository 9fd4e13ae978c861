//! Endstone's released runtime in this process: where it is, and its functions by name.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use crate::error::HostError;

const RUNTIME: &str = "libendstone_runtime.so";

/// Symbols of the runtime that the stand-in calls or patches. Most are local, so they come from `.symtab`, which the wheel keeps.
pub mod symbol {
    pub const EMPLACE_SERVER: &str = "_ZN4entt7locatorIN8endstone4core14EndstoneServerEE7emplaceIS3_JEEERS3_DpOT0_";
    pub const SERVER_INIT: &str = "_ZN8endstone4core14EndstoneServer4initER14ServerInstance";
    pub const ENABLE_PLUGINS: &str = "_ZN8endstone4core14EndstoneServer13enablePluginsENS_15PluginLoadOrderE";
    pub const LISTENER: &str = "_ZZN31ServerInstanceLifecycleListener11getInstanceEvE8instance";
    pub const UPDATE_START: &str = "_ZN31ServerInstanceLifecycleListener19onServerUpdateStartER14ServerInstance";
    pub const UPDATE_END: &str = "_ZN31ServerInstanceLifecycleListener17onServerUpdateEndER14ServerInstance";
    pub const THREAD_STOPPED: &str = "_ZN31ServerInstanceLifecycleListener21onServerThreadStoppedER14ServerInstance";
    pub const GIL_ACQUIRE: &str = "_ZN8pybind1118gil_scoped_acquireC2Ev";
    pub const GIL_RELEASE_EMPLACE: &str =
        "_ZNSt3__18optionalIN8pybind1118gil_scoped_releaseEE7emplaceB8ne200100IJEvEERS2_DpOT_";
    pub const STDIN_RESTORE: &str = "_ZN8endstone7runtime13stdin_restoreEv";
    pub const CRASH_HANDLER_NEW: &str = "_ZN8endstone4core12CrashHandlerC2Ev";
    pub const CRASH_HANDLER_DELETE: &str = "_ZN8endstone4core12CrashHandlerD2Ev";
    pub const PYTHON_LOADER_NEW: &str = "_ZN8endstone4core18PythonPluginLoaderC2ERNS_6ServerE";
    pub const FIND_COMMAND: &str =
        "_ZNK15CommandRegistry11findCommandERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEE";
    pub const SERVER_LOAD_EVENT: &str = "_ZTVN8endstone15ServerLoadEventE";
    pub const SERVER_COMMAND_EVENT: &str = "_ZTVN8endstone18ServerCommandEventE";

    pub const ALL: &[&str] = &[
        EMPLACE_SERVER,
        SERVER_INIT,
        ENABLE_PLUGINS,
        LISTENER,
        UPDATE_START,
        UPDATE_END,
        THREAD_STOPPED,
        GIL_ACQUIRE,
        GIL_RELEASE_EMPLACE,
        STDIN_RESTORE,
        CRASH_HANDLER_NEW,
        CRASH_HANDLER_DELETE,
        PYTHON_LOADER_NEW,
        FIND_COMMAND,
        SERVER_LOAD_EVENT,
        SERVER_COMMAND_EVENT,
    ];
}

/// The loaded runtime. Addresses stay valid for the life of the process: the runtime is preloaded and never unloaded.
#[derive(Debug)]
pub struct Runtime {
    path: PathBuf,
    addresses: HashMap<&'static str, usize>,
}

impl Runtime {
    /// Finds the preloaded runtime and the address of each symbol in [`symbol::ALL`].
    pub fn find() -> Result<Runtime, HostError> {
        let (base, path) = loaded().ok_or(HostError::NoRuntime)?;
        let bytes = std::fs::read(&path).map_err(|source| HostError::ReadRuntime {
            path: path.clone(),
            source,
        })?;
        let file = object::File::parse(&*bytes).map_err(|source| HostError::ParseRuntime {
            path: path.clone(),
            source,
        })?;
        let mut addresses = HashMap::new();
        for entry in file.symbols().filter(|entry| entry.address() != 0) {
            if let Ok(name) = entry.name()
                && let Some(&wanted) = symbol::ALL.iter().find(|&&wanted| wanted == name)
            {
                addresses.insert(wanted, base + entry.address() as usize);
            }
        }
        match symbol::ALL.iter().find(|name| !addresses.contains_key(**name)) {
            Some(missing) => Err(HostError::NoSymbol(missing)),
            None => Ok(Runtime { path, addresses }),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration that Endstone's launcher puts into a new server folder.
    pub fn default_config(&self) -> PathBuf {
        self.path.with_file_name("config").join("endstone.default.toml")
    }

    /// The address of one of [`symbol::ALL`].
    pub fn address(&self, name: &'static str) -> Result<usize, HostError> {
        self.addresses.get(name).copied().ok_or(HostError::NoSymbol(name))
    }
}

fn loaded() -> Option<(usize, PathBuf)> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> i32 {
        // SAFETY: the loader passes a valid record whose name is a C string; `found` is the Option of the caller below.
        let (name, base, found) = unsafe {
            (
                CStr::from_ptr((*info).dlpi_name),
                (*info).dlpi_addr as usize,
                &mut *found.cast::<Option<(usize, PathBuf)>>(),
            )
        };
        let path = PathBuf::from(name.to_string_lossy().into_owned());
        if path.file_name().is_some_and(|file| file == RUNTIME) {
            *found = Some((base, path));
            return 1;
        }
        0
    }
    let mut found: Option<(usize, PathBuf)> = None;
    // SAFETY: `visit` only uses the pointer to `found`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}
