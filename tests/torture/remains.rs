//! What a process has, to see what is left of what was done in it.

use harness::{Footprint, GIVE_BACK, Server};

use super::python;

/// One look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remains {
    /// The names of all threads, sorted.
    pub threads: Vec<String>,
    pub footprint: Footprint,
    pub tools: String,
    pub signal: String,
}

/// Those names that `after` has more often than `before`.
pub fn more(before: &[String], after: &[String]) -> Vec<String> {
    let mut known = before.to_vec();
    let mut is_new = |name: &&String| match known.iter().position(|other| other == *name) {
        Some(at) => {
            known.swap_remove(at);
            false
        }
        None => true,
    };
    after.iter().filter(|name| is_new(name)).cloned().collect()
}

/// What a server takes up, without what its allocator has left to give back.
pub fn footprint(server: &mut Server) -> Footprint {
    let given_back = python(server, GIVE_BACK);
    assert!(!given_back.contains("Error"), "{given_back}");
    Footprint::of(server.pid()).unwrap()
}

impl Remains {
    pub fn of(server: &mut Server) -> Self {
        let [threads, tools, signal] =
            ["!threads", "!tools", "!sigprof"].map(|probe| server.ask(probe, probe).unwrap());
        let names = threads.rsplit_once("!threads ").map_or("", |(_, names)| names);
        Remains {
            threads: names.split(" | ").map(str::to_owned).collect(),
            tools,
            signal,
            footprint: footprint(server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_more_of_a_known_name_is_one_more() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(more(&names("a a b"), &names("b a")), Vec::<String>::new());
        assert_eq!(more(&names("a b"), &names("a a b c")), names("a c"));
    }
}
