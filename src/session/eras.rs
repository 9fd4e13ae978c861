//! One numbering of Python functions for a session that attaches to Python more than once.
//!
//! An attachment numbers code objects from 1, and threads keep their shadow stacks until it ends; so a background session that runs for days attaches anew when
//! most stacks are taken. Each time is an era: its ids are moved behind those of the eras before. A sample belongs to the era in which it was taken: between two eras
//! no sample has a Python frame.

use parking_lot::Mutex;

use crate::limits;
use crate::model::{CodeId, CodeInfo, MonotonicNanos};
use crate::profile::FrameKey;

/// Nanoseconds after which nothing of an era is left in a session's trees.
const FORGOTTEN_NANOS: u64 = (limits::ENDLESS_MINUTES as u64 + 1) * 60_000_000_000;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct CodeEras(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Those that have ended, oldest first.
    past: Vec<Era>,
    /// What the ids of the era that runs are moved by.
    offset: u32,
}

#[derive(Debug)]
struct Era {
    ended: MonotonicNanos,
    offset: u32,
    codes: Vec<(CodeId, CodeInfo)>,
}

fn shifted(id: CodeId, offset: u32) -> CodeId {
    match id {
        CodeId::NONE => id,
        id => CodeId::new(id.get().saturating_add(offset)),
    }
}

impl CodeEras {
    /// An era has ended, with these codes. No sample from now on has an id of it.
    pub(super) fn end(&self, now: MonotonicNanos, codes: Vec<(CodeId, CodeInfo)>) {
        let mut state = self.0.lock();
        let offset = state.offset;
        let most = codes.iter().map(|(id, _)| id.get()).max().unwrap_or(0);
        state.offset = offset.saturating_add(most);
        let codes = codes
            .into_iter()
            .map(|(id, info)| (shifted(id, offset), info))
            .collect();
        state.past.retain(|era| now.since(era.ended) < FORGOTTEN_NANOS);
        state.past.push(Era {
            ended: now,
            offset,
            codes,
        });
    }

    /// All codes, those of the era that runs as given.
    pub(super) fn all(&self, codes: Vec<(CodeId, CodeInfo)>) -> Vec<(CodeId, CodeInfo)> {
        let state = self.0.lock();
        let past = state.past.iter().flat_map(|era| era.codes.iter().cloned());
        let own = codes.into_iter().map(|(id, info)| (shifted(id, state.offset), info));
        past.chain(own).collect()
    }

    /// The path of a sample that was taken then, in the session's numbering. `moved` is where it is put if it is another.
    pub(super) fn path<'a>(
        &self,
        taken_at: MonotonicNanos,
        path: &'a [FrameKey],
        moved: &'a mut Vec<FrameKey>,
    ) -> &'a [FrameKey] {
        let offset = {
            let state = self.0.lock();
            let mut past = state.past.iter().rev().take_while(|era| taken_at < era.ended);
            past.by_ref().last().map_or(state.offset, |era| era.offset)
        };
        if offset == 0 {
            return path;
        }
        moved.clear();
        moved.extend(path.iter().map(|key| match key {
            FrameKey::Python(id) => FrameKey::Python(shifted(*id, offset)),
            other => *other,
        }));
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Category;

    fn info(name: &str) -> CodeInfo {
        CodeInfo {
            module: "m".to_owned(),
            qualified_name: name.to_owned(),
            file: String::new(),
            first_line: 1,
            category: Category::Plugin,
            plugin: None,
        }
    }

    fn named(eras: &CodeEras, at: u64, id: u32, own: &[(CodeId, CodeInfo)]) -> String {
        let mut moved = Vec::new();
        let path = [FrameKey::Omitted(1), FrameKey::Python(CodeId::new(id))];
        let path = eras.path(MonotonicNanos(at), &path, &mut moved);
        assert_eq!(path[0], FrameKey::Omitted(1));
        let FrameKey::Python(id) = path[1] else {
            panic!("{path:?}")
        };
        let codes = eras.all(own.to_vec());
        let mut found = codes.iter().filter(|(known, _)| *known == id);
        let name = found.next().unwrap().1.qualified_name.clone();
        assert!(found.next().is_none(), "one id, two functions");
        name
    }

    #[test]
    fn an_id_means_the_function_of_its_own_era() {
        let eras = CodeEras::default();
        let era = |names: [&str; 2]| vec![(CodeId::new(1), info(names[0])), (CodeId::new(2), info(names[1]))];
        assert_eq!(named(&eras, 5, 1, &era(["a", "b"])), "a");
        eras.end(MonotonicNanos(10), era(["a", "b"]));
        eras.end(MonotonicNanos(20), era(["c", "d"]));
        let own = era(["e", "f"]);
        for (at, id, name) in [
            (5, 1, "a"),
            (9, 2, "b"),
            (10, 1, "c"),
            (19, 2, "d"),
            (20, 1, "e"),
            (99, 2, "f"),
        ] {
            assert_eq!(named(&eras, at, id, &own), name, "{at} {id}");
        }
        let mut moved = Vec::new();
        let unknown = [FrameKey::Python(CodeId::NONE)];
        assert_eq!(eras.path(MonotonicNanos(15), &unknown, &mut moved), unknown);
    }

    #[test]
    fn what_is_forgotten_takes_no_memory() {
        let eras = CodeEras::default();
        for hour in 0..1_000_u64 {
            eras.end(
                MonotonicNanos(hour * 3_600_000_000_000),
                vec![(CodeId::new(3), info("f"))],
            );
        }
        assert_eq!(eras.all(Vec::new()).len(), 2);
    }
}
