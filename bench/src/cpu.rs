//! CPU time of a process, to the nanosecond.
//!
//! The scheduler's own count; `/proc/PID/stat` has the same amount rounded to its ticks of 10 ms.

use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context, Result};
use procfs::process::Process;

/// CPU time that a process has used since it began, of the threads that it has now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    /// Of its first thread; Envoy's scrapes run there.
    pub(crate) main: Duration,
    /// Of all others; Envoy's requests run there.
    pub(crate) others: Duration,
}

impl CpuTime {
    /// That of the process `pid`.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let pid = i32::try_from(pid)?;
        let mut time = Self::default();
        for task in Process::new(pid)?.tasks()? {
            let task = task?;
            let ran = task.schedstat().context("the kernel keeps no scheduler statistics")?.sum_exec_runtime;
            let part = if task.tid == pid { &mut time.main } else { &mut time.others };
            *part += Duration::from_nanos(ran);
        }
        Ok(time)
    }

    /// Of all threads.
    pub(crate) fn total(&self) -> Duration {
        self.main + self.others
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { main: self.main.saturating_sub(earlier.main), others: self.others.saturating_sub(earlier.others) }
    }
}
