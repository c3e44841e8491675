//! A value in memory that worker processes share with each other.

use std::ops::Deref;

use crate::Error;

/// A value of its own mapping, which forked processes see, too. It is never dropped, only unmapped:
/// each process that has it would drop it again.
pub struct Shared<T>(*mut T);

// SAFETY: a Shared gives out nothing but `&T`.
unsafe impl<T: Sync> Sync for Shared<T> {}
// SAFETY: as above; the mapping can be given up by any thread.
unsafe impl<T: Sync> Send for Shared<T> {}

impl<T> Shared<T> {
    /// Maps memory and moves `value` there.
    pub fn new(value: T) -> Result<Shared<T>, Error> {
        let (read_write, shared) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), size_of::<T>(), read_write, shared, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Error::os("mapping memory for all workers"));
        }
        let place = memory.cast::<T>();
        // SAFETY: a page is large enough and aligned for any of our types, and nobody else has it.
        unsafe { place.write(value) };
        Ok(Shared(place))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping lives as long as `self` and holds a value.
        unsafe { &*self.0 }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in new(), which nobody refers to any more.
        unsafe { libc::munmap(self.0.cast(), size_of::<T>()) };
    }
}
