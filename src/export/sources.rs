//! Which plugin a frame belongs to.
//!
//! Only a plugin's own frames get a source: the viewer's plugin view begins at the topmost frame of a plugin and keeps everything below it,
//! so the standard library and dependencies stay under the plugin that called them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::frames::{FrameName, FrameNames, Origin};
use super::pb;
use crate::model::{Category, CodeId, CodeInfo, Module, ModuleId, plugin_stem};
use crate::profile::Snapshot;

/// Shown where nothing better is known; the viewer always prints a version.
const UNKNOWN_VERSION: &str = "unknown";

/// A plugin, as the server knows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
    /// Its authors, joined.
    pub author: String,
    /// What it says of itself.
    pub description: String,
    /// File stem of a native plugin: `my_plugin` for `plugins/my_plugin.so`; `None` for a Python plugin.
    pub native_stem: Option<String>,
}

/// The source maps of a profile.
#[derive(Debug, Default)]
pub struct Sources {
    /// Class to plugin.
    pub by_class: BTreeMap<String, String>,
    /// `class;method;file` to plugin, for classes that do not belong to one plugin alone.
    pub by_method: BTreeMap<String, String>,
    /// What is known of the plugins, by lower-case name.
    pub metadata: BTreeMap<String, pb::PluginMetadata>,
}

impl Sources {
    /// The maps for these names. All `plugins` are listed, those without a frame too.
    pub fn of(names: &FrameNames<'_>, snapshot: &Snapshot, plugins: &[Source]) -> Sources {
        let mut sources = Sources {
            metadata: listed(plugins),
            ..Sources::default()
        };
        let modules: HashMap<ModuleId, &Module> = snapshot
            .modules
            .iter()
            .map(|module| (module.id, module.as_ref()))
            .collect();
        let codes: HashMap<CodeId, &CodeInfo> = snapshot.codes.iter().map(|(id, code)| (*id, code)).collect();

        let mut classes: BTreeMap<&str, Vec<(&FrameName, Option<String>)>> = BTreeMap::new();
        for (name, origin) in names.origins() {
            let plugin = match origin {
                Origin::Module(id) => modules
                    .get(&id)
                    .and_then(|module| native_plugin(module, &name.class, plugins)),
                Origin::Code(id) => codes.get(&id).and_then(|code| python_plugin(code)),
                Origin::Neither => None,
            };
            let plugin = plugin.map(|plugin| sources.canonical(&plugin));
            classes.entry(&name.class).or_default().push((name, plugin));
        }
        for (class, members) in classes {
            let owners: BTreeSet<&Option<String>> = members.iter().map(|(_, plugin)| plugin).collect();
            match (owners.len(), owners.first()) {
                (1, Some(Some(plugin))) => {
                    sources.by_class.insert(class.to_owned(), plugin.clone());
                }
                (1, _) => {}
                _ => {
                    for (name, plugin) in members {
                        if let Some(plugin) = plugin {
                            let key = format!("{class};{};{}", name.method, name.desc);
                            sources.by_method.insert(key, plugin);
                        }
                    }
                }
            }
        }
        sources
    }

    fn list(&mut self, plugin: &Source) {
        let version = match plugin.version.trim() {
            "" => UNKNOWN_VERSION,
            version => version,
        };
        self.metadata
            .entry(plugin.name.to_lowercase())
            .or_insert_with(|| pb::PluginMetadata {
                name: plugin.name.clone(),
                version: version.to_owned(),
                author: plugin.author.clone(),
                description: plugin.description.clone(),
                builtin: false,
            });
    }

    /// The spelling that the metadata uses; a plugin that nobody listed is listed now.
    fn canonical(&mut self, plugin: &str) -> String {
        let key = plugin.to_lowercase();
        if !self.metadata.contains_key(&key) {
            self.list(&Source {
                name: plugin.to_owned(),
                ..Source::default()
            });
        }
        self.metadata
            .get(&key)
            .map_or_else(|| plugin.to_owned(), |known| known.name.clone())
    }
}

/// Plugins as the viewer lists them, by lower-case name.
pub fn listed(plugins: &[Source]) -> BTreeMap<String, pb::PluginMetadata> {
    let mut sources = Sources::default();
    for plugin in plugins {
        sources.list(plugin);
    }
    sources.metadata
}

fn python_plugin(code: &CodeInfo) -> Option<String> {
    match code.category {
        Category::Plugin => code.plugin.clone(),
        Category::Endstone | Category::StandardLibrary | Category::Dependency | Category::Unknown => None,
    }
}

/// The plugin a module is: one that the server knows by this file stem, else, for any other library in the plugins folder itself or in the
/// copies made of it, one named after the file.
fn native_plugin(module: &Module, class: &str, plugins: &[Source]) -> Option<String> {
    let stem = plugin_stem(&module.path)?;
    let known = plugins.iter().find(|plugin| plugin.native_stem.as_ref() == Some(&stem));
    Some(known.map_or_else(|| class.to_owned(), |plugin| plugin.name.clone()))
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
