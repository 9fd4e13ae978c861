//! Files of `/proc` that are read again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// One of them, opened once: opening costs more than reading.
#[derive(Debug)]
pub(super) struct Source {
    path: &'static str,
    file: Option<File>,
}

impl Source {
    pub(super) fn new(path: &'static str) -> Self {
        Source { path, file: None }
    }

    /// What it says now, as far as `buffer` holds it. `None` when it cannot be read at this time; the next try opens it anew.
    pub(super) fn read<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b str> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(self.path).ok()?,
        };
        let mut length = 0;
        while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, length as u64).ok()? {
                0 => break,
                more => length += more,
            }
        }
        self.file = Some(file);
        let text = buffer.get(..length)?;
        // What is cut off in the middle of a letter is cut off there.
        match std::str::from_utf8(text) {
            Ok(text) => Some(text),
            Err(error) => std::str::from_utf8(text.get(..error.valid_up_to())?).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_from_its_beginning() {
        let mut uptime = Source::new("/proc/uptime");
        let mut buffer = [0; 64];
        let seconds = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
        let first = seconds(uptime.read(&mut buffer).unwrap());
        assert!(first > 0.0 && seconds(uptime.read(&mut buffer).unwrap()) >= first);
    }

    #[test]
    fn a_small_buffer_gets_the_beginning() {
        let mut stat = Source::new("/proc/stat");
        assert_eq!(stat.read(&mut [0; 4]), Some("cpu "));
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        let mut missing = Source::new("/proc/no-such-file");
        assert_eq!(missing.read(&mut [0; 4]), None);
        assert_eq!(missing.read(&mut [0; 4]), None);
    }
}
