//! Console lines on the server thread: the server's own `stop`, the stand-in's probes, and plugins' commands.

use std::sync::Arc;

use crate::console::Console;
use crate::endstone_server::EndstoneServer;
use crate::probes;
use crate::say::say;

/// Executes the pending lines of the console, in order.
#[derive(Debug)]
pub struct Orders {
    server: EndstoneServer,
    console: Arc<Console>,
    /// `!ticks`: lines wait until this tick.
    hold_until: Option<u64>,
}

impl Orders {
    pub fn new(server: EndstoneServer, console: Arc<Console>) -> Orders {
        Orders {
            server,
            console,
            hold_until: None,
        }
    }

    /// Runs the lines typed so far. `tick` is the number of the tick that comes next.
    pub fn run_pending(&mut self, tick: u64) {
        if let Some(until) = self.hold_until {
            if tick < until {
                return;
            }
            self.hold_until = None;
            say("!ticks done");
        }
        while self.hold_until.is_none()
            && !self.console.is_stopping()
            && let Some(line) = self.console.next()
        {
            self.run(&line, tick);
        }
    }

    fn run(&mut self, line: &str, tick: u64) {
        if line.is_empty() {
            return;
        }
        if let Some(probe) = line.strip_prefix('!') {
            self.probe(probe, tick);
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

    fn probe(&mut self, probe: &str, tick: u64) {
        let (name, argument) = probe.split_once(' ').unwrap_or((probe, ""));
        match (name, argument.trim().parse::<u64>()) {
            ("sigprof", _) => say(&format!("!sigprof {}", probes::sigprof())),
            ("threads", _) => say(&format!("!threads {}", probes::threads().join(" | "))),
            ("tools", _) => say(&format!("!tools {}", probes::tools())),
            ("python", _) => say(&format!("!python {}", probes::python(argument))),
            ("ticks", Ok(count)) => self.hold_until = Some(tick.saturating_add(count)),
            ("reload-plugins", _) => {
                self.server.reload();
                say("!reload-plugins done");
            }
            _ => say(&format!(
                "!{probe}: the probes are !sigprof, !threads, !tools, !python EXPRESSION, !ticks N and !reload-plugins"
            )),
        }
    }
}
