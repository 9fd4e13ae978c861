//! Console lines on the server thread: the server's own `stop`, the stand-in's probes, and plugins' commands.

use std::sync::Arc;
use std::time::Duration;

use crate::callers;
use crate::console::Console;
use crate::endstone_server::EndstoneServer;
use crate::level::{self, Level};
use crate::pattern::Pattern;
use crate::probes;
use crate::say::say;
use crate::senders;
use crate::signals::Signals;
use crate::unwinding;
use crate::world::World;

/// Executes the pending lines of the console, in order.
#[derive(Debug)]
pub struct Orders {
    server: EndstoneServer,
    console: Arc<Console>,
    /// `!ticks` and `!pattern`: lines wait until this tick, and then this is said.
    hold_until: Option<(u64, &'static str)>,
    /// `!signals`
    signals: Option<Signals>,
}

impl Orders {
    pub fn new(server: EndstoneServer, console: Arc<Console>) -> Orders {
        Orders {
            server,
            console,
            hold_until: None,
            signals: None,
        }
    }

    /// Runs the lines typed so far, before the level's next tick.
    pub fn run_pending(&mut self, level: &mut Level) {
        if let Some((until, done)) = self.hold_until {
            if level.current_tick < until {
                return;
            }
            self.hold_until = None;
            say(done);
        }
        // Asked before the queue is emptied: what came before the end is in it.
        let ended = self.console.has_ended();
        while self.hold_until.is_none()
            && !self.console.is_stopping()
            && let Some(line) = self.console.next()
        {
            self.run(&line, level);
        }
        // The end of the input means `stop`, and no plugin can cancel it.
        if ended && self.hold_until.is_none() {
            self.console.request_stop();
        }
    }

    fn run(&mut self, line: &str, level: &mut Level) {
        if line.is_empty() {
            return;
        }
        if let Some(probe) = line.strip_prefix('!') {
            self.probe(probe, level);
            return;
        }
        let Some(line) = self.server.announce_line(line) else {
            return;
        };
        let line = line.trim_start_matches('/');
        if line == "stop" {
            self.console.request_stop();
            return;
        }
        self.server.run_command(line);
    }

    fn probe(&mut self, probe: &str, level: &mut Level) {
        let (name, argument) = probe.split_once(' ').unwrap_or((probe, ""));
        match (name, argument.trim().parse::<u64>()) {
            ("sigprof", _) => say(&format!("!sigprof {}", probes::sigprof())),
            ("tasks", _) => say(&format!("!tasks {}", level.tasks.take())),
            ("elsewhere", _) => say(&format!("!elsewhere {}", callers::take_elsewhere())),
            ("world", _) => say(&format!("!world {}", World::figures())),
            ("threads", _) => say(&format!("!threads {}", probes::threads().join(" | "))),
            ("shares", _) => say(&format!("!shares {}", level.take_shares())),
            ("tools", _) => say(&format!("!tools {}", probes::tools())),
            ("python", _) => say(&format!("!python {}", probes::python(argument))),
            ("join", _) => senders::join(argument),
            ("leave", _) => senders::leave(),
            ("as", _) => self.run_as(argument),
            ("throw", Ok(count)) => unwinding::throw_at(count),
            ("end-a-thread", _) => self.end_a_thread(argument),
            ("steps", Ok(count)) => {
                level.steady.steps = count;
                say(&format!("!steps {count}"));
            }
            ("signals", Ok(micros)) => {
                self.signals = None;
                if micros > 0 {
                    self.signals = Signals::start(Duration::from_micros(micros))
                        .inspect_err(|error| say(&error.to_string()))
                        .ok();
                }
                say(&format!("!signals {micros}"));
            }
            ("lost", _) => say(&format!("!lost {}", level.steady.take_lost())),
            ("ticks", Ok(count)) => {
                self.hold_until = Some((level.current_tick.saturating_add(count), "!ticks done"));
            }
            ("beats", _) => say(&format!("!beats {}", level.beats.ago(level::now()))),
            ("lengths", _) => say(&format!("!lengths {}", level.lengths.take())),
            ("pattern", _) => match argument.parse::<Pattern>() {
                Ok(pattern) => {
                    level.pattern = pattern.nanos();
                    self.hold_until = Some((level.current_tick + pattern.ticks(), "!pattern done"));
                }
                Err(reason) => say(&format!("!pattern {reason}")),
            },
            ("reload-plugins", _) => {
                self.server.reload();
                say("!reload-plugins done");
            }
            _ => say(&format!(
                "!{probe}: the probes are !sigprof, !threads, !tasks, !elsewhere, !world, !shares, !tools, !lengths, !beats, !python EXPRESSION, !ticks N, !steps N, !signals N, !lost, !pattern ROUNDS MS,MS,..., !join PERMISSIONS, !leave, !as player|block LINE, !throw N, !end-a-thread PLUGIN, !reload-plugins and !finalise"
            )),
        }
    }

    /// A thread that ends inside the plugin of this name.
    fn end_a_thread(&self, name: &str) {
        match self.server.plugin(name) {
            Some(plugin) => unwinding::end_a_thread_inside(plugin),
            None => say(&format!("!end-a-thread {name}: no such plugin")),
        }
    }

    /// A line, without its slash, typed by somebody else than the console.
    fn run_as(&self, argument: &str) {
        let (name, line) = argument.split_once(' ').unwrap_or((argument, ""));
        match senders::named(name) {
            Some(sender) => self.server.run_command_as(sender, line),
            None => say(&format!("!as {name}: nobody of that name; there are player and block")),
        }
    }
}
