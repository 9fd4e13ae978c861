//! Reads profiles, for tests and for `./dev`.

use crate::check::{self, Findings};
use crate::error::{Error, FileContext, Result};
use crate::tree::{self, TreeOptions};
use endstone_spark::export::pb::{SamplerData, SamplerMetadata, StackTraceNode, ThreadNode};
use prost::Message;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A profile as the viewer gets it.
#[derive(Clone, Debug)]
pub struct Profile {
    data: SamplerData,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The module of native code, or `[Python] ` and the module of Python code.
    pub class: &'a str,
    /// The function.
    pub method: &'a str,
    /// The source file, where there is one.
    pub file: &'a str,
}

impl Frame<'_> {
    /// As the viewer shows it, without its `()`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.class, self.method)
    }

    /// Whether it is a Python function.
    pub fn is_python(&self) -> bool {
        self.class.starts_with(PYTHON)
    }
}

/// How the class of a Python frame starts.
pub(crate) const PYTHON: &str = "[Python] ";

/// One stack, with the time that its last frame spent itself.
#[derive(Clone, Debug)]
pub struct Stack<'a> {
    /// The thread's name.
    pub thread: &'a str,
    /// From the root to the leaf.
    pub frames: Vec<Frame<'a>>,
    /// Milliseconds.
    pub self_millis: f64,
}

impl Stack<'_> {
    /// Whether a frame's name contains this text.
    pub fn has(&self, text: &str) -> bool {
        self.position(text).is_some()
    }

    /// Whether frames that contain these texts are in it in this order, root first. Other frames may lie between.
    pub fn has_in_order(&self, texts: &[&str]) -> bool {
        let mut frames = self.frames.iter();
        texts.iter().all(|text| frames.any(|frame| frame.name().contains(text)))
    }

    /// The place of the root-most frame whose name contains this text.
    pub fn position(&self, text: &str) -> Option<usize> {
        self.frames.iter().position(|frame| frame.name().contains(text))
    }
}

impl Profile {
    /// Reads a `.sparkprofile`.
    ///
    /// # Errors
    /// If the file cannot be read or is not raw spark protobuf.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).context("read", path)?;
        Self::decode(&bytes).map_err(|reason| Error::Content {
            path: path.to_owned(),
            reason,
        })
    }

    /// Decodes the content of a `.sparkprofile`.
    ///
    /// # Errors
    /// In words, if it is none.
    pub fn decode(bytes: &[u8]) -> std::result::Result<Self, String> {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            return Err("it is compressed; the viewer opens raw files only".to_owned());
        }
        SamplerData::decode(bytes)
            .map(Self::from)
            .map_err(|error| format!("not a spark profile ({error})"))
    }

    /// The message itself.
    pub fn data(&self) -> &SamplerData {
        &self.data
    }

    /// How and where it was taken.
    pub fn metadata(&self) -> Option<&SamplerMetadata> {
        self.data.metadata.as_ref()
    }

    /// One value of the viewer's "Misc" tab, parsed.
    pub fn extra(&self, name: &str) -> Option<serde_json::Value> {
        serde_json::from_str(self.metadata()?.extra_platform_metadata.get(name)?).ok()
    }

    /// Names of the threads, in the viewer's order.
    pub fn threads(&self) -> Vec<&str> {
        self.data.threads.iter().map(|thread| thread.name.as_str()).collect()
    }

    /// The same profile with only the threads whose names the closure accepts.
    #[must_use]
    pub fn with_threads(&self, accept: impl Fn(&str) -> bool) -> Self {
        let mut data = self.data.clone();
        data.threads.retain(|thread| accept(&thread.name));
        Self { data }
    }

    /// All stacks with a time of their own.
    pub fn stacks(&self) -> Vec<Stack<'_>> {
        self.data.threads.iter().flat_map(thread_stacks).collect()
    }

    /// Whether a stack has a frame with this text in its name.
    pub fn has(&self, text: &str) -> bool {
        self.stacks().iter().any(|stack| stack.has(text))
    }

    /// Milliseconds of all threads together.
    pub fn total_millis(&self) -> f64 {
        self.data.threads.iter().flat_map(|thread| &thread.times).sum()
    }

    /// The share (0 to 1) of all time that is spent in stacks for which the closure says yes.
    pub fn share_of(&self, accept: impl Fn(&Stack<'_>) -> bool) -> f64 {
        let total = self.total_millis();
        if total <= 0.0 {
            return 0.0;
        }
        let accepted = self
            .stacks()
            .iter()
            .filter(|stack| accept(stack))
            .map(|stack| stack.self_millis)
            .sum::<f64>();
        // The sum of nothing is -0.
        accepted.abs() / total
    }

    /// Plugins and the share (0 to 1) of all time in and below their own frames, most first, as the viewer's plugins view counts it.
    pub fn plugins(&self) -> Vec<(String, f64)> {
        let total = self.total_millis();
        let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
        let stacks = self.stacks();
        for stack in &stacks {
            if let Some(plugin) = stack.frames.iter().find_map(|frame| self.source(frame)) {
                *shares.entry(plugin).or_default() += stack.self_millis / total;
            }
        }
        let mut shares: Vec<_> = shares
            .into_iter()
            .map(|(plugin, share)| (plugin.to_owned(), share))
            .collect();
        shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        shares
    }

    /// Whose frame it is, looked up as the viewer does.
    fn source(&self, frame: &Frame<'_>) -> Option<&str> {
        let key = format!("{};{};{}", frame.class, frame.method, frame.file);
        let by_method = (!frame.file.is_empty())
            .then(|| self.data.method_sources.get(&key))
            .flatten();
        by_method
            .or_else(|| self.data.class_sources.get(frame.class))
            .map(String::as_str)
    }

    /// The tree as text.
    pub fn tree(&self, options: TreeOptions) -> String {
        tree::text(&self.data, options)
    }

    /// What the viewer would stumble over.
    pub fn check(&self) -> Findings {
        check::check(&self.data)
    }
}

