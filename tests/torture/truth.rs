//! Judges profiles by what the program itself says of its functions (`tests/programs/torture.py`): whose call alone can bring each about.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use harness::{Frame, Profile, Stack};
use serde::Deserialize;

/// Whatever runs when garbage is collected may be called from anywhere.
const ANYWHERE: &str = "*";
/// The beginning of a thread.
const ROOT: &str = "";
/// Frames that stand for others. What is beyond them cannot be judged.
const STANDS_FOR_OTHERS: [&str; 3] = ["left out", "callers not found", "truncated"];
/// So many places of each kind are named.
const SHOWN: usize = 10;

/// What the program says.
#[derive(Deserialize)]
pub struct Truth {
    /// For each function, those that may be the nearest of this program's below it on the stack.
    parents: HashMap<String, Vec<String>>,
    /// In which threads a function at the root is at home.
    threads: HashMap<String, String>,
}

/// What profiles had.
#[derive(Default, Debug)]
pub struct Judged {
    /// Pairs of a function and its caller that were looked at, as often as they are in a different stack.
    pub pairs: u64,
    /// Functions of the program that were seen.
    pub functions: BTreeSet<String>,
    /// Chains that the program cannot have, with their milliseconds.
    pub wrong: BTreeMap<String, f64>,
    /// Chains in which only something is missing.
    pub gaps: BTreeMap<String, f64>,
    /// Milliseconds of stacks with functions of the program.
    pub millis: f64,
}

impl Truth {
    /// Looks at every stack of a profile.
    pub fn judge(&self, profile: &Profile, judged: &mut Judged) {
        for stack in profile.stacks() {
            self.stack(&stack, judged);
        }
    }

    fn stack(&self, stack: &Stack<'_>, judged: &mut Judged) {
        // `None` where what is below cannot be known.
        let mut below = Some(ROOT);
        let mut is_ours = false;
        for frame in &stack.frames {
            if let Some(name) = function(frame) {
                is_ours = true;
                judged.functions.insert(name.to_owned());
                if let Some(below) = below {
                    judged.pairs += 1;
                    let verdict = self.pair(below, name);
                    let chain = || format!("{} < {below:?} on {}", name, stack.thread);
                    match verdict {
                        Verdict::Right => {}
                        Verdict::Gap => *judged.gaps.entry(chain()).or_default() += stack.self_millis,
                        Verdict::Wrong => *judged.wrong.entry(chain()).or_default() += stack.self_millis,
                    }
                }
                if self.is_elsewhere(name, stack.thread) {
                    let place = format!("{name} on {}", stack.thread);
                    *judged.wrong.entry(place).or_default() += stack.self_millis;
                }
                below = Some(name);
            } else if STANDS_FOR_OTHERS.iter().any(|text| frame.method.contains(text)) {
                below = None;
            }
        }
        if is_ours {
            judged.millis += stack.self_millis;
        }
    }

    fn pair(&self, below: &str, name: &str) -> Verdict {
        let Some(parents) = self.parents.get(name) else {
            return Verdict::Wrong;
        };
        if parents.iter().any(|parent| parent == ANYWHERE || parent == below) {
            return Verdict::Right;
        }
        if self.has_ancestor(name, below) {
            Verdict::Gap
        } else {
            Verdict::Wrong
        }
    }

    /// Whether `name` can be somewhere above `below`.
    fn has_ancestor(&self, name: &str, below: &str) -> bool {
        let mut known = BTreeSet::from([name]);
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            for parent in self.parents.get(name).into_iter().flatten() {
                if parent == below || parent == ANYWHERE {
                    return true;
                }
                if known.insert(parent) {
                    open.push(parent);
                }
            }
        }
        below == ROOT
    }

    /// Whether a thread that has one kind of work shows another's.
    fn is_elsewhere(&self, name: &str, thread: &str) -> bool {
        let home = self.threads.get(name);
        thread.starts_with("tort-") && home.is_some_and(|home| !thread.starts_with(home.as_str()))
    }
}

#[derive(PartialEq, Eq, Debug)]
enum Verdict {
    Right,
    Gap,
    Wrong,
}

/// The program's function that a frame is.
fn function<'a>(frame: &Frame<'a>) -> Option<&'a str> {
    let ours = frame.is_python() && frame.class.contains("torture");
    ours.then(|| frame.method.rsplit('.').next().unwrap_or(frame.method))
}

/// The places with most time.
pub fn first(places: &BTreeMap<String, f64>) -> String {
    let mut places: Vec<_> = places.iter().collect();
    places.sort_by(|a, b| b.1.total_cmp(a.1));
    let line = |(place, millis): (&String, &f64)| format!("\n    {millis:.1} ms: {place}");
    places.into_iter().take(SHOWN).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_chains_are_told_from_those_that_lack_a_function() {
        let truth: Truth = serde_json::from_str(
            r#"{"parents": {"main": [""], "step": ["main"], "leaf": ["step", "leaf"], "other": ["main"], "drop": ["*"]},
                "threads": {"main": "tort-main"}}"#,
        )
        .unwrap();
        assert_eq!(truth.pair("", "main"), Verdict::Right);
        assert_eq!(truth.pair("step", "leaf"), Verdict::Right);
        assert_eq!(truth.pair("leaf", "leaf"), Verdict::Right);
        assert_eq!(truth.pair("leaf", "drop"), Verdict::Right);
        assert_eq!(truth.pair("main", "leaf"), Verdict::Gap);
        assert_eq!(truth.pair("", "leaf"), Verdict::Gap);
        assert_eq!(truth.pair("other", "leaf"), Verdict::Wrong);
        assert_eq!(truth.pair("leaf", "main"), Verdict::Wrong);
        assert_eq!(truth.pair("main", "stranger"), Verdict::Wrong);
        assert!(truth.is_elsewhere("main", "tort-other") && !truth.is_elsewhere("main", "tort-main"));
    }
}
