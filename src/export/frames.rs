//! What each frame is called in the viewer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::glue;
use super::shorten::shorten;
use crate::limits::{CLASS_CHARS, NAME_CHARS};
use crate::model::{CodeId, CodeInfo, Module, ModuleId, StackEnd, plugin_stem};
use crate::profile::{FrameKey, NodeView, Snapshot, Tree};
use crate::symbol::Symbolizer;

/// Names the functions of modules. Addresses are those of [`crate::model::NativeFrame::rva`].
pub trait NativeNames {
    /// Tells which modules will be asked for.
    fn prepare(&mut self, _modules: &[Arc<Module>]) {}

    /// The full name, demangled, without parameters; `None` when no function of known extent holds the address.
    fn function(&mut self, module: &Module, rva: u64) -> Option<String>;

    /// First address of the function, where that is known of a function without a name.
    fn function_start(&mut self, module: &Module, rva: u64) -> Option<u64>;

    /// Why the module has no names at all, in a user's words; `None` when it has some, or was not asked for yet.
    fn problem(&self, module: &Module) -> Option<String>;
}

impl NativeNames for Symbolizer {
    fn prepare(&mut self, modules: &[Arc<Module>]) {
        Symbolizer::prepare(self, modules);
    }

    fn function(&mut self, module: &Module, rva: u64) -> Option<String> {
        self.resolve(module, rva)
    }

    fn function_start(&mut self, module: &Module, rva: u64) -> Option<u64> {
        Symbolizer::function_start(self, module, rva)
    }

    fn problem(&self, module: &Module) -> Option<String> {
        Symbolizer::problem(self, module).map(ToString::to_string)
    }
}

/// Class of frames that stand for something of ours rather than for code. The viewer shows `class.method()`.
pub(super) const OWN_CLASS: &str = "[spark]";

/// The viewer shows a frame of this class as `method (native)`.
const NATIVE_CLASS: &str = "native";

/// Prefix of every Python frame's class.
const PYTHON_PREFIX: &str = "[Python] ";

/// What the viewer shows of a frame, and what tells two frames apart.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FrameName {
    /// Module: `bedrock_server`, `[Python] my_plugin.main`.
    pub class: String,
    /// Function: `Level::tick`, `MyPlugin.on_tick`.
    pub method: String,
    /// The source file of a Python function, else empty. Not shown.
    pub desc: String,
    /// First line of a Python function, else 0. Not shown.
    pub line: u32,
}

/// A named frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// Index in [`FrameNames::names`].
    pub name: u32,
    /// The frame only carries a call from its parent to its children and is to be left out.
    pub glue: bool,
    /// How many frames it stands for.
    pub stands_for: u32,
}

/// Names frames, each key once.
pub struct FrameNames<'a> {
    modules: HashMap<ModuleId, &'a Module>,
    codes: HashMap<CodeId, &'a CodeInfo>,
    native: &'a mut dyn NativeNames,
    show_interpreter: bool,
    /// Addresses that call the eval frames of Python functions.
    carriers: HashSet<(ModuleId, u64)>,
    /// First addresses of nameless functions that only carry calls.
    carrying: HashSet<(ModuleId, u64)>,
    named: HashMap<FrameKey, Named>,
    ids: HashMap<FrameName, u32>,
    names: Vec<FrameName>,
    origins: Vec<Origin>,
    /// Addresses with and without a name.
    coverage: HashMap<ModuleId, (u64, u64)>,
}

/// How well a module's frames could be named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleCoverage {
    /// The class of its frames.
    pub class: String,
    /// Its build id, with which other tools can find its names.
    pub build_id: Option<String>,
    /// Distinct addresses that have a name.
    pub named: u64,
    /// Distinct addresses that have none.
    pub nameless: u64,
    /// Why it has no names at all.
    pub problem: Option<String>,
}

/// Where the frames of one name come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// Code of this module.
    Module(ModuleId),
    /// This Python code object.
    Code(CodeId),
    /// Neither.
    Neither,
}

impl std::fmt::Debug for FrameNames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameNames")
            .field("names", &self.names.len())
            .finish_non_exhaustive()
    }
}

impl<'a> FrameNames<'a> {
    /// Names for the frames of `snapshot`. `show_interpreter` keeps the interpreter's glue.
    pub fn new(snapshot: &'a Snapshot, native: &'a mut dyn NativeNames, show_interpreter: bool) -> Self {
        let modules: HashMap<ModuleId, &Module> = snapshot
            .modules
            .iter()
            .map(|module| (module.id, Arc::as_ref(module)))
            .collect();
        let carrying = carrying_functions(snapshot, &modules, native);
        FrameNames {
            modules,
            codes: snapshot.codes.iter().map(|(id, info)| (*id, info)).collect(),
            native,
            show_interpreter,
            carrying,
            carriers: snapshot
                .threads
                .iter()
                .flat_map(|thread| carriers(&thread.tree))
                .collect(),
            named: HashMap::new(),
            ids: HashMap::new(),
            names: Vec::new(),
            origins: Vec::new(),
            coverage: HashMap::new(),
        }
    }

