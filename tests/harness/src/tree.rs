//! The call tree as text, for people who look at a terminal.
//!
//! A server's stacks are a hundred frames deep and hardly branch. So what is called by one frame only stays at its indentation, and in such a chain a
//! run of native frames of one module is cut down to its ends: what is of interest is where a stack enters a module and where it leaves it. A Python
//! frame is never left out.

use crate::profile::{PYTHON, millis, referenced};
use endstone_spark::export::pb::{SamplerData, StackTraceNode, ThreadNode};
use std::fmt::Write as _;

/// How much to show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// Branches inside branches.
    pub depth: usize,
    /// Frames with less of their thread's time are left out.
    pub min_percent: f64,
    /// Characters of a line; longer names are cut in the middle.
    pub width: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            depth: 12,
            min_percent: 1.0,
            width: 150,
        }
    }
}

/// A callee with at least this part of its caller's time continues its chain, if no other callee is shown.
const CHAIN_SHARE: f64 = 0.9;

/// Before a frame that the line above calls.
const CALLED: &str = "\u{2514} ";

/// Columns per branch.
const STEP: usize = 2;

/// Runs of this many native frames of one module and fewer are shown whole.
const WHOLE_RUN: usize = 3;

/// All threads, each with its tree.
pub(crate) fn text(data: &SamplerData, options: TreeOptions) -> String {
    let mut text = String::new();
    for thread in &data.threads {
        let total: f64 = thread.times.iter().sum();
        let _ = writeln!(text, "{}  {:.0} ms", thread.name, total);
        let printer = Printer { thread, total, options };
        for node in printer.shown(&thread.children_refs) {
            printer.print(node, 0, &mut text);
        }
    }
    text
}

struct Printer<'a> {
    thread: &'a ThreadNode,
    total: f64,
    options: TreeOptions,
}

