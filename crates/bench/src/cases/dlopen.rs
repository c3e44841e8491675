//! dlopen: what loading a library costs, and how much threads that do hinder each other.

use super::lazy::{self, Library};
use super::{Alone, Benchmark, Prepared, Request, THREADS};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "dlopen",
    measures: "dlopen() of a small library from the page cache, dlsym() and dlclose()",
    ladder: THREADS,
    prepare,
};

fn prepare(request: &Request<'_>) -> Result<Box<dyn Prepared>, Error> {
    let files = lazy::files(request)?;
    Ok(Box::new(Alone(move |id: usize| {
        let file = files[id].clone();
        lazy::check_unloads(&file)?;
        let load = move || Library::load(&file, libc::RTLD_LAZY).map(drop);
        Ok(Box::new(load) as Box<dyn Work>)
    })))
}
