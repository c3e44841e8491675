//! Reads a file whose server can keep its reader waiting: an overlay does not show that FUSE is below.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::elf::Bytes;
use crate::patience;

/// A file that a process has chosen. Each read costs some 50 us more than of the file itself, and
/// fails after a second without an answer, and from then on at once.
#[derive(Clone, Debug)]
pub struct PatientFile {
    process: u32,
    file: Arc<File>,
}

impl PatientFile {
    /// A file of that process.
    pub fn new(process: u32, file: File) -> PatientFile {
        PatientFile { process, file: Arc::new(file) }
    }

    /// Up to so many bytes from `offset` on; fewer, or none, where the file ends.
    ///
    /// # Errors
    /// What reading the file says; `TimedOut` if there is no answer.
    pub fn bytes(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let file = Arc::clone(&self.file);
        patience::ask(self.process, move || {
            let mut bytes = vec![0; most];
            let length = FileExt::read_at(&*file, &mut bytes, offset)?;
            bytes.truncate(length);
            Ok(bytes)
        })?
    }
}

impl Bytes for PatientFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (file, length) = (Arc::clone(&self.file), into.len());
        let bytes = patience::ask(self.process, move || {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        })??;
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let file = Arc::clone(&self.file);
        patience::ask(self.process, move || Ok(file.metadata()?.len()))?
    }
}
