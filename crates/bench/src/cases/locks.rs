//! Locks of the C library that threads, or processes, share: what the cases with locks have in
//! common.

use std::cell::UnsafeCell;
use std::mem::zeroed;
use std::sync::Arc;

use model::WorkerKind;
use rustix::io::Errno;

use super::shared::Shared;
use crate::Error;

/// A `pthread_mutex_t`, `pthread_cond_t` ... in memory that all workers have. It is never
/// destroyed: the last process to have it may not know that it is the last.
pub struct Lock<T>(Shared<UnsafeSync<T>>);

struct UnsafeSync<T>(UnsafeCell<T>);

// SAFETY: these objects are made for being used by many threads through their address.
unsafe impl<T> Sync for UnsafeSync<T> {}

impl<T> Lock<T> {
    /// Has `init` initialise an object, whose bytes are zero so far.
    pub fn new(init: impl FnOnce(*mut T) -> libc::c_int) -> Result<Arc<Lock<T>>, Error> {
        // SAFETY: used with C structures of integers, for which zero is a value.
        let lock = Lock(Shared::new(UnsafeSync(UnsafeCell::new(unsafe { zeroed() })))?);
        checked(init(lock.get()))?;
        Ok(Arc::new(lock))
    }

    /// Its address, for the C library.
    pub fn get(&self) -> *mut T {
        self.0.0.get()
    }
}

/// What functions of pthread return.
pub fn checked(code: libc::c_int) -> Result<(), Errno> {
    match code {
        0 => Ok(()),
        code => Err(Errno::from_raw_os_error(code)),
    }
}

/// Who may use an object: threads of this process, or those of other processes, too.
pub fn scope(kind: WorkerKind) -> libc::c_int {
    match kind {
        WorkerKind::Threads => libc::PTHREAD_PROCESS_PRIVATE,
        WorkerKind::Processes => libc::PTHREAD_PROCESS_SHARED,
    }
}

/// A mutex.
pub type Mutex = Lock<libc::pthread_mutex_t>;

/// A mutex; `protocol` is what happens to the priority of who holds it.
pub fn mutex(kind: WorkerKind, protocol: libc::c_int) -> Result<Arc<Mutex>, Error> {
    // SAFETY: zero is a value of this opaque structure, which init() replaces.
    let mut attributes: libc::pthread_mutexattr_t = unsafe { zeroed() };
    Lock::new(|mutex| {
        // SAFETY: valid addresses; the mutex is nobody else's yet.
        unsafe {
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_setpshared(&raw mut attributes, scope(kind));
            libc::pthread_mutexattr_setprotocol(&raw mut attributes, protocol);
            libc::pthread_mutex_init(mutex, &raw const attributes)
        }
    })
}

impl Mutex {
    /// Takes it.
    pub fn lock(&self) -> Result<(), Errno> {
        // SAFETY: an initialised mutex.
        checked(unsafe { libc::pthread_mutex_lock(self.get()) })
    }

    /// Gives it back.
    pub fn unlock(&self) -> Result<(), Errno> {
        // SAFETY: an initialised mutex.
        checked(unsafe { libc::pthread_mutex_unlock(self.get()) })
    }
}

/// A lock for many readers or one writer.
pub type RwLock = Lock<libc::pthread_rwlock_t>;

/// Such a lock.
pub fn rwlock(kind: WorkerKind) -> Result<Arc<RwLock>, Error> {
    // SAFETY: zero is a value of this opaque structure, which init() replaces.
    let mut attributes: libc::pthread_rwlockattr_t = unsafe { zeroed() };
    Lock::new(|lock| {
        // SAFETY: valid addresses; the lock is nobody else's yet.
        unsafe {
            libc::pthread_rwlockattr_init(&raw mut attributes);
            libc::pthread_rwlockattr_setpshared(&raw mut attributes, scope(kind));
            libc::pthread_rwlock_init(lock, &raw const attributes)
        }
    })
}
