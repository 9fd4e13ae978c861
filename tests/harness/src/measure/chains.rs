//! Judges stacks of a program whose functions, shares and callers are known: the mill of `benches/accuracy`.

use std::collections::BTreeMap;

/// A function that is known, and who calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Whether it is native code.
    pub native: bool,
    /// Its caller among those that are known.
    pub caller: Option<&'static str>,
}

/// What a profiler saw of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Weight of the samples whose innermost known function each is.
    pub own: BTreeMap<&'static str, f64>,
    /// Weight of the samples with all callers of that function, in order, and no others, of those that are known.
    pub right: f64,
    /// Of these, how many show the thread's first function as well.
    pub right_to_the_root: f64,
}

impl Judged {
    /// Weight of all samples with a known function.
    pub fn total(&self) -> f64 {
        self.own.values().sum()
    }

    /// Percent of [`Self::total`] that each function has.
    pub fn shares(&self) -> BTreeMap<&'static str, f64> {
        let total = self.total();
        self.own
            .iter()
            .map(|(name, own)| (*name, 100.0 * own / total))
            .collect()
    }
}

/// Judges stacks, outermost frame first, with their weights. `root` is a part of the name of the thread's first function.
pub fn judge<'a>(
    known: &[Known],
    root: &str,
    stacks: impl IntoIterator<Item = (impl IntoIterator<Item = &'a str>, f64)>,
) -> Judged {
    let mut judged = Judged::default();
    for (stack, weight) in stacks {
        let mut from_root = false;
        let mut seen: Vec<&Known> = Vec::new();
        for frame in stack {
            from_root |= frame.contains(root);
            seen.extend(known.iter().find(|known| known.is(frame)));
        }
        let Some(last) = seen.last() else { continue };
        *judged.own.entry(last.name).or_default() += weight;
        if seen.iter().map(|known| known.name).eq(path(known, last.name)) {
            judged.right += weight;
            judged.right_to_the_root += if from_root { weight } else { 0.0 };
        }
    }
    judged
}

impl Known {
    /// Whether a frame is of this function, in the words of any of the profilers.
    fn is(&self, frame: &str) -> bool {
        let name = self.name;
        if self.native {
            let function = format!("mill_{name}");
            return frame.split([' ', '.', '(', ')']).any(|word| word == function);
        }
        frame == format!("[Python] endstone_mill.work.{name}")
            || frame.starts_with(&format!("{name} (")) && frame.contains("work.py")
            || frame.starts_with(&format!("work.py:{name}:"))
    }
}

/// A function's callers, outermost first, and itself.
fn path(known: &[Known], name: &'static str) -> Vec<&'static str> {
    let mut path = vec![name];
    let mut at = name;
    while let Some(caller) = known
        .iter()
        .find(|known| known.name == at)
        .and_then(|known| known.caller)
    {
        path.push(caller);
        at = caller;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Known; 3] = [
        Known {
            name: "day",
            native: false,
            caller: None,
        },
        Known {
            name: "sow",
            native: true,
            caller: Some("day"),
        },
        Known {
            name: "reap",
            native: false,
            caller: Some("sow"),
        },
    ];

    fn judged(stacks: &[(&str, f64)]) -> Judged {
        judge(
            &KNOWN,
            "_serverThread",
            stacks.iter().map(|(stack, weight)| (stack.split(';'), *weight)),
        )
    }

    #[test]
    fn functions_are_recognised_in_each_profilers_words() {
        for stack in [
            "bedrock_server.ServerInstance::_serverThread;[Python] endstone_mill.work.day;mill.mill_sow;[Python] endstone_mill.work.reap;libc.x",
            "_serverThread;day (endstone_mill/work.py:57);mill_sow (mill.so);reap (endstone_mill/work.py:9)",
            "_serverThread;work.py:day:60;mill_sow;work.py:reap:2",
        ] {
            let judged = judged(&[(stack, 2.0)]);
            assert_eq!(judged.own, [("reap", 2.0)].into(), "{stack}");
            assert_eq!((judged.right, judged.right_to_the_root), (2.0, 2.0), "{stack}");
        }
    }

    #[test]
    fn a_chain_is_right_only_with_all_callers_in_their_order() {
        let wrong = [
            ("mill_sow (mill.so);day (endstone_mill/work.py:1)", 1.0),
            ("day (endstone_mill/work.py:1);reap (endstone_mill/work.py:1)", 1.0),
            ("day (work.py:1);reap (work.py:1);mill_sow", 1.0),
        ];
        let judged_wrong = judged(&wrong);
        assert_eq!((judged_wrong.right, judged_wrong.total()), (0.0, 3.0));
        let right = judged(&[("day (work.py:1);mill_sow", 3.0), ("day (work.py:1)", 1.0)]);
        assert_eq!((right.right, right.right_to_the_root), (4.0, 0.0));
        assert_eq!(right.shares(), [("day", 25.0), ("sow", 75.0)].into());
    }

    #[test]
    fn what_is_not_known_does_not_count() {
        let judged = judged(&[("yesterday (work.py:1);mill_sowing;poll (libc.so.6)", 5.0)]);
        assert_eq!(judged.total(), 0.0);
    }
}
