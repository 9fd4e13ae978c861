//! What the signal handler can reach, read from the plugin as it is built: every instruction of every function that `on_sigprof` can come to. It calls nothing but a
//! handful of functions of the C library that are safe in a signal handler (signal-safety(7); memcpy and its like have been so since glibc was written), touches no thread-local storage
//! and takes no lock, for there is none among these.
//!
//! Needs `objdump`, which comes with the C linker that Rust needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};

/// What may be called outside the plugin.
const ALLOWED: [&str; 9] = [
    // Behind the clean-up of functions that gimli's panics would pass through; those are looked at below, and nothing else leads there.
    "_Unwind_Resume",
    "__errno_location",
    "bcmp",
    "clock_gettime",
    "memcpy",
    "memmove",
    "memset",
    "process_vm_readv",
    "syscall",
];

/// Thread-local words that may be touched: the ABI's own pointer to the thread control block.
const CONTROL_BLOCK: &str = "%fs:0x0,";

#[derive(Default)]
struct Function {
    name: String,
    calls: BTreeSet<u64>,
    /// Functions of other libraries.
    imports: BTreeSet<String>,
    thread_local: Vec<String>,
    /// Calls through a register or memory that is not the linker's.
    indirect: Vec<String>,
}

fn plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    folder.join("libendstone_spark.so")
}

/// Linker's words by address: the function's name, or its address in the plugin.
fn words(file: &object::File<'_>) -> HashMap<u64, Result<u64, String>> {
    let symbols = file.dynamic_symbol_table().unwrap();
    file.dynamic_relocations()
        .unwrap()
        .map(|(at, relocation)| {
            let target = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    use object::ObjectSymbolTable;
                    Err(symbols.symbol_by_index(index).unwrap().name().unwrap().to_owned())
                }
                _ => Ok(relocation.addend() as u64),
            };
            (at, target)
        })
        .collect()
}

/// The address in `12ab <name>` or `# 12ab <name>`.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.split_whitespace().next()?, 16).ok()
}

fn functions(text: &str, words: &HashMap<u64, Result<u64, String>>) -> BTreeMap<u64, Function> {
    let mut all: BTreeMap<u64, Function> = BTreeMap::new();
    let mut current = 0;
    for line in text.lines() {
        if let Some((start, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            current = u64::from_str_radix(start, 16).unwrap();
            all.entry(current).or_default().name = name.to_owned();
            continue;
        }
        // "   12ab:\tcall   34cd <name>"
        let Some((_, instruction)) = line.split_once(":\t") else {
            continue;
        };
        let function = all.entry(current).or_default();
        if instruction.contains("%fs:") && !instruction.contains(CONTROL_BLOCK) || instruction.contains("tls_get_addr")
        {
            function.thread_local.push(line.to_owned());
        }
        let (operation, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let is_call = operation.starts_with("call");
        if !is_call && !operation.starts_with('j') {
            // A function's address that is taken may be called by whoever gets it.
            continue;
        }
        let operands = operands.trim();
        match operands.strip_prefix('*') {
            None => function.calls.extend(address(operands)),
            Some(_) => match operands
                .split_once("# ")
                .and_then(|(_, word)| words.get(&address(word)?))
            {
                Some(Ok(target)) => {
                    function.calls.insert(*target);
                }
                Some(Err(name)) => {
                    function.imports.insert(name.clone());
                }
                // A jump by a table stays in its function (the compiler adds a base to what it read); a call does not.
                None if is_call || operands.contains("(%rip)") => function.indirect.push(line.to_owned()),
                None => {}
            },
        }
    }
    all
}

#[test]
fn the_handler_reaches_no_lock_no_thread_local_and_only_safe_functions() {
    let path = plugin();
    let data = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(&path)
        .output()
        .expect("objdump comes with the C linker");
    assert!(output.status.success());
    let all = functions(&String::from_utf8_lossy(&output.stdout), &words(&file));
    assert!(file.section_by_name(".text").unwrap().size() > 100_000);
    let handler = file
        .symbols()
        .find(|symbol| symbol.name().is_ok_and(|name| name.contains("handler10on_sigprof")))
        .expect("the plugin has its symbol table");

    let mut reached = BTreeSet::new();
    let mut waiting = vec![(handler.address(), String::new())];
    let mut problems = Vec::new();
    let mut imports = BTreeSet::new();
    let mut indirect = Vec::new();
    while let Some((at, caller)) = waiting.pop() {
        let Some((start, function)) = all.range(..=at).next_back() else {
            panic!("{at:x} is in no function");
        };
        let name = format!("{:#}", rustc_demangle::demangle(&function.name));
        if panics(&name) {
            if !may_panic(&caller, &name) {
                problems.push(format!("{name} is reached from {caller}"));
            }
            continue;
        }
        if name.contains("@plt-") && caller == "_Unwind_Resume@plt" {
            // The dynamic linker's way of finding that one at its first call. Any other function found so from the handler is told below.
            continue;
        }
        if !reached.insert(*start) {
            continue;
        }
        problems.extend(function.thread_local.iter().map(|line| format!("{name}: {line}")));
        indirect.extend(function.indirect.iter().map(|line| format!("{name}: {line}")));
        imports.extend(function.imports.iter().cloned());
        waiting.extend(function.calls.iter().map(|call| (*call, name.clone())));
    }
    println!("{} functions, imports {imports:?}", reached.len());
    for line in &indirect {
        println!("indirect: {line}");
    }
    imports.retain(|name| !ALLOWED.contains(&name.as_str()));
    for problem in &problems {
        println!("{problem}");
    }
    assert!(reached.len() > 20, "the walk found the unwinder");
    assert!(imports.is_empty(), "{imports:?}");
    assert!(problems.is_empty());
    let known = ["on_sigprof", "expression::evaluate", "UnwindData::interpret"];
    assert!(
        indirect.iter().all(|line| known.iter().any(|name| line.contains(name))),
        "what is called by address is the handler that was there before, and the unwinder's own reader of memory"
    );
}

fn panics(name: &str) -> bool {
    ["core::panicking::", "unwrap_failed", "expect_failed"]
        .iter()
        .any(|known| name.contains(known))
}

/// gimli asserts what its own code makes sure of; that damaged data does not get it there is tested in `src/native/unwind_tests.rs`. And a panic that got as far as the
/// handler itself would end the process there instead of unwinding on.
fn may_panic(caller: &str, name: &str) -> bool {
    caller.trim_start_matches('<').starts_with("gimli::")
        || caller.contains("on_sigprof") && name.contains("panic_cannot_unwind")
}
