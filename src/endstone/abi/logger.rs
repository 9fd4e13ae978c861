//! `endstone::Logger`.

use super::slot::Pass;

foreign_enum! {
    /// How important a line is.
    LogLevel: u8 mirrors "endstone::Logger::Level" {
        /// For finding faults.
        Trace = 0,
        /// For finding faults.
        Debug = 1,
        /// What happens.
        Info = 2,
        /// What may need the owner's attention.
        Warning = 3,
        /// What went wrong.
        Error = 4,
        /// What stops the server.
        Critical = 5,
        /// No lines at all.
        Off = 6,
    }
}

vtable_slots! {
    /// Slots of `endstone::Logger`.
    LoggerSlots of "endstone::Logger" {
        LOG = 5 "_ZNK8endstone6Logger3logENS0_5LevelENSt3__117basic_string_viewIcNS2_11char_traitsIcEEEE" (Pass::Registers(1), Pass::Registers(16)) -> Pass::Nothing;
    }
}

host_object! {
    /// A logger of the host.
    Logger, "endstone::Logger"
}

impl Logger<'_> {
    /// Writes one line.
    pub fn log(self, level: LogLevel, line: &str) {
        // SAFETY: log takes the level in a register and a string_view as pointer and length in two; the text is copied before it returns.
        unsafe {
            call!(self.as_ptr(), LoggerSlots::LOG, level as u8 => u8, line.as_ptr() => *const u8, line.len() => usize; ());
        }
    }

    /// Writes what may need the owner's attention.
    pub fn warning(self, line: &str) {
        self.log(LogLevel::Warning, line);
    }

    /// Writes what went wrong.
    pub fn error(self, line: &str) {
        self.log(LogLevel::Error, line);
    }
}
