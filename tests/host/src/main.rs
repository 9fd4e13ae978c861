//! A stand-in for the Bedrock Dedicated Server: Endstone's released runtime with its real hooks, managers, loaders and scheduler, on a
//! server that does known native work instead of a world.
//!
//! # How to start it
//!
//! As Endstone's own launcher (`endstone/cli/linux.py`) starts the server, in the server folder, the program itself and no wrapper:
//!
//! ```text
//! LD_PRELOAD       SITE/endstone/libmimalloc.so:SITE/endstone/libendstone_runtime.so        absolute, in this order
//! LD_LIBRARY_PATH  the folder of libpython3.X.so (sysconfig's LIBDIR)
//! PYTHONPATH       SITE                  where `pip install --target SITE` put the wheel with what it requires
//! PYTHONHOME       the Python's prefix   needed whenever `python3` on PATH is another one
//! PYTHONIOENCODING UTF-8
//! argv             /any/folder/bedrock_server [DIR] [options]     profiles show the file's name, so keep it
//! ```
//! SITE needs `numpy` (the runtime imports it at start) and `pip` (plugins in `plugins/*.whl` are installed by it into `plugins/.local`,
//! by `sys.base_prefix/bin/python3.X` or by `ENDSTONE_PYTHON_EXECUTABLE`); both are among Endstone's requirements.
//!
//! A CPython that brings its own C library needs a patched copy of this program, since `ld.so PROGRAM` would hide its path from Endstone,
//! which then hooks nothing:
//!
//! ```text
//! patchelf --set-interpreter DEST/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 \
//!          --force-rpath --set-rpath DEST/usr/lib/x86_64-linux-gnu COPY/bedrock_server
//! PYTHONHOME=DEST/usr, no LD_LIBRARY_PATH (children would inherit it)
//! ```
//!
//! Debian's Python looks for a prefix's packages in `dist-packages`, but a pip from PyPI installs plugins into
//! `plugins/.local/lib/python3.X/site-packages`. A `SITE/sitecustomize.py` that adds that folder to what
//! `site.getsitepackages(prefixes)` returns makes `plugins/*.whl` load there too (putting the folder on PYTHONPATH does not: Endstone
//! then finds the plugin of the last run as well).
//!
//! # What is not real
//!
//! There is no world: Endstone's `setLevel` does not run, so there is no level and there are no metrics, and the one player who can come is made here
//! ([`senders`]). With `--world` plugins find a world, and players, that are faked behind Endstone's own interfaces ([`world`]); Endstone itself does not know
//! of it. Bedrock's command parser is replaced by [`command_map`] and [`usage`]. The crash handler is off. Everything else, the order of the shutdown included, is Endstone's
//! own code; Python is not finalised at the end, as in the real server. With `--own-python` there is a Python that Endstone does not know of and that `!finalise` ends.
//!
//! What it prints itself starts with `[stand-in]`; `[stand-in] ready` comes after the first ticks. Exit code 0 after `stop`, SIGINT,
//! SIGTERM, a plugin's `server.shutdown()` or the end of the input; 1 when the server failed, 2 for bad options.

mod callers;
mod command_map;
mod console;
mod dedicated_server;
mod endstone_server;
mod error;
mod event;
mod image;
mod level;
mod load;
mod no_loader;
mod options;
mod orders;
mod own_python;
mod pattern;
mod probes;
mod runtime;
mod say;
mod senders;
mod server_instance;
mod share;
mod signals;
mod steady;
#[allow(dead_code)]
#[path = "../../harness/src/abi/types.rs"]
mod types;
mod unwinding;
mod usage;
mod vtables;
mod world;
mod world_plan;

use std::path::Path;
use std::process::ExitCode;

use error::HostError;
use options::{Options, Request};
use runtime::{Runtime, symbol};
use say::say;

/// Endstone's configuration in the server folder.
const CONFIG: &str = "endstone.toml";

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Help) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(reason) => return fail(&HostError::Usage(reason)),
    };
    match prepare(&options) {
        Ok(runtime) => {
            let code = dedicated_server::run(dedicated_server::Context { options, runtime });
            say(if code == 0 { "stopped" } else { "failed" });
            ExitCode::from(u8::from(code != 0))
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &HostError) -> ExitCode {
    say(&error.to_string());
    ExitCode::from(if matches!(error, HostError::Usage(_)) { 2 } else { 1 })
}

/// Enters the server folder, finds the runtime and makes sure that its hooks are in place.
fn prepare(options: &Options) -> Result<Runtime, HostError> {
    if let Some(folder) = &options.folder {
        std::env::set_current_dir(folder).map_err(|source| HostError::Folder {
            path: folder.clone(),
            source,
        })?;
    }
    let runtime = Runtime::find()?;
    let hooks = [
        ("Level::tick", image::LEVEL_TICK, level::tick as *const () as usize),
        (
            "DedicatedServer::start",
            image::DEDICATED_SERVER_START,
            dedicated_server::start as *const () as usize,
        ),
    ];
    for (name, offset, original) in hooks {
        if !image::is_hooked(offset, original) {
            return Err(HostError::NotHooked(name));
        }
    }
    furnish(&runtime)?;
    // The crash handler starts a helper process that reports to Endstone's makers; a test's crash is nothing for them.
    for name in [symbol::CRASH_HANDLER_NEW, symbol::CRASH_HANDLER_DELETE] {
        // SAFETY: constructor and destructor of a class whose one byte nobody reads; no other thread runs the runtime's code yet.
        unsafe { image::redirect(runtime.address(name)?, do_nothing as *const () as usize) };
    }
    // SAFETY: the lookup of a command in Bedrock's parser, replaced by one with the same arguments.
    unsafe {
        image::redirect(
            runtime.address(symbol::FIND_COMMAND)?,
            server_instance::find_command as *const () as usize,
        )
    };
    if !options.python {
        // SAFETY: the constructor of the loader, replaced by one with the same arguments.
        unsafe {
            image::redirect(
                runtime.address(symbol::PYTHON_LOADER_NEW)?,
                no_loader::construct as *const () as usize,
            )
        };
    }
    Ok(runtime)
}

/// What Endstone's launcher puts into a server folder, and without which its server does not start.
fn furnish(runtime: &Runtime) -> Result<(), HostError> {
    std::fs::create_dir_all("plugins").map_err(|source| HostError::Furnish {
        what: "plugins",
        source,
    })?;
    if !Path::new(CONFIG).exists() {
        std::fs::copy(runtime.default_config(), CONFIG)
            .map_err(|source| HostError::Furnish { what: CONFIG, source })?;
    }
    Ok(())
}

extern "C" fn do_nothing(_this: *mut std::ffi::c_void) {}
