//! Threads that ended during the session.
//!
//! A program that makes a thread for each job has had a million of them at the end of a day. The first are kept apart; later ones share the tree of one
//! with the same name, or that of all others.

use super::snapshot::ThreadProfile;
use super::tree::Tree;
use crate::limits;
use crate::model::ThreadKey;

/// Name of the tree of those whose name nobody shares.
const OTHERS: &str = "other threads that ended";

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedThreads {
    profiles: Vec<ThreadProfile>,
    others: Option<ThreadProfile>,
}

/// One thread's part of a profile.
pub(super) fn profile(key: ThreadKey, name: String, tree: Tree) -> ThreadProfile {
    ThreadProfile {
        key,
        name,
        tree,
        members: 1,
        alone: false,
    }
}

impl EndedThreads {
    /// Takes one in.
    pub(super) fn add(&mut self, key: ThreadKey, name: String, tree: Tree) {
        if self.profiles.len() < limits::ENDED_THREADS {
            self.profiles.push(profile(key, name, tree));
            return;
        }
        let known = match self.profiles.iter_mut().find(|known| known.name == name) {
            Some(known) => known,
            None => self.others.get_or_insert_with(|| ThreadProfile {
                members: 0,
                ..profile(key, OTHERS.to_owned(), Tree::new())
            }),
        };
        known.tree.absorb(&tree);
        known.members += 1;
    }

    /// Forgets all windows before `first`, and the threads that are not in any other.
    pub(super) fn forget_before(&mut self, first: u32) {
        let remains = |thread: &mut ThreadProfile| {
            thread.tree.forget_before(first);
            !thread.tree.windows().is_empty()
        };
        self.profiles.retain_mut(remains);
        if let Some(mut others) = self.others.take()
            && remains(&mut others)
        {
            self.others = Some(others);
        }
    }

    /// All trees.
    pub(super) fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.profiles.iter().chain(&self.others).map(|thread| &thread.tree)
    }

    /// All of them.
    pub(super) fn into_profiles(self) -> impl Iterator<Item = ThreadProfile> {
        self.profiles.into_iter().chain(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CodeId, Tid};
    use crate::profile::FrameKey;

    #[test]
    fn memory_is_bounded_and_no_time_is_lost() {
        let mut ended = EndedThreads::default();
        let count = 3 * limits::ENDED_THREADS as u32;
        for serial in 0..count {
            let mut tree = Tree::new();
            tree.add(&[FrameKey::Python(CodeId::new(serial % 7 + 1))], 0, 10);
            let key = ThreadKey {
                tid: Tid::new(5),
                serial,
            };
            // Every second one has a name of its own.
            let name = if serial % 2 == 0 {
                "job".to_owned()
            } else {
                format!("job {serial}")
            };
            ended.add(key, name, tree);
        }
        let profiles: Vec<ThreadProfile> = ended.into_profiles().collect();
        assert_eq!(profiles.len(), limits::ENDED_THREADS + 1);
        assert_eq!(profiles.iter().map(|thread| thread.members).sum::<u32>(), count);
        let total: u64 = profiles.iter().map(|thread| thread.tree.total_nanos()).sum();
        assert_eq!(total, u64::from(count) * 10);
        let others = profiles.last().unwrap();
        assert_eq!(
            (others.name.as_str(), others.members),
            (OTHERS, limits::ENDED_THREADS as u32)
        );
    }
}
