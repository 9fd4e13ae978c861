//! What a profile or a report says of the server.

use super::interpreter::Question;
use super::service::Shared;
use super::world::Ticket;
use crate::export::ServerReport;
use crate::settings::server_properties;
use crate::sys::Machine;

/// The game's own settings, in the server's folder.
const PROPERTIES: &str = "server.properties";

/// Questions that others answer, asked as early as possible.
#[derive(Debug)]
pub(super) struct Inquiry {
    world: Option<Ticket>,
    python: Option<Question>,
}

impl Inquiry {
    /// Asks the server thread for the world and the interpreter for its figures. A server that is being stopped ticks no more, and may hold the
    /// interpreter's lock: it is not asked.
    pub(super) fn begin(shared: &Shared) -> Self {
        let goes_on = !shared.state.lock().shutting_down;
        Inquiry {
            world: goes_on.then(|| shared.world.ask()),
            python: goes_on.then(Question::ask),
        }
    }

    /// Waits for the answers, as long as the plugin is not being disabled, and puts the rest to them. Reads files.
    pub(super) fn end(self, shared: &Shared) -> ServerReport {
        let world = self
            .world
            .and_then(|ticket| shared.world.wait(ticket, || !shared.state.lock().shutting_down));
        let python = match self.python {
            Some(question) => question.answer(),
            None => crate::python::interpreter_unasked("the server is being stopped"),
        };
        let environment = shared.environment.lock().clone();
        // The plugin's folder is `plugins/spark` in the server's.
        let folder = shared.folder.ancestors().nth(2).unwrap_or(&shared.folder);
        ServerReport {
            endstone_version: environment.server_version,
            minecraft_version: environment.minecraft_version,
            brand: environment.server_name,
            machine: Machine::read(),
            statistics: shared.statistics(),
            world: world.map(|world| (*world).clone()),
            python,
            properties: server_properties(&folder.join(PROPERTIES)),
        }
    }
}
