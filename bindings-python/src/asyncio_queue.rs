//! The queue of the event loop: a file descriptor that the loop watches, with many handlers per wake-up.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use gudgeon::engine::RunId;
use pyo3::{prelude::*, types::PyBytes};

use crate::{
    call::{Call, Slot},
    calling,
    handler_run::HandlerRun,
    hooks,
    stream::{Stream, lock},
    waker::Waker,
};

/// The handlers that start in one iteration of the event loop. Their answers show whether the client reads, before more start.
const MAX_TOGETHER: usize = 32;

#[derive(Debug)]
pub(crate) struct AsyncioQueue {
    queue: Mutex<VecDeque<Item>>,
    /// The file descriptor that the loop watches.
    pub(crate) waker: Waker,
    attached: Mutex<Option<Attached>>,
    is_attached: AtomicBool,
    is_wanted: AtomicBool,
    /// Handlers were queued that the loop is to be woken for soon.
    is_unannounced: AtomicBool,
    flush_is_due: AtomicBool,
    /// The thread that notices handlers which block the loop is awake.
    is_watched: AtomicBool,
    notifications: AtomicU64,
    /// Strong references, since the event loop keeps only weak references to its tasks.
    tasks: Mutex<HashMap<Key, Py<PyAny>>>,
    /// Tasks that were cancelled and have not ended.
    ending: Mutex<HashMap<Key, Py<PyAny>>>,
    /// Tasks that have not run their first step.
    fresh: Mutex<Vec<(Py<PyAny>, Py<Slot>)>>,
}

/// A running task: of a call, or of a notification with a number of our own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Key {
    Call(RunId),
    Notification(u64),
}

#[derive(Debug)]
enum Item {
    Start(Arc<HandlerRun>),
    Cancel(RunId),
}

/// The event loop's functions.
#[derive(Debug)]
struct Attached {
    /// `spawn(coroutine)` → its task.
    spawn: Py<PyAny>,
    /// `flush_soon()`: schedules `flush` for the end of the loop's iteration.
    flush_soon: Py<PyAny>,
    /// `settle_soon()`: schedules `settle` after the first step of the new tasks.
    settle_soon: Py<PyAny>,
    /// `watch()`: wakes the thread that notices handlers which block the loop.
    watch: Py<PyAny>,
}

