//! Two requests take from one bucket if, and only if, they say the same in each part of its key.

use arbitrary::{Arbitrary, Unstructured};
use tollgate::Rate;
use tollgate_policy::proxies::Peer;
use tollgate_policy::{Answer, Key, Limit, Policy, Request, Rule};

#[derive(Arbitrary, Clone, Debug)]
struct Said {
    headers: [Option<Vec<u8>>; 3],
}

#[derive(Arbitrary, Debug)]
struct Two {
    one: Said,
    other: Said,
    /// Bytes that the end of one part lends to the beginning of the next.
    moved: u8,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Request for Said {
    fn method(&self) -> &[u8] {
        b"GET"
    }

    fn target(&self) -> &[u8] {
        b"/"
    }

    fn peer(&self) -> Peer {
        Peer::Unknown
    }

    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        let own = NAMES.iter().zip(&self.headers);
        for (_, line) in own.filter(|(own, _)| **own == name) {
            line.iter().for_each(|line| each(line));
        }
    }
}

impl Said {
    /// What counts: values without blanks around them, if there are any.
    fn counts(&self) -> [Option<&[u8]>; 3] {
        self.headers.each_ref().map(|line| {
            let line = line.as_deref().map(<[u8]>::trim_ascii);
            line.filter(|line| !line.is_empty())
        })
    }

    /// The same bytes in a row, cut elsewhere.
    fn moved(&self, by: u8) -> Self {
        let mut moved = self.clone();
        if let [Some(first), Some(second), _] = &mut moved.headers {
            let at = first.len().saturating_sub(usize::from(by));
            let tail = first.split_off(at);
            second.splice(0..0, tail);
        }
        moved
    }
}

/// Reads two requests.
///
/// # Panics
///
/// If they are told apart other than by what they say.
pub fn run(bytes: &[u8]) {
    let Ok(two) = Two::arbitrary(&mut Unstructured::new(bytes)) else {
        return;
    };
    let policy = policy();
    let moved = two.one.moved(two.moved);
    for other in [&two.other, &moved] {
        let same = client(&policy, &two.one) == client(&policy, other);
        assert_eq!(
            same,
            two.one.counts() == other.counts(),
            "{:?} {other:?}",
            two.one
        );
    }
}

fn policy() -> Policy {
    let parts = NAMES.map(|name| format!("header:{name}").parse());
    let parts = parts.into_iter().collect::<Result<_, _>>();
    let key = parts.and_then(Key::of_parts);
    let rule = Rule::TokenBucket(Rate::per_second(1).burst(1));
    let limit = Limit::new("one", rule).ok().zip(key.ok());
    let limits = limit.map(|(limit, key)| vec![limit.with_key(key)]);
    limits
        .and_then(|limits| Policy::new(limits).ok())
        .unwrap_or_default()
}

fn client(policy: &Policy, request: &Said) -> Vec<u8> {
    match policy
        .calls(request)
        .into_iter()
        .next()
        .map(|call| call.answer)
    {
        Some(Answer::Takes { client, .. }) => client.as_bytes().to_vec(),
        other => panic!("{other:?}"),
    }
}
