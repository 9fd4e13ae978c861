//! What the server does in each tick: always the same amount of work.

use std::time::Duration;

use harness::{Lab, Meter, Python, Result, Server, peers};
use serde::{Deserialize, Serialize};

use crate::mode::Mode;

/// What a tick is about to take, in milliseconds.
const MSPT: f64 = 30.0;
/// Steps of a first try, which says how long one takes.
const TRIED_STEPS: f64 = 5_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Load {
    /// The stand-in's own functions, memory and calls; no plugin but ours.
    Native,
    /// The market plugin with five times its usual work: small methods, sorting with a key function, JSON, regular expressions.
    Python,
    /// Both sample plugins with their usual work, which is a quarter of a tick, and native work for the rest.
    Mixed,
}

impl Load {
    pub const ALL: [Load; 3] = [Load::Native, Load::Python, Load::Mixed];

    pub fn name(self) -> &'static str {
        match self {
            Load::Native => "native",
            Load::Python => "python",
            Load::Mixed => "mixed",
        }
    }

    /// What is measured on it: lost steps tell what signals cost, where there are steps.
    pub fn modes(self) -> Vec<Mode> {
        let mut modes = vec![
            Mode::Ours(4),
            Mode::PySpy(250),
            Mode::Ours(10),
            Mode::PySpy(100),
            Mode::Ours(1),
            Mode::PySpy(1000),
        ];
        match self {
            Load::Native => modes.extend([
                Mode::Signals(4),
                Mode::Signals(10),
                Mode::Signals(1),
                Mode::OursApart(4),
                // So few that what is left of it would be there without any.
                Mode::Ours(100),
            ]),
            Load::Mixed => modes.extend([Mode::Signals(4), Mode::Empty]),
            Load::Python => modes.push(Mode::Empty),
        }
        modes
    }

    pub fn server(self, lab: &Lab, python: &Python) -> Result<Server> {
        let mut server = lab
            .server(python)
            .arg("--load")
            .arg("none")
            .file("empty.py", include_str!("empty.py"));
        if self == Load::Python {
            let config = "offers = 12000\norders = 3000\nsigns = 1500\nannounce_period = 0\n";
            server = server.file("plugins/market/config.toml", config);
        }
        if self != Load::Native {
            server = server.samples()?;
        }
        let mut server = server.start_ready()?;
        let source = lab.root().join("benches/mspt/empty.c");
        peers::compile(&source, &server.dir().join("empty.so"))?;
        server.ask("!python exec(open('empty.py').read(), globals())", "!python None")?;
        if self != Load::Python {
            let second = Duration::from_secs(1);
            let without = Meter::measure(&mut server, None, second)?.mspt;
            server.ask(&format!("!steps {TRIED_STEPS}"), "!steps")?;
            server.run_for(second)?;
            let tried = Meter::measure(&mut server, None, second)?.mspt;
            let steps = TRIED_STEPS * (MSPT - without) / (tried - without);
            server.ask(&format!("!steps {steps:.0}"), "!steps")?;
        }
        server.run_for(Duration::from_secs(2))?;
        Ok(server)
    }
}