    /// The name of a frame.
    pub fn name(&mut self, key: FrameKey) -> Named {
        if let Some(named) = self.named.get(&key) {
            return *named;
        }
        let named = match key {
            FrameKey::Native { module, rva } => self.name_native(module, rva, self.carriers.contains(&(module, rva))),
            FrameKey::Eval { module, rva } => self.name_native(module, rva, true),
            FrameKey::Python(code) => self.name_python(code),
            FrameKey::Omitted(count) => {
                let text = format!("{} left out", counted(count, "native frame"));
                self.stand_in(NATIVE_CLASS, &text, count)
            }
            FrameKey::Ended(StackEnd::Root) => self.stand_in(NATIVE_CLASS, "root of the stack", 1),
            FrameKey::Ended(end) => {
                let text = format!("callers not found: {}", end.name());
                self.stand_in(NATIVE_CLASS, &text, 1)
            }
            FrameKey::Truncated => self.stand_in(OWN_CLASS, "more frames (truncated): the call tree is full", 1),
        };
        self.named.insert(key, named);
        named
    }

    /// The name of the frame that stands for `count` frames taken out of the middle of a stack.
    pub fn cut(&mut self, count: u32) -> u32 {
        let FrameKey::Omitted(count) = FrameKey::omitted(count) else {
            return 0;
        };
        let text = format!(
            "{} left out: the stack is too deep for the viewer",
            counted(count, "frame")
        );
        self.stand_in(OWN_CLASS, &text, count).name
    }

    /// All names so far.
    pub fn names(&self) -> &[FrameName] {
        &self.names
    }

    /// Names with their origins. The first frame of a name decides.
    pub fn origins(&self) -> impl Iterator<Item = (&FrameName, Origin)> + '_ {
        self.names.iter().zip(self.origins.iter().copied())
    }

    /// Modules with frames, by id.
    pub fn coverage(&self) -> Vec<ModuleCoverage> {
        let mut ids: Vec<&ModuleId> = self.coverage.keys().collect();
        ids.sort_unstable();
        let covered = |id: &ModuleId| {
            let (module, (named, nameless)) = (self.modules.get(id)?, self.coverage.get(id)?);
            Some(ModuleCoverage {
                class: native_class(module),
                build_id: module.build_id.as_ref().map(ToString::to_string),
                named: *named,
                nameless: *nameless,
                problem: self.native.problem(module),
            })
        };
        ids.into_iter().filter_map(covered).collect()
    }

    /// Python code objects that were named and of which nothing is known.
    pub fn unknown_codes(&self) -> u64 {
        let unknown = |key: &&FrameKey| matches!(key, FrameKey::Python(id) if !self.codes.contains_key(id));
        self.named.keys().filter(unknown).count() as u64
    }

    /// `carries`: the frame calls an eval frame, or is one that runs nothing, which the interpreter's own names need not tell.
    fn name_native(&mut self, id: ModuleId, rva: u64, carries: bool) -> Named {
        let Some(&module) = self.modules.get(&id) else {
            return self.stand_in(NATIVE_CLASS, "code outside all known modules", 1);
        };
        let short = module.short_name();
        let class = native_class(module);
        let (named, nameless) = self.coverage.entry(id).or_default();
        let (method, glue) = match self.native.function(module, rva) {
            Some(function) => {
                *named += 1;
                let glue = carries || glue::is_glue(function.strip_suffix("@plt").unwrap_or(&function));
                (function, glue)
            }
            None => {
                *nameless += 1;
                let start = self.native.function_start(module, rva);
                let carries = carries || start.is_some_and(|start| self.carrying.contains(&(id, start)));
                (format!("{class}+{:#x}", start.unwrap_or(rva)), carries)
            }
        };
        let glue = glue && glue::is_interpreter(&short);
        let name = FrameName {
            class,
            method: presentable(&method, NAME_CHARS),
            desc: String::new(),
            line: 0,
        };
        Named {
            name: self.intern(name, Origin::Module(id)),
            glue: glue && !self.show_interpreter,
            stands_for: 1,
        }
    }

    fn name_python(&mut self, id: CodeId) -> Named {
        let Some(code) = self.codes.get(&id) else {
            return self.stand_in(&format!("{PYTHON_PREFIX}unknown"), "unknown function", 1);
        };
        let name = FrameName {
            class: python_class(code),
            method: presentable(&code.qualified_name, NAME_CHARS),
            desc: presentable(&code.file, NAME_CHARS),
            line: code.first_line,
        };
        Named {
            name: self.intern(name, Origin::Code(id)),
            glue: false,
            stands_for: 1,
        }
    }

    fn stand_in(&mut self, class: &str, method: &str, stands_for: u32) -> Named {
        let name = FrameName {
            class: class.to_owned(),
            method: method.to_owned(),
            desc: String::new(),
            line: 0,
        };
        Named {
            name: self.intern(name, Origin::Neither),
            glue: false,
            stands_for,
        }
    }

    fn intern(&mut self, name: FrameName, origin: Origin) -> u32 {
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.clone());
        self.origins.push(origin);
        self.ids.insert(name, id);
        id
    }
}

