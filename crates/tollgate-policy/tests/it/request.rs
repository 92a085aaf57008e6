//! A request made up of what a test says of it.

use std::borrow::Cow;

use tollgate_policy::proxies::Peer;
use tollgate_policy::request::Request;
use tollgate_policy::{Answer, Policy};

/// A GET of `/` from 192.0.2.1, unless told otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) peer: Peer,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) descriptors: Vec<(&'static str, String)>,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            method: "GET",
            target: "/".to_owned(),
            peer: Peer::Address([192, 0, 2, 1].into()),
            headers: Vec::new(),
            descriptors: Vec::new(),
        }
    }
}

impl Made {
    pub(crate) fn get(target: &str) -> Self {
        let target = target.to_owned();
        Self {
            target,
            ..Self::default()
        }
    }

    pub(crate) fn from(peer: &str) -> Self {
        Self::default().peer(Peer::Address(peer.parse().unwrap()))
    }

    pub(crate) fn peer(self, peer: Peer) -> Self {
        Self { peer, ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, line: &str) -> Self {
        self.headers.push((name, line.to_owned()));
        self
    }

    pub(crate) fn says(mut self, name: &'static str, value: &str) -> Self {
        self.descriptors.push((name, value.to_owned()));
        self
    }
}

impl Request for Made {
    fn method(&self) -> &[u8] {
        self.method.as_bytes()
    }

    fn target(&self) -> &[u8] {
        self.target.as_bytes()
    }

    fn peer(&self) -> Peer {
        self.peer
    }

    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        let lines = self.headers.iter().filter(|(own, _)| *own == name);
        lines.for_each(|(_, line)| each(line.as_bytes()));
    }

    fn descriptor(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut all = self.descriptors.iter();
        let (_, value) = all.find(|(own, _)| *own == name)?;
        Some(Cow::Borrowed(value.as_bytes()))
    }
}

/// What a request asks of a policy's only limit, if that holds for it.
pub(crate) fn asked(policy: &Policy, request: &Made) -> Option<Answer> {
    let mut calls = policy.calls(request).into_iter();
    let call = calls.next()?;
    assert_eq!(calls.next(), None);
    Some(call.answer)
}
