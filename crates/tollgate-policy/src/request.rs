//! What a policy asks about a request, whoever brings it.

use std::borrow::Cow;

use crate::proxies::Peer;

/// A request, as a policy sees it: the middleware's, the sidecar's or a line of a log.
///
/// ```
/// use tollgate_policy::proxies::Peer;
/// use tollgate_policy::request::Request;
///
/// struct Line {
///     client: std::net::IpAddr,
///     target: String,
/// }
///
/// impl Request for Line {
///     fn method(&self) -> &[u8] {
///         b"GET"
///     }
///     fn target(&self) -> &[u8] {
///         self.target.as_bytes()
///     }
///     fn peer(&self) -> Peer {
///         Peer::Address(self.client)
///     }
///     fn header(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
/// }
/// ```
pub trait Request {
    /// The method, as in `GET`.
    fn method(&self) -> &[u8];

    /// Path and query, as they were sent.
    fn target(&self) -> &[u8];

    /// Who is at the other end of the connection.
    fn peer(&self) -> Peer;

    /// Whose request it is, where that is known already, as in a log: an address or a name. It
    /// stands for the client's address then, and neither peer nor proxies are asked.
    fn client(&self) -> Option<&[u8]> {
        None
    }

    /// Hands over each line of a header, in the order in which they came. `name` is in small
    /// letters; only a header of exactly that name is meant, and none with `_` for `-`.
    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8]));

    /// A value that the service itself gives the request, such as a tenant; `None` if it gives it
    /// none. A name that a policy uses and nobody gives values for is found where the policy is put
    /// to use: see [`Policy::descriptors`](crate::Policy::descriptors).
    fn descriptor(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let _ = name;
        None
    }

    /// How many tokens of a limit the service itself makes it cost, if it says so: at least 1.
    fn cost(&self, limit: &str) -> Option<u64> {
        let _ = limit;
        None
    }
}
