//! Rules about the trees.

use super::Findings;
use crate::profile::{PYTHON, millis, referenced};
use endstone_spark::export::pb::{SamplerData, StackTraceNode, ThreadNode};
use std::collections::BTreeSet;

/// The viewer's own views break near 1,000.
const DEPTH_THAT_BREAKS: usize = 800;

/// Where spark itself cuts stacks.
const DEPTH_THAT_IS_USUAL: usize = 300;

/// A longer name stretches the page.
const NAME_CHARACTERS: usize = 300;

/// Sums of doubles differ in their last digits: relative, and in milliseconds.
const ROUNDING: (f64, f64) = (1e-9, 1e-6);

pub(super) fn check(data: &SamplerData, findings: &mut Findings) {
    if data.threads.is_empty() {
        findings.warn("no threads: the page says that there is no data");
    }
    let windows = data.time_windows.len().max(1);
    let mut names = BTreeSet::new();
    for thread in &data.threads {
        if !names.insert(thread.name.as_str()) {
            findings.warn(format!("two threads are called '{}'", thread.name));
        }
        if thread.times.len() != windows {
            findings.problem(format!(
                "{}: {} times for {windows} windows",
                thread.name,
                thread.times.len()
            ));
        }
        if let Err(problem) = shape(thread) {
            // Nothing else can be said about a tree that is none.
            findings.problem(format!("{}: {problem}", thread.name));
            continue;
        }
        depth(thread, findings);
        times(thread, windows, findings);
        names_of(thread, findings);
        siblings(thread, findings);
    }
}

/// Whether the references make a tree: each node reached once, from the thread.
fn shape(thread: &ThreadNode) -> Result<(), String> {
    let count = thread.children.len();
    let mut references = vec![0_u32; count];
    for index in thread
        .children_refs
        .iter()
        .chain(thread.children.iter().flat_map(|node| &node.children_refs))
    {
        let reference = usize::try_from(*index).ok().and_then(|index| references.get_mut(index));
        *reference.ok_or_else(|| format!("reference {index} leads out of its {count} nodes: it does not load"))? += 1;
    }
    if let Some(index) = references.iter().position(|references| *references != 1) {
        return Err(format!("node {index} is referenced {} times", references[index]));
    }
    // Each node is referenced once, so what cannot be reached from the thread is a ring.
    let reached = walk(thread).count();
    if reached != count {
        return Err(format!("{} nodes are in a cycle: it does not load", count - reached));
    }
    Ok(())
}

/// All nodes that can be reached, with their depth. Only for trees whose nodes are referenced at most once.
fn walk(thread: &ThreadNode) -> impl Iterator<Item = (usize, &StackTraceNode)> {
    let mut todo: Vec<(usize, &StackTraceNode)> = referenced(thread, &thread.children_refs)
        .map(|(_, node)| (1, node))
        .collect();
    std::iter::from_fn(move || {
        let (depth, node) = todo.pop()?;
        todo.extend(referenced(thread, &node.children_refs).map(|(_, child)| (depth + 1, child)));
        Some((depth, node))
    })
}

fn depth(thread: &ThreadNode, findings: &mut Findings) {
    let deepest = walk(thread).map(|(depth, _)| depth).max().unwrap_or(0);
    if deepest > DEPTH_THAT_BREAKS {
        findings.problem(format!("{}: {deepest} frames deep, views break", thread.name));
    } else if deepest > DEPTH_THAT_IS_USUAL {
        findings.warn(format!(
            "{}: {deepest} frames deep, more than {DEPTH_THAT_IS_USUAL}",
            thread.name
        ));
    }
}

fn times(thread: &ThreadNode, windows: usize, findings: &mut Findings) {
    for node in &thread.children {
        if node.times.len() != windows {
            let text = format!(
                "{} has {} times: all later nodes lose theirs",
                name(node),
                node.times.len()
            );
            return findings.problem(format!("{}: {text}", thread.name));
        }
        if !node.times.iter().all(|time| time.is_finite() && *time >= 0.0) {
            return findings.problem(format!("{}: {} has a time that is none", thread.name, name(node)));
        }
    }
    for node in &thread.children {
        if exceeds(
            referenced(thread, &node.children_refs)
                .map(|(_, child)| millis(child))
                .sum(),
            millis(node),
        ) {
            return findings.problem(format!(
                "{}: what {} calls takes longer than it",
                thread.name,
                name(node)
            ));
        }
    }
    let roots = referenced(thread, &thread.children_refs)
        .map(|(_, node)| millis(node))
        .sum();
    if exceeds(roots, thread.times.iter().sum()) {
        findings.problem(format!("{}: its frames take longer than the thread", thread.name));
    }
}

fn exceeds(parts: f64, whole: f64) -> bool {
    parts > whole * (1.0 + ROUNDING.0) + ROUNDING.1
}

fn names_of(thread: &ThreadNode, findings: &mut Findings) {
    for node in &thread.children {
        let (class, method) = (node.class_name.as_str(), node.method_name.as_str());
        if class.is_empty() || method.is_empty() {
            findings.warn(format!("{}: a frame has an empty class or method", thread.name));
        }
        let characters = name(node).chars().count();
        if characters > NAME_CHARACTERS {
            findings.warn(format!(
                "{}: a name of {characters} characters stretches the page",
                thread.name
            ));
        }
        if method.ends_with("()") {
            findings.warn(format!(
                "{}: {} ends in (), which is shown twice",
                thread.name,
                name(node)
            ));
        }
        if !class.starts_with(PYTHON) && class.contains('.') {
            findings.warn(format!("{}: class '{class}' is cut at its last dot", thread.name));
        }
        if class.ends_with(".py") {
            findings.warn(format!(
                "{}: class '{class}' ends in .py, which is shown as a class",
                thread.name
            ));
        }
    }
}