impl From<SamplerData> for Profile {
    fn from(data: SamplerData) -> Self {
        Self { data }
    }
}

/// The sum over all windows.
pub(crate) fn millis(node: &StackTraceNode) -> f64 {
    node.times.iter().sum()
}

/// The nodes that a list of references names. References that lead nowhere are the check's business.
pub(crate) fn referenced<'a>(
    thread: &'a ThreadNode,
    refs: &'a [i32],
) -> impl Iterator<Item = (usize, &'a StackTraceNode)> {
    refs.iter().filter_map(|index| {
        let index = usize::try_from(*index).ok()?;
        Some((index, thread.children.get(index)?))
    })
}

fn thread_stacks(thread: &ThreadNode) -> Vec<Stack<'_>> {
    let mut stacks = Vec::new();
    // Each node once: a damaged file may hold a cycle.
    let mut seen = vec![false; thread.children.len()];
    let mut path: Vec<Frame<'_>> = Vec::new();
    let mut todo: Vec<(usize, &StackTraceNode, usize)> = referenced(thread, &thread.children_refs)
        .map(|(index, node)| (index, node, 0))
        .collect();
    while let Some((index, node, depth)) = todo.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        path.truncate(depth);
        path.push(Frame {
            class: &node.class_name,
            method: &node.method_name,
            file: &node.method_desc,
        });
        let below: f64 = referenced(thread, &node.children_refs)
            .map(|(_, child)| millis(child))
            .sum();
        let own = millis(node) - below;
        // Sums of doubles leave crumbs.
        if own > 1e-9 {
            stacks.push(Stack {
                thread: &thread.name,
                frames: path.clone(),
                self_millis: own,
            });
        }
        todo.extend(referenced(thread, &node.children_refs).map(|(index, child)| (index, child, depth + 1)));
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sound::{node, profile};

    #[test]
    fn stacks_hold_self_time_and_the_way_from_the_root() {
        let profile = profile();
        let stacks = profile.stacks();
        let total: f64 = stacks.iter().map(|stack| stack.self_millis).sum();
        assert!((total - profile.total_millis()).abs() < 1e-6, "{total}");
        let leaf = stacks.iter().find(|stack| stack.has("offer_value")).unwrap();
        assert!(leaf.has_in_order(&[
            "Level::tick",
            "[Python] endstone_market",
            "builtin_sorted",
            "offer_value"
        ]));
        assert!(!leaf.has_in_order(&["offer_value", "Level::tick"]));
        assert!(leaf.frames.last().unwrap().is_python());
        assert!(!leaf.frames[0].is_python());
    }

    #[test]
    fn shares_are_of_all_time() {
        let share = profile().share_of(|stack| stack.has("[Python]"));
        assert!((share - 0.3).abs() < 1e-9, "{share}");
        assert!(profile().share_of(|_| true) > 0.999_999);
        assert_eq!(profile().with_threads(|name| name == "nobody").share_of(|_| true), 0.0);
    }

    #[test]
    fn a_cycle_ends() {
        let mut data = profile().data().clone();
        data.threads[0].children.push(node("a", "b", 1.0, &[0]));
        let index = i32::try_from(data.threads[0].children.len() - 1).unwrap();
        data.threads[0].children[0].children_refs.push(index);
        data.threads[0].children[0].children_refs.push(7000);
        assert!(!Profile::from(data).stacks().is_empty());
    }

    #[test]
    fn round_trip_and_refusal() {
        let bytes = profile().data().encode_to_vec();
        assert_eq!(Profile::decode(&bytes).unwrap().data(), profile().data());
        assert!(Profile::decode(&[0x1f, 0x8b, 8, 0]).unwrap_err().contains("compressed"));
        assert!(
            Profile::decode(b"\xff\xff\xff")
                .unwrap_err()
                .contains("not a spark profile")
        );
    }
}
