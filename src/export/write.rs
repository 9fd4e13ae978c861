//! A profile as spark's protobuf, frame by frame.
//!
//! A message inside a message begins with its length, so the frames are walked twice: once for their lengths, which do not depend on any time, and once to
//! write them. The bytes are those that prost would write of the whole message, which never exists.

use std::borrow::Cow;
use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len, string};

use super::fold::folded_name;
use super::ordered::{FOLDED, OrderedNode, Visit};
use super::pb;
use super::profile::{Profile, ThreadTree, encoded_name};
use crate::limits::WRITE_BUFFER_BYTES;

/// Numbers of the fields that are written here, as in `proto/spark_sampler.proto`.
const DATA_THREADS: u32 = 2;
const THREAD_NAME: u32 = 1;
const THREAD_CHILDREN: u32 = 3;
const THREAD_TIMES: u32 = 4;
const THREAD_CHILDREN_REFS: u32 = 5;
const NODE_TIMES: u32 = 8;
const NODE_CHILDREN_REFS: u32 = 9;

/// Writes a profile as protobuf. The same profile gives the same bytes.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let head = pb::SamplerData {
        metadata: profile.rest.metadata.clone(),
        ..pb::SamplerData::default()
    };
    let tail = pb::SamplerData {
        metadata: None,
        ..profile.rest.clone()
    };
    out.write_all(&head.encode_to_vec())?;
    for thread in &profile.threads {
        write_thread(profile, thread, out)?;
    }
    out.write_all(&tail.encode_to_vec())
}

/// Size of what [`write`] writes, in bytes.
pub fn written_bytes(profile: &Profile) -> u64 {
    let threads = profile.threads.iter().map(|thread| {
        let length = thread_length(profile, thread);
        field_length(DATA_THREADS, length)
    });
    profile.rest.encoded_len() as u64 + threads.sum::<u64>()
}

fn write_thread(profile: &Profile, thread: &ThreadTree, out: &mut dyn Write) -> io::Result<()> {
    let windows = profile.windows();
    let mut buffer = Vec::with_capacity(WRITE_BUFFER_BYTES);
    encode_key(DATA_THREADS, WireType::LengthDelimited, &mut buffer);
    encode_varint(thread_length(profile, thread), &mut buffer);
    if !thread.name.is_empty() {
        string::encode(THREAD_NAME, &thread.name, &mut buffer);
    }
    let whole = thread.tree.walk(windows, |visit| {
        encode_key(THREAD_CHILDREN, WireType::LengthDelimited, &mut buffer);
        let name = name_of(profile, visit.node);
        encode_varint(node_length(name.len(), windows, visit.children), &mut buffer);
        buffer.extend_from_slice(&name);
        times(NODE_TIMES, visit.nanos, &mut buffer);
        refs(NODE_CHILDREN_REFS, visit.children, &mut buffer);
        if buffer.len() >= WRITE_BUFFER_BYTES / 2 {
            out.write_all(&buffer)?;
            buffer.clear();
        }
        Ok::<(), io::Error>(())
    })?;
    times(THREAD_TIMES, &whole.nanos, &mut buffer);
    refs(THREAD_CHILDREN_REFS, &whole.roots, &mut buffer);
    out.write_all(&buffer)
}

fn thread_length(profile: &Profile, thread: &ThreadTree) -> u64 {
    let windows = profile.windows();
    let mut length = 0;
    if !thread.name.is_empty() {
        length += string::encoded_len(THREAD_NAME, &thread.name) as u64;
    }
    // Lengths do not depend on times.
    let whole = thread.tree.walk_all(0, |Visit { node, children, .. }| {
        let name = name_of(profile, node).len();
        length += field_length(THREAD_CHILDREN, node_length(name, windows, children));
    });
    length + times_length(THREAD_TIMES, windows) + refs_length(THREAD_CHILDREN_REFS, &whole.roots)
}

/// The encoded name of a frame.
fn name_of<'p>(profile: &'p Profile, node: &OrderedNode) -> Cow<'p, [u8]> {
    if node.name == FOLDED {
        return Cow::Owned(encoded_name(&folded_name(node.folded)));
    }
    Cow::Borrowed(profile.names.get(node.name as usize).map_or(&[], Vec::as_slice))
}

fn node_length(name: usize, windows: usize, children: &[u32]) -> u64 {
    name as u64 + times_length(NODE_TIMES, windows) + refs_length(NODE_CHILDREN_REFS, children)
}

/// Length of a field that holds `length` bytes.
fn field_length(field: u32, length: u64) -> u64 {
    (key_len(field) + encoded_len_varint(length)) as u64 + length
}

fn times_length(field: u32, windows: usize) -> u64 {
    field_length(field, 8 * windows as u64)
}

fn times(field: u32, nanos: &[u64], buffer: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, buffer);
    encode_varint(8 * nanos.len() as u64, buffer);
    for nanos in nanos {
        // Whole nanoseconds: a double holds them exactly up to 104 days.
        let millis = *nanos as f64 / 1e6;
        buffer.extend_from_slice(&millis.to_le_bytes());
    }
}

fn refs_length(field: u32, refs: &[u32]) -> u64 {
    match refs {
        [] => 0,
        _ => field_length(field, refs_bytes(refs)),
    }
}

fn refs_bytes(refs: &[u32]) -> u64 {
    refs.iter()
        .map(|place| encoded_len_varint(u64::from(*place)) as u64)
        .sum()
}

fn refs(field: u32, refs: &[u32], buffer: &mut Vec<u8>) {
    if refs.is_empty() {
        return;
    }
    encode_key(field, WireType::LengthDelimited, buffer);
    encode_varint(refs_bytes(refs), buffer);
    for place in refs {
        encode_varint(u64::from(*place), buffer);
    }
}
