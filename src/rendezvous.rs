//! Where gateways that do not talk to each other expect a prompt to be cached.
//!
//! Who does not know what others sent finds nothing in the index for a prompt that is cached somewhere, and sends it to
//! whoever has least to do. Then every endpoint gets every prompt, and no cache is large enough. So all that route to the
//! same endpoints draw lots for the prompt's opening in the same way (rendezvous hashing: the highest hash of opening and
//! address wins), and each believes that the winner, its home, holds a share of it. That is a belief like what the index
//! says: weighed against waits and batches, and outdone by more in the index. Nobody is sent to a home that is full.
//!
//! There are two homes, for two kinds of work. That of the opening's beginning keeps together what shares a system prompt,
//! of which few endpoints should hold a copy. Where all prompts share one it says nothing, and the home of the whole
//! opening still tells conversations apart. It counts less: each conversation draws another copy of its system prompt to
//! it. Measured with 16 workers that each know only their own requests, seconds to the first token (`sim replay`):
//!
//! | shares | long shared prefixes | agents |
//! |---|---|---|
//! | 0, 0 | 87 | 5.2 |
//! | 0.65, 0.4 | 0.13 | 3.0 |
//! | 0.6, 0.5 | 3.3 | 1.9 |
//! | 0.6, 0.6 | 30 | 1.6 |
//!
//! Two and four gateways do best with the same shares, although they know a half and a quarter.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fleet::Endpoint;
use crate::prompt::Prompt;

/// Of a prompt, believed to be cached at the home of its beginning.
const BEGINNING_SHARE: f64 = 0.65;

/// The same at the home of its whole opening.
const WHOLE_SHARE: f64 = 0.4;

/// The homes of one prompt, and how many of its tokens each is believed to hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Homes([Option<(usize, u32)>; 2]);

impl Homes {
    /// The homes of `prompt` among `endpoints`, those that take requests and their places; none if its opening is not known.
    pub fn of<'a>(prompt: &Prompt, endpoints: impl Iterator<Item = (usize, &'a Endpoint)> + Clone) -> Self {
        let Some(opening) = prompt.opening else { return Self::default() };
        let keys = [(opening.beginning, BEGINNING_SHARE), (opening.whole, WHOLE_SHARE)];
        let tokens = |share| (share * f64::from(prompt.tokens)) as u32;
        Self(keys.map(|(key, share)| home(key, endpoints.clone()).map(|home| (home, tokens(share)))))
    }

    /// Tokens of the prompt that the endpoint at `index` is believed to hold.
    pub fn believed(&self, index: usize) -> u32 {
        let here = self.0.iter().flatten().filter(|(home, _)| *home == index);
        here.map(|(_, tokens)| *tokens).max().unwrap_or(0)
    }
}

/// The endpoint on which all agree for `key`. By address: each gateway counts generations for itself.
fn home<'a>(key: u64, endpoints: impl Iterator<Item = (usize, &'a Endpoint)>) -> Option<usize> {
    let lot = |(_, endpoint): &(usize, &Endpoint)| xxh3_64_with_seed(endpoint.address.as_bytes(), key);
    endpoints.max_by_key(lot).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Opening;

    fn endpoints(last: impl IntoIterator<Item = u8>) -> Vec<Endpoint> {
        last.into_iter().map(|last| Endpoint::new(([10, 0, 0, last], 8000).into())).collect()
    }

    fn prompt(beginning: u64, whole: u64) -> Prompt {
        Prompt { opening: Some(Opening { beginning, whole }), tokens: 10_000, ..Prompt::default() }
    }

    /// Where each opening is believed to be, with so many tokens.
    fn at<'a>(prompt: &Prompt, endpoints: &'a [Endpoint], tokens: u32) -> Option<&'a str> {
        let homes = Homes::of(prompt, endpoints.iter().enumerate());
        let found = endpoints.iter().enumerate().find(|(index, _)| homes.believed(*index) == tokens);
        found.map(|(_, endpoint)| &*endpoint.address)
    }

    #[test]
    fn gateways_agree_whatever_the_order_and_generation_of_their_endpoints() {
        let one = endpoints(1..=8);
        let mut other = endpoints((1..=8).rev());
        other.iter_mut().for_each(|endpoint| endpoint.generation = 7);
        for key in 0..100 {
            let prompt = prompt(key, key + 1000);
            assert_eq!(at(&prompt, &one, 6500), at(&prompt, &other, 6500));
            assert_eq!(at(&prompt, &one, 4000), at(&prompt, &other, 4000));
        }
    }

    #[test]
    fn openings_are_spread_over_all_endpoints() {
        let endpoints = endpoints(1..=8);
        let mut homes = [0; 8];
        for key in 0..8000 {
            let homes_of = Homes::of(&prompt(key, key), endpoints.iter().enumerate());
            let home = (0..8).find(|index| homes_of.believed(*index) == 6500).unwrap();
            homes[home] += 1;
        }
        assert!(homes.iter().all(|count| (850..1150).contains(count)), "{homes:?}");
    }

    #[test]
    fn one_that_takes_no_requests_gives_its_openings_away_and_leaves_others_where_they_are() {
        let whole = endpoints(1..=8);
        let mut without = whole.clone();
        let gone = without.remove(3).address;
        for key in 0..200 {
            let prompt = prompt(key, key);
            let (before, after) = (at(&prompt, &whole, 6500), at(&prompt, &without, 6500));
            if before == Some(&*gone) {
                assert!(after.is_some() && after != before);
            } else {
                assert_eq!(after, before);
            }
        }
    }

    #[test]
    fn a_prompt_whose_opening_is_not_known_has_no_home() {
        let endpoints = endpoints(1..=8);
        let homes = Homes::of(&Prompt { tokens: 10_000, ..Prompt::default() }, endpoints.iter().enumerate());
        assert!((0..8).all(|index| homes.believed(index) == 0));
        assert_eq!(Homes::of(&prompt(1, 2), [].into_iter()).believed(0), 0);
    }
}
