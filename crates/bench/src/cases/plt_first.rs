//! plt-first: what the first call of a function of another library costs. (story 1)

use std::ffi::CString;

use model::units::{duration, fine_duration};
use model::{BenchStep, StoryShape};
use rustix::io::Errno;

use super::lazy::{self, Library};
use super::{Alone, Benchmark, Ladder, Prepared, Request, THREADS};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "plt-first",
    measures: "the first call through a lazily bound PLT slot of a library just loaded",
    ladder: Ladder { shape: Some(shape), ..THREADS },
    prepare: |request| prepare(request, libc::RTLD_LAZY),
};

/// For first calls through slots bound so.
pub fn prepare(request: &Request<'_>, binding: i32) -> Result<Box<dyn Prepared>, Error> {
    let at_once = std::env::var_os("LD_BIND_NOW").is_some_and(|value| !value.is_empty());
    if at_once && binding == libc::RTLD_LAZY {
        let why = "LD_BIND_NOW is set, so nothing is bound lazily: unset it";
        return Err(Error::Refused(why.to_owned()));
    }
    let files = lazy::files(request)?;
    Ok(Box::new(Alone(move |id: usize| {
        let file = files[id].clone();
        lazy::check_unloads(&file)?;
        Ok(Box::new(FirstCall { file, binding, library: None }) as Box<dyn Work>)
    })))
}

struct FirstCall {
    file: CString,
    binding: i32,
    library: Option<Library>,
}

impl Work for FirstCall {
    fn before(&mut self) -> Result<(), Errno> {
        self.library = Some(Library::load(&self.file, self.binding)?);
        Ok(())
    }

    fn operate(&mut self) -> Result<(), Errno> {
        if let Some(library) = &self.library {
            library.call();
        }
        Ok(())
    }

    fn after(&mut self) -> Result<(), Errno> {
        self.library = None;
        // A library that stayed would have its slot bound by the next call.
        if lazy::is_loaded(&self.file) { Err(Errno::BUSY) } else { Ok(()) }
    }

    fn is_repeatable(&self) -> bool {
        false
    }
}

/// A call through a bound slot takes a few ns (plt-later); this is no such call.
const BINDS_NS: f64 = 50.0;

fn shape(steps: &[BenchStep]) -> StoryShape {
    let Some(step) = steps.first() else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let text = format!(
        "{} at the median and {} at most, with all pages in memory, where a bound call \
         takes a few ns; in the reported case 11.9 ms, as the linker's pages had to come from disk",
        fine_duration(step.net_ns),
        duration(step.single.max().unwrap_or(0)),
    );
    StoryShape { present: step.net_ns > BINDS_NS, text }
}
