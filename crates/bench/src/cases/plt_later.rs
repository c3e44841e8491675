//! plt-later: what every call of a function of another library costs once it is bound. (story 1)

use super::lazy::{self, Library};
use super::{Alone, Benchmark, Prepared, Request, THREADS};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "plt-later",
    measures: "a later call through a PLT slot: the first call has bound it",
    ladder: THREADS,
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let files = lazy::files(request)?;
    Ok(Box::new(Alone(move |id: usize| {
        let library = Library::load(&files[id], libc::RTLD_LAZY)?;
        library.call();
        Ok(Box::new(move || {
            library.call();
            Ok(())
        }) as Box<dyn Work>)
    })))
}
