//! A finished profile, as small as it can be kept: the sums that the format wants are made when it is written.

use prost::encoding::{int32, string};

use super::frames::FrameName;
use super::ordered::OrderedTree;
use super::pb;
use super::shorten::bounded;
use crate::limits::COMMENT_CHARS;

/// Numbers of a frame's fields, as in `proto/spark_sampler.proto`.
const CLASS_NAME: u32 = 3;
const METHOD_NAME: u32 = 4;
const LINE_NUMBER: u32 = 6;
const METHOD_DESC: u32 = 7;

/// A profile with all names found, ready to be folded and written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Profile {
    /// Everything but the threads.
    pub(super) rest: pb::SamplerData,
    /// What a frame of each name begins with, encoded.
    pub(super) names: Vec<Vec<u8>>,
    /// In the order they are shown.
    pub(super) threads: Vec<ThreadTree>,
}

/// A thread, or several in one tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ThreadTree {
    pub(super) name: String,
    pub(super) tree: OrderedTree,
}

impl Profile {
    /// Number of windows; at least one.
    pub(super) fn windows(&self) -> usize {
        self.rest.time_windows.len().max(1)
    }

    /// Gives it another comment than the one it was made with.
    pub fn set_comment(&mut self, text: &str) {
        if let Some(metadata) = &mut self.rest.metadata {
            metadata.comment = bounded(text, COMMENT_CHARS);
        }
    }

    /// Number of frames, those that stand for folded ones included.
    pub fn frames(&self) -> usize {
        self.threads.iter().map(|thread| thread.tree.nodes().len()).sum()
    }
}

/// The fields of a frame that its name decides, encoded in the order of their numbers.
pub(super) fn encoded_name(name: &FrameName) -> Vec<u8> {
    let mut bytes = Vec::new();
    text(CLASS_NAME, &name.class, &mut bytes);
    text(METHOD_NAME, &name.method, &mut bytes);
    if name.line > 0 {
        int32::encode(LINE_NUMBER, &i32::try_from(name.line).unwrap_or(i32::MAX), &mut bytes);
    }
    text(METHOD_DESC, &name.desc, &mut bytes);
    bytes
}

/// An empty text is not written.
fn text(field: u32, text: &String, bytes: &mut Vec<u8>) {
    if !text.is_empty() {
        string::encode(field, text, bytes);
    }
}
