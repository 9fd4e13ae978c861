//! The tree as it is exported: frames by name instead of by address.
//!
//! # Algorithm
//! Call trees hold callers before callees, so one pass in order of the nodes carries a tree over: each node becomes the child of its
//! parent's image. Nodes that only carry a call take their parent's image, siblings of one name share one, and nodes without time below
//! them get none. Times stay integers until the very end, so the sums stay exact.
//!
//! Stacks deeper than the viewer can show lose their middle. Each is cut for itself: the root-most frames keep their place, then one frame
//! says how many are missing, then come the leaf-most ones. The count is in powers of two (see [`FrameKey::omitted`]), which lets
//! recursions of different depth share one branch.
//!
//! [`FrameKey::omitted`]: crate::profile::FrameKey::omitted

use std::collections::HashMap;

use super::frames::FrameNames;
use crate::limits::{EXPORT_DEPTH, EXPORT_ROOT_FRAMES};
use crate::profile::Tree;

/// The parent of root frames.
const ROOT: u32 = u32::MAX;

/// Not carried over yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// Leaf-most frames kept of a stack that is too deep.
const LEAF_KEPT: usize = EXPORT_DEPTH - EXPORT_ROOT_FRAMES - 1;

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    name: u32,
    /// 1 for root frames.
    depth: u32,
    /// Frames on the way from the root to this one, omitted ones included as far as their number is known.
    frames: u32,
}

/// One thread's frames by name, with the time each was leaf-most.
#[derive(Debug, Default)]
pub struct Layout {
    /// Parents before their children.
    nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32>,
    /// Node ([`ROOT`] for stacks without frames), window, nanoseconds. A pair may come several times.
    self_nanos: Vec<(u32, u32, u64)>,
    deepest: u32,
}

/// Frames of a [`Layout`] in the order of export.
#[derive(Debug)]
pub struct Ordered {
    /// Callers before callees; siblings by name.
    pub nodes: Vec<OrderedNode>,
    /// The root frames' indexes in `nodes`.
    pub roots: Vec<u32>,
    /// Nanoseconds of the thread per window.
    pub nanos: Vec<f64>,
}

/// One exported frame.
#[derive(Debug)]
pub struct OrderedNode {
    /// Index of the name.
    pub name: u32,
    /// Nanoseconds per window, callees included. Whole numbers: a double holds them exactly up to 104 days.
    pub nanos: Vec<f64>,
    /// Callees' indexes.
    pub children: Vec<u32>,
}

impl Layout {
    /// Carries a call tree over. Several may go into one layout.
    pub fn add(&mut self, tree: &Tree, names: &mut FrameNames<'_>) {
        let mut used = vec![false; tree.len()];
        for (node, nanos) in tree.windows().iter().flat_map(|times| &times.self_nanos) {
            if let Some(used) = used.get_mut(*node as usize) {
                *used |= *nanos > 0;
            }
        }
        for index in (0..tree.len()).rev() {
            let parent = tree.node(index).and_then(|node| node.parent);
            if used.get(index) == Some(&true)
                && let Some(parent) = parent.and_then(|parent| used.get_mut(parent))
            {
                *parent = true;
            }
        }

        let mut images: Vec<u32> = Vec::with_capacity(tree.len());
        for (node, used) in tree.nodes().zip(&used) {
            let parent = match node.parent {
                Some(parent) => images.get(parent).copied().unwrap_or(UNKNOWN),
                None => ROOT,
            };
            let image = if *used {
                let named = names.name(node.key);
                if named.glue && parent != ROOT {
                    parent
                } else {
                    self.child(parent, named.name, named.stands_for)
                }
            } else {
                UNKNOWN
            };
            images.push(image);
        }
        for times in tree.windows() {
            if times.bare_nanos > 0 {
                self.self_nanos.push((ROOT, times.window, times.bare_nanos));
            }
            for (node, nanos) in &times.self_nanos {
                if let Some(image) = images.get(*node as usize).filter(|image| **image != UNKNOWN) {
                    self.self_nanos.push((*image, times.window, *nanos));
                }
            }
        }
    }