impl<'a> Printer<'a> {
    /// The callees to show, most time first.
    fn shown(&self, refs: &'a [i32]) -> Vec<&'a StackTraceNode> {
        let mut nodes: Vec<_> = referenced(self.thread, refs)
            .map(|(_, node)| node)
            .filter(|node| self.percent(node) >= self.options.min_percent)
            .collect();
        nodes.sort_by(|a, b| millis(b).total_cmp(&millis(a)));
        nodes
    }

    fn percent(&self, node: &StackTraceNode) -> f64 {
        if self.total > 0.0 {
            100.0 * millis(node) / self.total
        } else {
            0.0
        }
    }

    /// A frame, the chain that follows it, and what branches off at the chain's end.
    fn print(&self, node: &'a StackTraceNode, depth: usize, text: &mut String) {
        if depth > self.options.depth {
            return;
        }
        let indentation = STEP * depth;
        let mut chain = vec![node];
        let mut last = node;
        let branches = loop {
            let shown = self.shown(&last.children_refs);
            match shown[..] {
                // A chain longer than the tree has nodes is a ring in a damaged file.
                [only] if millis(only) >= CHAIN_SHARE * millis(last) && chain.len() <= self.thread.children.len() => {
                    chain.push(only);
                    last = only;
                }
                _ => break shown,
            }
        };
        for run in chain.chunk_by(|a, b| !is_python(a) && a.class_name == b.class_name) {
            let mark = |node: &&StackTraceNode| if std::ptr::eq(*node, chain[0]) { "" } else { CALLED };
            match run {
                [first, hidden @ .., last] if run.len() > WHOLE_RUN => {
                    self.line(first, depth, mark(first), text);
                    let _ = writeln!(
                        text,
                        "{:8}{:indentation$}{CALLED}... {} more of {}",
                        "",
                        "",
                        hidden.len(),
                        first.class_name
                    );
                    self.line(last, depth, CALLED, text);
                }
                _ => run.iter().for_each(|node| self.line(node, depth, mark(node), text)),
            }
        }
        for branch in branches {
            self.print(branch, depth + 1, text);
        }
    }

    fn line(&self, node: &StackTraceNode, depth: usize, mark: &str, text: &mut String) {
        let indentation = STEP * depth;
        let name = name(node);
        let room = self.options.width.saturating_sub(10 + indentation);
        let _ = writeln!(
            text,
            "{:5.1} % {:indentation$}{mark}{}",
            self.percent(node),
            "",
            cut(&name, room)
        );
    }
}

/// Class and function, as short as they can be told apart.
fn name(node: &StackTraceNode) -> String {
    let (class, method) = (&node.class_name, &node.method_name);
    if is_python(node) {
        // Its angle brackets are of another kind: <locals>, <lambda>.
        format!("{class}.{method}")
    } else if method
        .strip_prefix(class.as_str())
        .is_some_and(|rest| rest.starts_with("+0x"))
    {
        // An address without a name says its module itself.
        method.clone()
    } else {
        format!("{class}.{}", short(method))
    }
}

fn is_python(node: &StackTraceNode) -> bool {
    node.class_name.starts_with(PYTHON)
}

/// A C++ name without what stands between angle brackets, and without the standard library's version.
fn short(name: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut previous = ' ';
    for c in name.chars() {
        let names_operator = text.ends_with("operator") || (previous == '<' && text.ends_with("operator<"));
        match c {
            '<' if depth == 0 && names_operator => text.push(c),
            '<' => {
                if depth == 0 {
                    text.push_str("<>");
                }
                depth += 1;
            }
            // An arrow inside brackets ends nothing.
            '>' if depth > 0 && previous != '-' => depth -= 1,
            _ if depth == 0 => text.push(c),
            _ => {}
        }
        previous = c;
    }
    text.replace("std::__1::", "std::")
}

/// At most this many characters, cut in the middle.
fn cut(name: &str, room: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= room || room < 10 {
        return name.to_owned();
    }
    let (head, tail) = ((room - 3) / 3, room - 3 - (room - 3) / 3);
    let start: String = characters[..head].iter().collect();
    let end: String = characters[characters.len() - tail..].iter().collect();
    format!("{start}...{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sound::{node, profile};

    #[test]
    fn shows_percentages_with_most_time_first() {
        let text = profile().tree(TreeOptions::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Server thread  100 ms");
        assert_eq!(lines[1], " 70.0 % bedrock_server.sleep");
        assert_eq!(lines[2], " 30.0 % bedrock_server.Level::tick");
        assert_eq!(
            lines[3],
            " 30.0 % \u{2514} [Python] endstone_market.plugin.Market.update"
        );
        assert_eq!(
            lines[4], " 25.0 %   libpython3_13.builtin_sorted",
            "a callee with less of the time is indented"
        );
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn leaves_out_what_takes_little() {
        let text = profile().tree(TreeOptions {
            min_percent: 26.0,
            ..Default::default()
        });
        assert!(!text.contains("builtin_sorted"), "{text}");
        assert!(text.contains("Market.update"), "{text}");
    }

    #[test]
    fn cuts_a_run_of_one_module_down_to_its_ends_but_never_python() {
        let mut data = profile().data().clone();
        let mut children: Vec<_> = (1..=5).map(|n| node("libx", &format!("f{n}"), 10.0, &[n])).collect();
        children.extend((6..=9).map(|n| node("[Python] m", &format!("p{n}"), 10.0, &[n])));
        children.last_mut().unwrap().children_refs.clear();
        data.threads[0].children = children;
        data.threads[0].children_refs = vec![0];
        let text = text(&data, TreeOptions::default());
        assert!(
            text.contains("libx.f1\n") && text.contains("... 3 more of libx\n") && text.contains("libx.f5\n"),
            "{text}"
        );
        assert!(!text.contains("libx.f3"), "{text}");
        for n in 6..=9 {
            assert!(text.contains(&format!("[Python] m.p{n}")), "{text}");
        }
    }

    #[test]
    fn a_ring_ends() {
        let mut data = profile().data().clone();
        data.threads[0].children = vec![node("a", "b", 10.0, &[1]), node("b", "c", 10.0, &[0])];
        data.threads[0].children_refs = vec![0];
        assert!(text(&data, TreeOptions::default()).lines().count() < 100);
    }

    #[test]
    fn names_lose_their_template_arguments() {
        assert_eq!(
            short("std::__1::function<void (int)>::operator()"),
            "std::function<>::operator()"
        );
        assert_eq!(short("a<b<c, d>>::e<f>"), "a<>::e<>");
        assert_eq!(short("x::operator<<<y>"), "x::operator<<<>");
        assert_eq!(short("x::operator->"), "x::operator->");
        assert_eq!(short("f<decltype(a->b)>::g"), "f<>::g");
    }

    #[test]
    fn names_are_said_once_and_python_keeps_its_brackets() {
        let shown = |class: &str, method: &str| name(&node(class, method, 1.0, &[]));
        assert_eq!(
            shown("libpython3_15", "libpython3_15+0x2e2030"),
            "libpython3_15+0x2e2030"
        );
        assert_eq!(shown("libc", "libc_start"), "libc.libc_start");
        assert_eq!(shown("libx", "f<int>"), "libx.f<>");
        assert_eq!(
            shown("[Python] m", "f.<locals>.<lambda>"),
            "[Python] m.f.<locals>.<lambda>"
        );
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut("abcdefghijklmnop", 12), "abc...klmnop");
        assert_eq!(cut("caf\u{e9}", 4), "caf\u{e9}");
    }
}