impl AsyncioQueue {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            waker: Waker::new()?,
            attached: Mutex::default(),
            is_attached: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            is_unannounced: AtomicBool::new(false),
            flush_is_due: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            notifications: AtomicU64::new(0),
            tasks: Mutex::default(),
            ending: Mutex::default(),
            fresh: Mutex::default(),
        })
    }

    /// Queues a handler. The caller wakes the loop afterwards, once for all handlers.
    pub(crate) fn start(&self, run: Arc<HandlerRun>) {
        lock(&self.queue).push_back(Item::Start(run));
    }

    pub(crate) fn cancel(&self, stream: &Stream, call: RunId) {
        lock(&self.queue).push_back(Item::Cancel(call));
        self.wake(stream);
    }

    /// Wakes the loop, or asks for one.
    pub(crate) fn wake(&self, stream: &Stream) {
        if !self.is_attached.load(Ordering::Acquire) {
            self.is_wanted.store(true, Ordering::Release);
            stream.status.wake();
        }
        // A loop may have been attached in the meantime.
        self.waker.wake();
    }

    /// Has the next `announce` wake the loop.
    pub(crate) fn wake_soon(&self) {
        self.is_unannounced.store(true, Ordering::Release);
    }

    pub(crate) fn is_unannounced(&self) -> bool {
        self.is_unannounced.load(Ordering::Acquire)
    }

    pub(crate) fn announce(&self, stream: &Stream) {
        if self.is_unannounced.swap(false, Ordering::AcqRel) {
            self.wake(stream);
        }
    }

    /// Returns `true` if jobs wait for an event loop and none is attached.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire) && !self.is_attached.load(Ordering::Acquire)
    }

    pub(crate) fn attach(
        &self,
        spawn: Py<PyAny>,
        flush_soon: Py<PyAny>,
        settle_soon: Py<PyAny>,
        watch: Py<PyAny>,
    ) {
        *lock(&self.attached) = Some(Attached { spawn, flush_soon, settle_soon, watch });
        self.is_watched.store(false, Ordering::Release);
        self.is_attached.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub(crate) fn detach(&self) {
        self.is_attached.store(false, Ordering::Release);
        // Dropped outside the lock, because that may run Python code.
        let attached = lock(&self.attached).take();
        drop(attached);
        let left = std::mem::take(&mut *lock(&self.queue));
        drop(left);
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        drop(tasks);
        let ending = std::mem::take(&mut *lock(&self.ending));
        drop(ending);
        let fresh = std::mem::take(&mut *lock(&self.fresh));
        drop(fresh);
    }

    /// Returns the tasks of running handlers, and those of cancelled ones that have not ended.
    pub(crate) fn tasks(&self, py: Python<'_>) -> (Vec<Py<PyAny>>, Vec<Py<PyAny>>) {
        let all = |tasks: &Mutex<HashMap<Key, Py<PyAny>>>| {
            lock(tasks).values().map(|task| task.clone_ref(py)).collect()
        };
        (all(&self.tasks), all(&self.ending))
    }

    /// Starts and cancels everything queued. Called by the loop when the descriptor is readable.
    pub(crate) fn drain(&self, py: Python<'_>, stream: &Arc<Stream>) -> PyResult<()> {
        self.waker.clear();
        let items = self.take();
        let attached = lock(&self.attached)
            .as_ref()
            .map(|attached| (attached.spawn.clone_ref(py), attached.settle_soon.clone_ref(py)));
        let Some((spawn, settle_soon)) = attached else { return Ok(()) };
        self.watch(py, &items)?;
        for item in items {
            match item {
                Item::Start(run) => self.spawn(py, stream, &run, spawn.bind(py))?,
                Item::Cancel(call) => {
                    let key = Key::Call(call);
                    let task = lock(&self.tasks).remove(&key);
                    if let Some(task) = task {
                        lock(&self.ending).insert(key, task.clone_ref(py));
                        calling::call_method(task.bind(py), pyo3::intern!(py, "cancel"), ())?;
                    }
                }
            }
        }
        calling::call(settle_soon.bind(py), ())?;
        Ok(())
    }

    /// Takes what is handled in one iteration of the loop; another one follows if there is more.
    fn take(&self) -> Vec<Item> {
        let mut queue = lock(&self.queue);
        let count = queue.len().min(MAX_TOGETHER);
        let taken = queue.drain(..count).collect();
        let has_more = !queue.is_empty();
        drop(queue);
        if has_more {
            self.waker.wake();
        }
        taken
    }

    /// Wakes the thread that notices handlers which block the loop, before the first of them starts.
    fn watch(&self, py: Python<'_>, items: &[Item]) -> PyResult<()> {
        if self.is_watched.load(Ordering::Acquire)
            || !items.iter().any(|item| matches!(item, Item::Start(_)))
        {
            return Ok(());
        }
        self.is_watched.store(true, Ordering::Release);
        let watch = lock(&self.attached).as_ref().map(|attached| attached.watch.clone_ref(py));
        watch.map_or(Ok(()), |watch| calling::call(watch.bind(py), ()).map(drop))
    }

    /// Returns whether handlers run, so that the watching thread must go on; otherwise `watch` wakes it again.
    pub(crate) fn is_to_be_watched(&self) -> bool {
        self.is_watched.store(false, Ordering::Release);
        let runs = !lock(&self.tasks).is_empty() || !lock(&self.ending).is_empty();
        if runs {
            self.is_watched.store(true, Ordering::Release);
        }
        runs
    }

    /// Answers for tasks that ended before their first step; then flushes.
    pub(crate) fn settle(&self, py: Python<'_>, stream: &Stream) -> PyResult<()> {
        let fresh = std::mem::take(&mut *lock(&self.fresh));
        for (task, slot) in fresh {
            if !slot.get().is_answered()
                && calling::call_method(task.bind(py), pyo3::intern!(py, "done"), ())?
                    .is_truthy()?
            {
                slot.get().give_up();
            }
        }
        self.flush(stream);
        Ok(())
    }

    /// Flushes once at the end of the loop's iteration, for any number of answers.
    pub(crate) fn flush_soon(&self, py: Python<'_>, stream: &Stream) {
        if self.flush_is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let hook = lock(&self.attached).as_ref().map(|attached| attached.flush_soon.clone_ref(py));
        let scheduled = hook.is_some_and(|hook| calling::call(hook.bind(py), ()).is_ok());
        if !scheduled {
            self.flush(stream);
        }
    }

    pub(crate) fn flush(&self, stream: &Stream) {
        self.flush_is_due.store(false, Ordering::Release);
        stream.server.try_flush();
        stream.update_timer();
    }

    pub(crate) fn finished(&self, key: Key) {
        let task = lock(&self.tasks).remove(&key).or_else(|| lock(&self.ending).remove(&key));
        drop(task);
    }

    fn spawn(
        &self,
        py: Python<'_>,
        stream: &Arc<Stream>,
        run: &Arc<HandlerRun>,
        spawn: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if run.is_cancelled() || stream.postpones(run) {
            return Ok(());
        }
        let raw = PyBytes::new(py, run.take_input().as_bytes());
        let call = Bound::new(py, Call::new(stream, run))?;
        let key = match run.is_notification {
            false => Key::Call(run.id),
            true => Key::Notification(self.notifications.fetch_add(1, Ordering::Relaxed)),
        };
        let slot = Bound::new(py, Slot::new(stream, run, key))?;
        let answer = &hooks::hooks(py)?.answer;
        let (invoke, _) = run.handler.target();
        let coroutine = calling::call(answer.bind(py), (invoke, raw, call, &slot))?;
        let task = calling::call(spawn, (coroutine,))?;
        if !slot.get().is_answered() {
            let task = task.unbind();
            lock(&self.fresh).push((task.clone_ref(py), slot.unbind()));
            lock(&self.tasks).insert(key, task);
        }
        Ok(())
    }
}
