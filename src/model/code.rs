//! What is known of a Python code object.

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Category {
    /// An Endstone plugin.
    Plugin,
    /// Endstone's own package or bindings.
    Endstone,
    /// Python's standard library, frozen modules included.
    StandardLibrary,
    /// Any other installed distribution.
    Dependency,
    /// None of these: code made by `exec`, a script, a file that cannot be placed.
    Unknown,
}

impl Category {
    /// All categories, in the order they are counted.
    pub const ALL: [Category; 5] = [
        Category::Plugin,
        Category::Endstone,
        Category::StandardLibrary,
        Category::Dependency,
        Category::Unknown,
    ];

    /// A name for metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Plugin => "plugin",
            Category::Endstone => "endstone",
            Category::StandardLibrary => "standard library",
            Category::Dependency => "dependency",
            Category::Unknown => "unknown",
        }
    }
}

/// A code object's metadata, read once when it was first seen. All texts are presentable: valid UTF-8, no control characters, bounded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CodeInfo {
    /// The module's `__name__` at first sight, e.g. `my_plugin.main`.
    pub module: String,
    /// The qualified name, e.g. `MyPlugin.on_tick`.
    pub qualified_name: String,
    /// The source file as a user may see it: from `plugins/`, `site-packages/` or the standard library's root on, never an absolute path.
    pub file: String,
    /// First line, 0 when unknown.
    pub first_line: u32,
    /// Whose code it is.
    pub category: Category,
    /// For plugin code: the plugin's name as Endstone knows it.
    pub plugin: Option<String>,
}
