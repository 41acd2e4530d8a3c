//! One case: a pool of some size, and prompts that have their first quarter in common.

use std::collections::VecDeque;
use std::time::Instant;

use endpoint_picker::config;
use endpoint_picker::ledger::Entry;
use endpoint_picker::picker::{Forecast, Picker};
use endpoint_picker::prompt::{Blocks, Dialect, Prompt, read};
use endpoint_picker::store::{Memory, Store};
use serde::Deserialize;
use serde_json::Value;

use crate::fleet::{NOW, picker};
use crate::shared_data::SharedData;

/// Decisions that are timed together.
const BATCH: usize = 50;

/// Batches until the engine has compiled what is hot and the index is as full as it will be.
const WARM_UP: usize = 40;

const BATCHES: usize = 40;

/// Odd, so that every number gives other hashes.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What is to be timed.
#[derive(Deserialize)]
pub(crate) struct Case {
    /// The picker's configuration.
    picker: Value,
    /// A chat, and where in it the request's number stands.
    chat: Chat,
    /// Ledger and index are in the proxy's shared data, else in memory of the module.
    shared: bool,
    /// Reading the prompt is timed too.
    reads: bool,
    /// Requests in flight all the time.
    in_flight: usize,
}

#[derive(Deserialize)]
struct Chat {
    template: String,
    number_at: usize,
}

/// A case with all that it needs.
pub(crate) struct Running {
    picker: Picker,
    store: Box<dyn Store>,
    prompts: Prompts,
    in_flight: VecDeque<(Entry, Forecast)>,
    most_in_flight: usize,
    batches: usize,
    nanos: Vec<u64>,
}

impl Running {
    pub(crate) fn new(case: Case) -> Result<Self, String> {
        let config = config::load(case.picker.to_string().as_bytes()).map_err(|error| error.to_string())?;
        let store: Box<dyn Store> = if case.shared { Box::new(SharedData) } else { Box::<Memory>::default() };
        let picker = picker(config, &*store);
        Ok(Self {
            prompts: Prompts::new(case.chat, case.reads, picker.blocks()),
            picker,
            store,
            in_flight: VecDeque::new(),
            most_in_flight: case.in_flight,
            batches: 0,
            nanos: Vec::new(),
        })
    }

    /// Times one batch. At the end of the case: nanoseconds of a decision, for each batch.
    pub(crate) fn batch(&mut self) -> Option<Vec<u64>> {
        let begin = Instant::now();
        for _ in 0..BATCH {
            self.decide();
        }
        let took = begin.elapsed();
        self.batches += 1;
        if self.batches > WARM_UP {
            self.nanos.push(took.as_nanos() as u64 / BATCH as u64);
        }
        (self.batches == WARM_UP + BATCHES).then(|| std::mem::take(&mut self.nanos))
    }

    /// A request comes, and the oldest one goes.
    fn decide(&mut self) {
        let prompt = self.prompts.next(self.picker.blocks());
        if let Ok(pick) = self.picker.pick(&*self.store, Some(prompt).into(), NOW) {
            self.in_flight.push_back((pick.entry, pick.forecast));
        }
        if self.in_flight.len() > self.most_in_flight
            && let Some((mut entry, mut forecast)) = self.in_flight.pop_front()
        {
            self.picker.first_token(&mut entry, &mut forecast, true, NOW);
            self.picker.close(entry, NOW);
        }
    }
}

/// Prompts of which no two go on alike.
struct Prompts {
    body: Vec<u8>,
    number_at: usize,
    number: u64,
    reads: bool,
    prompt: Prompt,
    /// Leading blocks that all have in common.
    common: usize,
}

impl Prompts {
    fn new(chat: Chat, reads: bool, blocks: &Blocks) -> Self {
        let body = chat.template.into_bytes();
        let mut this = Self { body, number_at: chat.number_at, number: 0, reads, prompt: Prompt::default(), common: 0 };
        let (one, other) = (this.read(blocks), this.read(blocks));
        let hashes = |prompt: &Prompt| prompt.chains.first().map(|chain| chain.hashes.clone()).unwrap_or_default();
        this.common = hashes(&one).iter().zip(hashes(&other)).take_while(|(a, b)| *a == b).count();
        this.prompt = one;
        this
    }

    fn next(&mut self, blocks: &Blocks) -> &Prompt {
        if self.reads {
            self.prompt = self.read(blocks);
        } else {
            let own = self.prompt.chains.iter_mut().flat_map(|chain| chain.hashes.iter_mut().skip(self.common));
            own.for_each(|hash| *hash = hash.wrapping_add(SPREAD));
        }
        &self.prompt
    }

    fn read(&mut self, blocks: &Blocks) -> Prompt {
        self.number += 1;
        let digits = format!("{:016}", self.number);
        if let Some(place) = self.body.get_mut(self.number_at..self.number_at + digits.len()) {
            place.copy_from_slice(digits.as_bytes());
        }
        read(Dialect::ChatCompletions, &self.body, None, blocks)
    }
}