/// The viewer does not merge them.
fn siblings(thread: &ThreadNode, findings: &mut Findings) {
    let lists = std::iter::once(&thread.children_refs).chain(thread.children.iter().map(|node| &node.children_refs));
    for list in lists {
        let mut seen = BTreeSet::new();
        for (_, node) in referenced(thread, list) {
            if !seen.insert((
                &node.class_name,
                &node.method_name,
                &node.method_desc,
                node.parent_line_number,
            )) {
                findings.warn(format!("{}: {} stands twice under one parent", thread.name, name(node)));
            }
        }
    }
}

fn name(node: &StackTraceNode) -> String {
    format!("{}.{}", node.class_name, node.method_name)
}

#[cfg(test)]
mod tests {
    use crate::sound::{add_window, expect_problem, expect_warning, node};
    use endstone_spark::export::pb::{SamplerData, StackTraceNode, ThreadNode};

    fn problem(text: &str, change: impl FnOnce(&mut ThreadNode)) {
        expect_problem(text, |data| change(&mut data.threads[0]));
    }

    fn frame_warning(text: &str, change: impl FnOnce(&mut StackTraceNode)) {
        expect_warning(text, |data| change(&mut data.threads[0].children[2]));
    }

    /// A chain of frames below the thread's last root.
    fn deepen(data: &mut SamplerData, frames: usize) {
        let thread = &mut data.threads[0];
        for _ in 0..frames {
            let next = i32::try_from(thread.children.len()).unwrap();
            thread.children.push(node("module", "recurse", 0.0, &[]));
            let parent = thread.children.len() - 2;
            thread.children[parent].children_refs.push(next);
        }
    }

    #[test]
    fn there_is_a_thread() {
        expect_warning("no data", |data| data.threads.clear());
    }

    #[test]
    fn names_of_threads_differ() {
        expect_warning("two threads", |data| {
            let again = data.threads[0].clone();
            data.threads.push(again);
        });
    }

    #[test]
    fn each_window_has_a_time_in_the_thread() {
        problem("0 times for 1 windows", |thread| thread.times.clear());
    }

    #[test]
    fn each_window_has_a_time_in_each_frame() {
        problem("has 0 times", |thread| thread.children[1].times.clear());
        expect_problem("has 1 times", |data| {
            add_window(data, 31);
            data.threads[0].children[0].times.pop();
        });
    }

    #[test]
    fn references_stay_inside() {
        problem("reference 99", |thread| thread.children[0].children_refs.push(99));
        problem("reference -1", |thread| thread.children_refs.push(-1));
    }

    #[test]
    fn each_node_has_one_parent() {
        problem("node 3 is referenced 2 times", |thread| thread.children_refs.push(3));
        problem("referenced 0 times", |thread| {
            thread.children.push(node("lost", "frame", 0.0, &[]))
        });
    }

    #[test]
    fn a_ring_is_not_a_tree() {
        problem("2 nodes are in a cycle", |thread| {
            let first = i32::try_from(thread.children.len()).unwrap();
            thread.children.push(node("ring", "a", 1.0, &[first + 1]));
            thread.children.push(node("ring", "b", 1.0, &[first]));
        });
    }

    #[test]
    fn depth_has_two_limits() {
        expect_warning("frames deep, more than 300", |data| deepen(data, 310));
        expect_problem("views break", |data| deepen(data, 810));
    }

    #[test]
    fn times_are_times() {
        for time in [-1.0, f64::NAN, f64::INFINITY] {
            problem("has a time that is none", |thread| thread.children[2].times[0] = time);
        }
    }

    #[test]
    fn callees_take_no_longer_than_callers() {
        problem("takes longer than it", |thread| thread.children[0].times[0] = 1.0);
        problem("longer than the thread", |thread| thread.times[0] = 1.0);
    }

    #[test]
    fn names_read_well() {
        frame_warning("empty class or method", |frame| frame.class_name.clear());
        frame_warning("empty class or method", |frame| frame.method_name.clear());
        frame_warning("stretches the page", |frame| frame.method_name = "x".repeat(400));
        frame_warning("shown twice", |frame| frame.method_name = "tick()".to_owned());
        frame_warning("cut at its last dot", |frame| {
            frame.class_name = "libpython3.12".to_owned()
        });
        frame_warning("ends in .py", |frame| {
            frame.class_name = "[Python] plugin.py".to_owned()
        });
    }

    #[test]
    fn siblings_differ() {
        expect_warning("stands twice", |data| {
            let thread = &mut data.threads[0];
            let again = i32::try_from(thread.children.len()).unwrap();
            let mut twin = thread.children[usize::try_from(thread.children_refs[0]).unwrap()].clone();
            twin.children_refs.clear();
            twin.times[0] = 0.0;
            thread.children.push(twin);
            thread.children_refs.push(again);
        });
    }
}
