//! What a profile says of the server it was taken on. Gathered by the plugin on the server thread, before the first session.

/// The server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Environment {
    /// e.g. `Endstone`.
    pub server_name: String,
    /// e.g. `0.11.14`.
    pub server_version: String,
    /// The game's version.
    pub minecraft_version: String,
    /// All plugins, ours included, in the order they were loaded.
    pub plugins: Vec<PluginInfo>,
}

/// One plugin. All texts are free of control characters and colour codes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PluginInfo {
    /// As Endstone knows it.
    pub name: String,
    /// As the plugin gives it.
    pub version: String,
    /// Separated by commas; may be empty.
    pub authors: String,
    /// One line; may be empty.
    pub description: String,
    /// For a native plugin: the stem of its file, `shop` for `plugins/shop.so`.
    pub native_stem: Option<String>,
}