    fn child(&mut self, parent: u32, name: u32, stands_for: u32) -> u32 {
        if let Some(child) = self.children.get(&(parent, name)) {
            return *child;
        }
        let (depth, frames) = self
            .nodes
            .get(parent as usize)
            .map_or((0, 0), |node| (node.depth, node.frames));
        let child = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent,
            name,
            depth: depth + 1,
            frames: frames.saturating_add(stands_for),
        });
        self.deepest = self.deepest.max(depth + 1);
        self.children.insert((parent, name), child);
        child
    }

    fn frames_to(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(0, |node| node.frames)
    }

    /// The same time on stacks of at most [`EXPORT_DEPTH`] frames.
    pub fn cut(self, names: &mut FrameNames<'_>) -> Layout {
        if self.deepest as usize <= EXPORT_DEPTH {
            return self;
        }
        let mut cut = Layout::default();
        let mut images = vec![UNKNOWN; self.nodes.len()];
        let mut carried = HashMap::new();
        // Times of one node lie in several windows: its stack is carried over once.
        for &(node, window, nanos) in &self.self_nanos {
            let image = match carried.get(&node) {
                Some(image) => *image,
                None => {
                    let image = self.carry(node, &mut cut, &mut images, names);
                    carried.insert(node, image);
                    image
                }
            };
            cut.self_nanos.push((image, window, nanos));
        }
        cut
    }

    /// Carries one stack over to `cut`.
    fn carry(&self, leaf: u32, cut: &mut Layout, images: &mut [u32], names: &mut FrameNames<'_>) -> u32 {
        let depth = self.nodes.get(leaf as usize).map_or(0, |node| node.depth as usize);
        if depth <= EXPORT_DEPTH {
            return self.carry_whole(leaf, cut, images);
        }
        let mut leaf_side = Vec::with_capacity(LEAF_KEPT);
        let mut at = leaf;
        while let Some(node) = self.nodes.get(at as usize)
            && leaf_side.len() < LEAF_KEPT
        {
            leaf_side.push((node.name, node.frames - self.frames_to(node.parent)));
            at = node.parent;
        }
        let last_cut = at;
        while let Some(node) = self.nodes.get(at as usize)
            && node.depth as usize > EXPORT_ROOT_FRAMES
        {
            at = node.parent;
        }
        let missing = self.frames_to(last_cut) - self.frames_to(at);
        let mut image = self.carry_whole(at, cut, images);
        image = cut.child(image, names.cut(missing), missing);
        for (name, stands_for) in leaf_side.into_iter().rev() {
            image = cut.child(image, name, stands_for);
        }
        image
    }

    /// Carries a stack of allowed depth over.
    fn carry_whole(&self, leaf: u32, cut: &mut Layout, images: &mut [u32]) -> u32 {
        let mut chain = Vec::new();
        let mut at = leaf;
        while let Some(node) = self.nodes.get(at as usize)
            && images.get(at as usize) == Some(&UNKNOWN)
        {
            chain.push(at);
            at = node.parent;
        }
        let mut image = images.get(at as usize).copied().unwrap_or(ROOT);
        while let Some(old) = chain.pop() {
            if let (Some(node), Some(slot)) = (self.nodes.get(old as usize), images.get_mut(old as usize)) {
                image = cut.child(image, node.name, node.frames - self.frames_to(node.parent));
                *slot = image;
            }
        }
        image
    }

    /// The order of export: callers before callees, siblings by `rank` of their names. Times are sums over callees, one per window from
    /// `first_window` on.
    pub fn ordered(&self, rank: &[u32], first_window: u32, windows: usize) -> Ordered {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut roots = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            children
                .get_mut(node.parent as usize)
                .unwrap_or(&mut roots)
                .push(index as u32);
        }
        let rank_of = |node: &u32| {
            let name = self.nodes.get(*node as usize).map_or(0, |node| node.name);
            rank.get(name as usize).copied().unwrap_or(u32::MAX)
        };
        for list in children.iter_mut().chain(std::iter::once(&mut roots)) {
            list.sort_unstable_by_key(rank_of);
        }

        // Old index to place in the order.
        let mut places = vec![ROOT; self.nodes.len()];
        let mut order: Vec<u32> = Vec::with_capacity(self.nodes.len());
        let mut todo: Vec<u32> = roots.iter().rev().copied().collect();
        while let Some(old) = todo.pop() {
            if let (Some(place), Some(children)) = (places.get_mut(old as usize), children.get(old as usize)) {
                *place = order.len() as u32;
                order.push(old);
                todo.extend(children.iter().rev());
            }
        }

        let place_all = |olds: &[u32]| {
            olds.iter()
                .filter_map(|old| places.get(*old as usize).copied())
                .collect::<Vec<u32>>()
        };
        let mut ordered = Ordered {
            nodes: Vec::with_capacity(order.len()),
            roots: place_all(&roots),
            nanos: vec![0.0; windows],
        };
        for old in &order {
            ordered.nodes.push(OrderedNode {
                name: self.nodes.get(*old as usize).map_or(0, |node| node.name),
                nanos: vec![0.0; windows],
                children: children
                    .get(*old as usize)
                    .map(|olds| place_all(olds))
                    .unwrap_or_default(),
            });
        }
        for (node, window, nanos) in &self.self_nanos {
            let times = match places.get(*node as usize) {
                Some(place) => ordered.nodes.get_mut(*place as usize).map(|node| &mut node.nanos),
                None => Some(&mut ordered.nanos),
            };
            if let Some(time) = times.and_then(|times| times.get_mut(window.saturating_sub(first_window) as usize)) {
                *time += *nanos as f64;
            }
        }
        ordered.sum_up(&order, &places, self);
        ordered
    }
}

impl Ordered {
    /// Adds every frame's time to its caller's.
    fn sum_up(&mut self, order: &[u32], places: &[u32], layout: &Layout) {
        for index in (0..self.nodes.len()).rev() {
            let parent = order
                .get(index)
                .and_then(|old| layout.nodes.get(*old as usize))
                .map(|node| node.parent);
            let place = parent
                .and_then(|parent| places.get(parent as usize))
                .map(|place| *place as usize);
            let (before, rest) = self.nodes.split_at_mut(index);
            let Some(node) = rest.first() else { continue };
            let sums = match place.and_then(|place| before.get_mut(place)) {
                Some(parent) => &mut parent.nanos,
                None => &mut self.nanos,
            };
            for (sum, nanos) in sums.iter_mut().zip(&node.nanos) {
                *sum += nanos;
            }
        }
    }
}
