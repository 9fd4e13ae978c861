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

use super::frames::FrameNames;
use super::ordered::OrderedTree;
use crate::limits::{EXPORT_DEPTH, EXPORT_ROOT_FRAMES};
use crate::profile::{IdMap, Tree};

/// The parent of root frames.
const ROOT: u32 = u32::MAX;

/// Not carried over yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// No node.
const NONE: u32 = u32::MAX;

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
    children: IdMap<(u32, u32), u32>,
    /// Node ([`ROOT`] for stacks without frames), window, nanoseconds. A pair may come several times.
    self_nanos: Vec<(u32, u32, u64)>,
    deepest: u32,
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
        let mut carried: IdMap<u32, u32> = IdMap::default();
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

    /// The order of export: callees before callers, siblings by `rank` of their names. Windows are counted from `first_window`.
    pub fn ordered(mut self, rank: &[u32], first_window: u32) -> OrderedTree {
        self.children = IdMap::default();
        let (places, order) = self.order(rank);

        let place_of = |node: u32| places.get(node as usize).copied().unwrap_or(ROOT);
        for (node, window, _) in &mut self.self_nanos {
            *node = place_of(*node);
            *window = window.saturating_sub(first_window);
        }
        self.self_nanos
            .sort_unstable_by_key(|(place, window, _)| (*place, *window));
        // Frames that share a name below one caller had their times apart.
        self.self_nanos.dedup_by(|later, kept| {
            let same = (later.0, later.1) == (kept.0, kept.1);
            if same {
                kept.2 += later.2;
            }
            same
        });
        let framed = self.self_nanos.partition_point(|(place, ..)| *place != ROOT);
        let (framed, bare) = self.self_nanos.split_at(framed);
        let mut tree = OrderedTree::new(bare.iter().map(|(_, window, nanos)| (*window, *nanos)).collect());
        let mut times = framed.iter().peekable();
        for (place, old) in order.iter().enumerate() {
            let Some(node) = self.nodes.get(*old as usize) else {
                continue;
            };
            let own = std::iter::from_fn(|| times.next_if(|(of, ..)| *of as usize == place));
            tree.push(
                node.name,
                node.depth - 1,
                0,
                own.map(|(_, window, nanos)| (*window, *nanos)),
            );
        }
        tree
    }

    /// For each node its place in the order of export, and for each place its node.
    fn order(&self, rank: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut ranked: Vec<u32> = (0..self.nodes.len() as u32).collect();
        ranked.sort_unstable_by_key(|node| {
            let name = self.nodes.get(*node as usize).map_or(0, |node| node.name);
            std::cmp::Reverse(rank.get(name as usize).copied().unwrap_or(u32::MAX))
        });
        // Callees as chains: the one that is put in last is the first.
        let mut first = vec![NONE; self.nodes.len()];
        let mut next = vec![NONE; self.nodes.len()];
        let mut first_root = NONE;
        for node in ranked {
            let parent = self.nodes.get(node as usize).map_or(ROOT, |node| node.parent);
            let head = first.get_mut(parent as usize).unwrap_or(&mut first_root);
            if let Some(next) = next.get_mut(node as usize) {
                *next = std::mem::replace(head, node);
            }
        }
        let follow = |list: &[u32], node: u32| list.get(node as usize).copied().unwrap_or(NONE);
        let mut places = vec![ROOT; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut way = Vec::new();
        let mut at = first_root;
        loop {
            // Down to the first frame that calls nothing, then take it, and go on with its sibling or, after the last one, its caller.
            while at != NONE {
                way.push(at);
                at = follow(&first, at);
            }
            let Some(node) = way.pop() else { break };
            if let Some(place) = places.get_mut(node as usize) {
                *place = order.len() as u32;
            }
            order.push(node);
            at = follow(&next, node);
        }
        (places, order)
    }
}
