//! Threads that ended during the session.
//!
//! A program that makes a thread for each job has had a million of them at the end of a day. The first are kept apart; later ones share the tree of one
//! with the same name, or that of all others.

use crate::limits;
use crate::model::ThreadKey;
use crate::profile::{ThreadProfile, Tree};

/// Name of the tree of those whose name nobody shares.
const OTHERS: &str = "other threads that ended";

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct EndedThreads {
    profiles: Vec<ThreadProfile>,
    others: Option<usize>,
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
        let place = match self.profiles.iter().position(|known| known.name == name) {
            Some(place) => place,
            None => *self.others.get_or_insert_with(|| {
                self.profiles.push(ThreadProfile {
                    members: 0,
                    ..profile(key, OTHERS.to_owned(), Tree::new())
                });
                self.profiles.len() - 1
            }),
        };
        if let Some(known) = self.profiles.get_mut(place) {
            known.tree.absorb(&tree);
            known.members += 1;
        }
    }

    /// All of them.
    pub(super) fn into_profiles(self) -> Vec<ThreadProfile> {
        self.profiles
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
        let profiles = ended.into_profiles();
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
