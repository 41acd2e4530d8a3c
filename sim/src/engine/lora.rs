//! LoRA slots: how many adapters a batch may hold, which are resident, and which have requests at all.

/// Adapters by the caller's numbers.
pub(super) struct Loras {
    max: usize,
    /// Least recently scheduled first.
    resident: Vec<u32>,
    /// Adapters of the step being made up.
    batch: Vec<u32>,
    /// Adapters with requests, waiting or running, in first-seen order, with their number.
    present: Vec<(u32, usize)>,
}

impl Loras {
    pub(super) fn new(max: usize) -> Self {
        Self { max, resident: Vec::new(), batch: Vec::new(), present: Vec::new() }
    }

    pub(super) fn start_batch(&mut self) {
        self.batch.clear();
    }

    /// Whether a request of this adapter may join the batch.
    pub(super) fn admits(&self, adapter: Option<u32>) -> bool {
        adapter.is_none_or(|adapter| self.batch.contains(&adapter) || self.batch.len() < self.max)
    }

    /// Notes that a request of this adapter is in the batch; true if the adapter has to be loaded for it.
    pub(super) fn join(&mut self, adapter: Option<u32>) -> bool {
        let Some(adapter) = adapter else { return false };
        if self.batch.contains(&adapter) {
            return false;
        }
        self.batch.push(adapter);
        let known = self.resident.iter().position(|resident| *resident == adapter);
        match known {
            Some(at) => {
                self.resident.remove(at);
            }
            None if self.resident.len() >= self.max => {
                let idle = self.resident.iter().position(|resident| !self.batch.contains(resident));
                self.resident.remove(idle.unwrap_or(0));
            }
            None => {}
        }
        self.resident.push(adapter);
        known.is_none()
    }

    pub(super) fn arrive(&mut self, adapter: Option<u32>) {
        let Some(adapter) = adapter else { return };
        match self.present.iter_mut().find(|(present, _)| *present == adapter) {
            Some((_, count)) => *count += 1,
            None => self.present.push((adapter, 1)),
        }
    }

    pub(super) fn leave(&mut self, adapter: Option<u32>) {
        let Some(adapter) = adapter else { return };
        self.present.retain_mut(|(present, count)| {
            *count -= usize::from(*present == adapter);
            *count > 0
        });
    }

    pub(super) fn present(&self) -> impl Iterator<Item = u32> {
        self.present.iter().map(|(adapter, _)| *adapter)
    }

    pub(super) fn resident(&self) -> usize {
        self.resident.len()
    }
}
