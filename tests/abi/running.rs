//! The released runtime's code, run on what we declare; and our vtables as they are in memory.

use std::ffi::{CStr, CString, c_void};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use endstone_spark::command;
use endstone_spark::endstone::abi::{
    CommandVtable, CxxString, CxxVector, Plugin, PluginBase, PluginSlots, PluginVtable, Slot,
};
use endstone_spark::endstone::{API_VERSION, init_endstone_plugin};

use super::released::Released;

/// The runtime under another name: under its own it hooks the server, which this process is not. Returns where it was loaded.
fn load_runtime() -> usize {
    static BASE: OnceLock<usize> = OnceLock::new();
    *BASE.get_or_init(|| {
        let site = &Released::get().site;
        // Its libraries are looked up in ../endstone.libs; a hard link costs nothing.
        let renamed = site.join("endstone").join("es_runtime.so");
        if !renamed.exists() {
            let partial = site
                .join("endstone")
                .join(format!("es_runtime.{}.so", std::process::id()));
            std::fs::hard_link(site.join("endstone/libendstone_runtime.so"), &partial).unwrap();
            std::fs::rename(&partial, &renamed).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        // The runtime writes its log below the working directory.
        std::env::set_current_dir(env!("CARGO_TARGET_TMPDIR")).unwrap();
        open(&python_for_linking(folder.path()));
        open(&renamed);
        base_of(&renamed)
    })
}

/// The runtime is linked against a libpython that this machine may not have and that nothing here calls: a library with that name and the
/// symbols that are asked for lets it load.
fn python_for_linking(folder: &Path) -> PathBuf {
    let mut assembly = String::from(".data\n");
    for symbol in Released::get()
        .runtime
        .undefined
        .iter()
        .filter(|name| name.starts_with("Py") || name.starts_with("_Py"))
    {
        writeln!(assembly, ".globl {symbol}\n{symbol}: .zero 512").unwrap();
    }
    let source = folder.join("python.s");
    std::fs::write(&source, assembly).unwrap();
    let library = folder.join("libpython3.13.so.1.0");
    let linked = Command::new("cc")
        .args([
            "-shared",
            "-nostdlib",
            "-Wl,-soname,libpython3.13.so.1.0",
            "-Wl,-z,noexecstack",
            "-o",
        ])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(
        linked.success(),
        "cc, which also links this test, could not link {}",
        source.display()
    );
    library
}

fn open(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a terminated path. Global, as the preloaded runtime is for a plugin.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    // SAFETY: dlopen failed, so dlerror has a message.
    assert!(!handle.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
}

fn base_of(path: &Path) -> usize {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> i32 {
        // SAFETY: dl_iterate_phdr passes a valid record, and `search` is the pair below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<(&Path, Option<usize>)>()) };
        // SAFETY: the loader's names are terminated.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        if name.to_bytes() == search.0.as_os_str().as_bytes() {
            search.1 = Some(info.dlpi_addr as usize);
        }
        0
    }
    let mut search: (&Path, Option<usize>) = (path, None);
    // SAFETY: `visit` has the right type and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.1.unwrap()
}

/// `CommandUsageParser`: the text as a string_view, a position, a string.
#[repr(C)]
struct UsageParser {
    text: *const u8,
    length: usize,
    position: usize,
    command_name: CxxString,
}

/// `std::expected<Result, std::string>`: 48 bytes of payload, then whether it is a result.
#[repr(C)]
struct Parsed {
    first: std::mem::ManuallyDrop<CxxString>,
    parameters: std::mem::ManuallyDrop<CxxVector<Parameter>>,
    is_result: u8,
    rest: [usize; 4],
}

/// `CommandUsageParser::Parameter`.
#[repr(C)]
struct Parameter {
    name: CxxString,
    kind: CxxString,
    optional: bool,
    is_enum: bool,
    values: CxxVector<CxxString>,
}

/// The command's name, and each parameter as `name: type`, with its values and whether it may be left out.
fn parse_usage(usage: &str) -> Result<(String, Vec<String>), String> {
    let address = load_runtime()
        + Released::get()
            .runtime
            .symbol("_ZN8endstone4core18CommandUsageParser5parseEv") as usize;
    // SAFETY: this symbol is `CommandUsageParser::parse()`, whose result is written through the hidden first pointer.
    let parse: unsafe extern "C-unwind" fn(*mut Parsed, *mut UsageParser) -> *mut Parsed =
        unsafe { std::mem::transmute(address) };
    let mut parser = UsageParser {
        text: usage.as_ptr(),
        length: usage.len(),
        position: 0,
        command_name: CxxString::new(""),
    };
    let mut parsed = std::mem::MaybeUninit::<Parsed>::zeroed();
    // SAFETY: a parser as its constructor makes it, and room for the result.
    let parsed = unsafe {
        parse(parsed.as_mut_ptr(), &raw mut parser);
        parsed.assume_init()
    };
    let first = parsed.first.to_text().into_owned();
    if parsed.is_result == 0 {
        return Err(first);
    }
    let parameters = parsed.parameters.as_slice().iter().map(|parameter| {
        format!(
            "{}{}: {}{}",
            if parameter.optional { "?" } else { "" },
            parameter.name.to_text(),
            parameter.kind.to_text(),
            if parameter.is_enum {
                format!(" = {}", parameter.values.to_texts().join("|"))
            } else {
                String::new()
            }
        )
    });
    Ok((first, parameters.collect()))
}

#[test]
fn endstone_accepts_every_usage_that_is_declared() {
    let parsed: Vec<_> = command::USAGES
        .iter()
        .map(|usage| parse_usage(usage).unwrap())
        .collect();
    assert!(parsed.iter().all(|(name, _)| name == command::NAME), "{parsed:?}");
    assert_eq!(parsed[0].1, ["?topic: SparkHelp = help|version"]);
    assert_eq!(
        parsed[1].1,
        [
            "module: SparkModule = profiler|sampler",
            "?action: SparkAction = start|stop|upload|info|cancel",
            "?flags: message"
        ]
    );
    assert_eq!(
        parsed[2].1,
        [
            "view: SparkView = tps|cpu|health|healthreport|ht|ping|tickmonitor|tickmonitoring",
            "?flags: message"
        ]
    );
    assert_eq!(
        parsed[3].1,
        ["list: SparkList = activity|activitylog|log", "?flags: message"]
    );
    assert_eq!(
        parsed[4].1,
        ["module: SparkModule = profiler|sampler", "arguments: message"]
    );
    assert_eq!(parsed[5].1, ["arguments: message"]);
    assert_eq!(parsed.len(), 6);
}

#[test]
fn endstone_refuses_a_broken_usage() {
    assert!(parse_usage("/spark <x").is_err());
    assert!(parse_usage("spark").is_err());
}

/// Which of `slots` of a vtable are empty, the two destructors included.
fn empty_slots(table: &[*const c_void]) -> Vec<usize> {
    (0..table.len()).filter(|index| table[*index].is_null()).collect()
}

#[test]
fn our_vtables_have_type_information_and_no_empty_slot() {
    load_runtime();
    let plugin = init_endstone_plugin();
    assert!(!plugin.is_null());
    // SAFETY: a fresh plugin, whose first word points to slot 0 of its vtable, which has a header of two words before it.
    let vtable = unsafe { &*(*plugin.cast::<*const u8>()).byte_sub(16).cast::<PluginVtable>() };
    let command = CommandVtable::get().unwrap();
    for (offset_to_top, type_info, slots, name) in [
        (
            vtable.offset_to_top,
            vtable.type_info,
            &vtable.slots[..],
            c"N5spark11SparkPluginE",
        ),
        (
            command.offset_to_top,
            command.type_info,
            &command.slots[..],
            c"N5spark12SparkCommandE",
        ),
    ] {
        assert_eq!(offset_to_top, 0);
        assert_eq!(empty_slots(slots), [0usize; 0], "{name:?}");
        // SAFETY: a type_info begins with its vtable pointer and its name.
        let (kind, shown) = unsafe {
            (
                *type_info.cast::<usize>(),
                CStr::from_ptr(*type_info.cast::<*const i8>().add(1)),
            )
        };
        assert_eq!(shown, name);
        // SAFETY: a terminated name.
        let expected = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_ZTVN10__cxxabiv120__si_class_type_infoE".as_ptr()) };
        assert_eq!(
            kind,
            expected as usize + 16,
            "the type information is of a class with one base"
        );
    }
    delete(plugin);
}

/// Calls the deleting destructor, as Endstone does.
fn delete(plugin: *mut c_void) {
    let deleting = Slot {
        index: 1,
        ..PluginSlots::ON_LOAD
    };
    // SAFETY: slot 1 is the deleting destructor, and the plugin is not used again.
    unsafe {
        let function: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(deleting.entry(plugin));
        function(plugin);
    }
}

#[test]
fn the_entry_makes_a_plugin_each_time_and_describes_it() {
    load_runtime();
    let plugins = [init_endstone_plugin(), init_endstone_plugin()];
    assert_ne!(plugins[0], plugins[1], "a reload asks the same image again");
    for plugin in plugins {
        // SAFETY: a fresh plugin of ours.
        let description = unsafe { Plugin::borrow(plugin) }.unwrap().description().unwrap();
        assert_eq!(description.name.to_text(), "spark");
        assert_eq!(description.api_version.to_text(), API_VERSION);
        assert_eq!(
            description.full_name.to_text(),
            concat!("spark v", env!("CARGO_PKG_VERSION"))
        );
        let [command] = description.commands.as_slice() else {
            panic!("{:?}", description.commands)
        };
        assert_eq!(command.name.to_text(), command::NAME);
        assert_eq!(command.usages.to_texts(), command::USAGES);
        let names: Vec<&str> = command::PERMISSIONS.iter().map(|permission| permission.name).collect();
        assert_eq!(command.permissions.to_texts(), names);
        let declared = description.permissions.as_slice();
        assert_eq!(declared.len(), names.len());
        for (permission, name) in declared.iter().zip(names) {
            assert_eq!(permission.name.to_text(), name);
        }
        // SAFETY: as above.
        assert!(!unsafe { &*plugin.cast::<PluginBase>() }.enabled);
        delete(plugin);
    }
}