/// Addresses whose callee is the eval frame of a Python function. In the interpreter's module these are the functions that set such a frame up
/// (`_PyEval_Vector`, `gen_send_ex2`, what they were inlined into): known here without a name, which most installed interpreters do not have.
fn carriers(tree: &Tree) -> impl Iterator<Item = (ModuleId, u64)> + '_ {
    tree.nodes().filter_map(|node| {
        let parent = match node.key {
            FrameKey::Python(_) | FrameKey::Eval { .. } => tree.node(node.parent?)?,
            _ => return None,
        };
        match parent.key {
            FrameKey::Native { module, rva } => Some((module, rva)),
            _ => None,
        }
    })
}

/// Nameless functions of the interpreter that only carry calls: those found alone between its call functions, entered from another module, and an
/// address that sets up a Python frame. That is `method_vectorcall` and its like. What does work of its own is not found there: a built-in function
/// stands below a function that unpacks its arguments.
fn carrying_functions(
    snapshot: &Snapshot,
    modules: &HashMap<ModuleId, &Module>,
    native: &mut dyn NativeNames,
) -> HashSet<(ModuleId, u64)> {
    let mut found = HashSet::new();
    let mut seen = HashSet::new();
    for tree in snapshot.threads.iter().map(|thread| &thread.tree) {
        let parent = |node: NodeView| node.parent.and_then(|parent| tree.node(parent));
        for node in tree.nodes() {
            if !matches!(node.key, FrameKey::Python(_)) {
                continue;
            }
            let Some((carrier, function)) = parent(node).and_then(|carrier| Some((carrier, parent(carrier)?))) else {
                continue;
            };
            let (FrameKey::Native { module: id, .. }, FrameKey::Native { module: same, rva }) =
                (carrier.key, function.key)
            else {
                continue;
            };
            if id != same || !seen.insert((id, rva)) {
                continue;
            }
            let Some(&module) = modules.get(&id) else { continue };
            if !glue::is_interpreter(&module.short_name()) || native.function(module, rva).is_some() {
                continue;
            }
            let mut callers = 0;
            let mut at = parent(function);
            while let Some(FrameKey::Native { module: same, rva }) = at.map(|node| node.key)
                && same == id
                && native.function(module, rva).is_some_and(|name| glue::is_glue(&name))
            {
                callers += 1;
                at = at.and_then(parent);
            }
            let from_outside = matches!(at.map(|node| node.key), Some(FrameKey::Native { module, .. }) if module != id);
            if callers == 0 || !from_outside {
                // Another way to it may tell more.
                seen.remove(&(id, rva));
            } else if let Some(start) = native.function_start(module, rva) {
                found.insert((id, start));
            }
        }
    }
    found
}

/// The class of a Python function. Files and libraries are named with an ending that the viewer would take for the class's last part.
pub fn python_class(code: &CodeInfo) -> String {
    let mut module = presentable(&code.module, CLASS_CHARS - PYTHON_PREFIX.len());
    for ending in [".py", ".so"] {
        if let Some(stem) = module.strip_suffix(ending) {
            module = format!("{stem}_{}", &ending[1..]);
        }
    }
    format!("{PYTHON_PREFIX}{module}")
}

/// The class of a module's functions: its file name without endings; dots become underscores, because the viewer dims everything up to the
/// last one. The copies that Endstone loads plugins from (`plugins/.local/<stem>-<hash>.so`) lose their hash.
pub fn native_class(module: &Module) -> String {
    let stem = plugin_stem(&module.path).unwrap_or_else(|| {
        let short = module.short_name();
        short.strip_suffix(" (deleted)").unwrap_or(&short).to_owned()
    });
    // `_json.cpython-313-x86_64-linux-gnu` and `_rust.abi3` are `_json` and `_rust` to whoever imports them.
    let tag = [".cpython-", ".abi3"]
        .iter()
        .filter_map(|tag| stem.find(tag))
        .filter(|at| *at > 0)
        .min();
    let stem = stem.get(..tag.unwrap_or(stem.len())).unwrap_or(&stem);
    presentable(&stem.replace('.', "_"), CLASS_CHARS)
}

fn presentable(name: &str, max_chars: usize) -> String {
    let short = shorten(name, max_chars);
    if short.trim().is_empty() {
        "unknown".to_owned()
    } else {
        short
    }
}

/// `2 to 3 frames` for a count that was rounded down to a power of two.
fn counted(count: u32, noun: &str) -> String {
    match count {
        0 | 1 => format!("1 {noun}"),
        _ => format!("{count} to {} {noun}s", u64::from(count) * 2 - 1),
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
