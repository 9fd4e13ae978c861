//! Names for the addresses of a profile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::demangle::demangle;
use super::error::SymbolError;
use super::read::{Named, read_module};
use crate::limits::SYMBOL_THREADS;
use crate::model::{BuildId, Module, ModuleId};
use crate::sys::{Deadline, thread};

/// Where systems keep debug files of their packages.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Names of the functions of modules. Each module's file is read once, when its first address is asked for.
#[derive(Debug)]
pub struct Symbolizer {
    modules: HashMap<ModuleId, Arc<Named>>,
    /// A library that was unloaded and loaded again has a new id and the same names.
    builds: HashMap<BuildId, Arc<Named>>,
    demangled: HashMap<(ModuleId, usize), String>,
    problems: Vec<(ModuleId, SymbolError)>,
    debug_root: PathBuf,
    /// After which no further file is read.
    deadline: Deadline,
}

impl Default for Symbolizer {
    fn default() -> Self {
        Self::with_debug_root(Path::new(DEBUG_ROOT))
    }
}

impl Symbolizer {
    /// A symbolizer that has read nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A symbolizer that looks for separate debug files in another folder than `/usr/lib/debug`.
    pub fn with_debug_root(debug_root: &Path) -> Self {
        Symbolizer {
            modules: HashMap::new(),
            builds: HashMap::new(),
            demangled: HashMap::new(),
            problems: Vec::new(),
            debug_root: debug_root.to_owned(),
            deadline: Deadline::default(),
        }
    }

    /// The same, reading no further file once this has passed: functions in those have no names then.
    #[must_use]
    pub fn until(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }

    /// The full name of the function at `rva` (see [`crate::model::NativeFrame::rva`]), demangled, without parameters; `None` when no
    /// function of known extent holds the address.
    pub fn resolve(&mut self, module: &Module, rva: u64) -> Option<String> {
        let named = self.module(module);
        let (index, symbol) = named.functions.at(module.base_svma.wrapping_add(rva))?;
        let name = self
            .demangled
            .entry((module.id, index))
            .or_insert_with(|| demangle(symbol));
        Some(name.clone())
    }

    /// First address, relative like `rva`, of the function at `rva`, as far as the module's unwind data tells: what stands for a function
    /// without a name.
    pub fn function_start(&mut self, module: &Module, rva: u64) -> Option<u64> {
        let named = self.module(module);
        let start = named.extents.start_of(module.base_svma.wrapping_add(rva))?;
        start.checked_sub(module.base_svma)
    }

    /// Why a module has no names at all; `None` when it has some, or was not asked for yet.
    pub fn problem(&self, module: &Module) -> Option<&SymbolError> {
        self.problems
            .iter()
            .find(|(id, _)| *id == module.id)
            .map(|(_, error)| error)
    }

    /// Whether the deadline has left a module without its names.
    pub fn ran_out_of_time(&self) -> bool {
        self.problems
            .iter()
            .any(|(_, error)| matches!(error, SymbolError::NoTime))
    }

    /// Reads the files of all these modules, several at a time. What is not read here is read when it is asked for.
    pub fn prepare(&mut self, modules: &[Arc<Module>]) {
        // The server needs a processor for itself.
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().saturating_sub(1));
        self.prepare_on(threads.min(SYMBOL_THREADS), modules);
    }

    fn prepare_on(&mut self, threads: usize, modules: &[Arc<Module>]) {
        let unread: Vec<Arc<Module>> = modules
            .iter()
            .filter(|module| !self.modules.contains_key(&module.id))
            .map(Arc::clone)
            .collect();
        let threads = threads.min(unread.len());
        if threads < 2 {
            return;
        }
        let todo = Arc::new(Mutex::new(unread));
        let done = Arc::new(Mutex::new(Vec::new()));
        let start = |_| {
            let (todo, done, debug_root) = (Arc::clone(&todo), Arc::clone(&done), self.debug_root.clone());
            let deadline = self.deadline.clone();
            let work = move || {
                loop {
                    let next = todo.lock().pop();
                    let Some(module) = next else { break };
                    let read = read_in_time(&module, &debug_root, &deadline);
                    done.lock().push((module, read));
                }
            };
            thread::spawn("spark-symbols", work).ok()
        };
        let workers: Vec<thread::Worker> = (0..threads).filter_map(start).collect();
        workers.into_iter().for_each(|worker| worker.join());
        for (module, read) in std::mem::take(&mut *done.lock()) {
            self.keep(&module, read);
        }
    }

    fn module(&mut self, module: &Module) -> Arc<Named> {
        if let Some(named) = self.modules.get(&module.id) {
            return Arc::clone(named);
        }
        let known = module
            .build_id
            .as_ref()
            .and_then(|id| self.builds.get(id))
            .map(Arc::clone);
        match known {
            Some(named) => {
                self.modules.insert(module.id, Arc::clone(&named));
                named
            }
            None => self.keep(module, read_in_time(module, &self.debug_root, &self.deadline)),
        }
    }

    fn keep(&mut self, module: &Module, read: Result<Named, SymbolError>) -> Arc<Named> {
        let named = Arc::new(read.unwrap_or_else(|error| {
            self.problems.push((module.id, error));
            Named::default()
        }));
        self.modules.insert(module.id, Arc::clone(&named));
        if let Some(id) = &module.build_id {
            self.builds.insert(id.clone(), Arc::clone(&named));
        }
        named
    }
}

fn read_in_time(module: &Module, debug_root: &Path, deadline: &Deadline) -> Result<Named, SymbolError> {
    match deadline.is_over() {
        true => Err(SymbolError::NoTime),
        false => read_module(module, debug_root),
    }
}

#[cfg(test)]
#[path = "symbolizer_tests.rs"]
mod tests;
