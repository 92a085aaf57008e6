//! Whom to believe about where a request comes from.
//!
//! The only address that nobody can forge is the socket's peer. A header is read only if the peer
//! is a proxy that the operator listed, and then one header alone, all its lines, from the right:
//! each proxy adds what it saw itself at the right end, and whatever stands further left came from
//! the client.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::address::canonical;
use crate::hops::{self, Hop};

/// The most proxies that a request is followed back through.
pub const MOST_HOPS: usize = 64;

/// The other end of the connection that brought a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peer {
    /// A socket with an address.
    Address(IpAddr),
    /// A Unix domain socket.
    Unix,
    /// Nobody said.
    Unknown,
}

impl Peer {
    fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(canonical(address, false)),
            Self::Unix | Self::Unknown => None,
        }
    }
}

/// The header in which proxies say where a request came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressHeader {
    /// `X-Forwarded-For`: a list of addresses.
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the `for` of each element.
    Forwarded,
    /// A header that holds one address, such as `X-Real-IP`. One that comes twice,
    /// or holds anything else, is not believed.
    One(String),
}

impl AddressHeader {
    /// Its name, in lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::One(name) => name,
        }
    }
}

/// Where a client's address was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The socket: no proxy that is trusted.
    Peer,
    /// The header of a trusted proxy.
    Header,
    /// The socket of a trusted proxy, or the last trusted hop before a bad one: the header was
    /// missing, too short or malformed. A sign that the proxy is not set up as the operator thinks.
    Fallback,
}

/// Whose request it is, by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `None` if the peer has no address, and nobody who is trusted named one.
    pub address: Option<IpAddr>,
    /// Where it was taken from.
    pub source: Source,
}

/// The proxies that are believed, and what they write; none by default.
///
/// ```
/// use tollgate_policy::proxies::{AddressHeader, Peer, Proxies};
///
/// let proxies = Proxies::new(["10.0.0.0/8".parse()?], AddressHeader::XForwardedFor);
/// let origin = |peer: &str, header: &str| {
///     let peer = Peer::Address(peer.parse().unwrap());
///     let origin = proxies.origin(peer, &[header.as_bytes()]);
///     origin.address.unwrap().to_string()
/// };
/// // Only what trusted proxies added counts, whatever the client sent along:
/// assert_eq!(origin("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.0.0.9"), "198.51.100.7");
/// assert_eq!(origin("203.0.113.9", "1.2.3.4"), "203.0.113.9");
/// # Ok::<(), tollgate_policy::proxies::NetworkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    /// Apart from each other and sorted; IPv4-mapped ones as IPv4.
    trusted: Vec<IpNet>,
    trusts_unix: bool,
    header: AddressHeader,
    hops: Option<usize>,
}

impl Default for Proxies {
    fn default() -> Self {
        Self::new([], AddressHeader::XForwardedFor)
    }
}

impl Proxies {
    /// Believes the proxies at those addresses, in one header.
    pub fn new(trusted: impl IntoIterator<Item = Trusted>, header: AddressHeader) -> Self {
        let mut networks = Vec::new();
        let mut trusts_unix = false;
        for Trusted(network) in trusted {
            match network {
                Some(network) => networks.push(network),
                None => trusts_unix = true,
            }
        }
        let mut trusted = IpNet::aggregate(&networks);
        trusted.sort_unstable_by_key(IpNet::network);
        let header = match header {
            AddressHeader::One(name) => AddressHeader::One(name.to_ascii_lowercase()),
            list @ (AddressHeader::XForwardedFor | AddressHeader::Forwarded) => list,
        };
        Self {
            trusted,
            trusts_unix,
            header,
            hops: None,
        }
    }

    /// Counts hops instead of following trusted addresses: the client's is that which the nth proxy
    /// saw, counted from this end, the peer being the first. For proxies whose addresses change;
    /// the peer has to be trusted all the same. 1 to [`MOST_HOPS`], or the nearer of these.
    #[must_use]
    pub fn hops(self, hops: usize) -> Self {
        let hops = Some(hops.clamp(1, MOST_HOPS));
        Self { hops, ..self }
    }

    /// The header that is read.
    #[must_use]
    pub fn header(&self) -> &AddressHeader {
        &self.header
    }

    /// Whether no peer is one of them.
    #[must_use]
    pub fn trust_nobody(&self) -> bool {
        self.trusted.is_empty() && !self.trusts_unix
    }

    /// Whether a peer is one of them: other things that it says, such as a request's cost, are
    /// believed then too.
    #[must_use]
    pub fn trusts(&self, peer: Peer) -> bool {
        match peer {
            Peer::Address(address) => self.trusts_address(canonical(address, false)),
            Peer::Unix => self.trusts_unix,
            Peer::Unknown => false,
        }
    }

    fn trusts_address(&self, address: IpAddr) -> bool {
        let after = self
            .trusted
            .partition_point(|network| network.network() <= address);
        let before = after.checked_sub(1).and_then(|at| self.trusted.get(at));
        before.is_some_and(|network| network.contains(&address))
    }

    /// Where a request comes from; `lines` are all lines of the [header](Self::header), as they
    /// came.
    ///
    /// A list is read from its right end, past trusted proxies, to the first address that is none:
    /// the client. Of a list of trusted proxies alone, the leftmost is. What is no address ends the
    /// walk on the last trusted hop before it; a missing header, or one with too few hops, on the
    /// peer. Empty elements are skipped.
    #[must_use]
    pub fn origin(&self, peer: Peer, lines: &[&[u8]]) -> Origin {
        if !self.trusts(peer) {
            return Origin {
                address: peer.address(),
                source: Source::Peer,
            };
        }
        let named = match self.header {
            AddressHeader::XForwardedFor => self.named(hops::x_forwarded_for(lines)),
            AddressHeader::Forwarded => self.named(hops::forwarded(lines)),
            AddressHeader::One(_) => self.named(hops::one(lines)),
        };
        match named {
            Ok(address) => Origin {
                address: Some(address),
                source: Source::Header,
            },
            Err(last) => Origin {
                address: last.or(peer.address()),
                source: Source::Fallback,
            },
        }
    }

    /// The client among hops from the right; or the last trusted one before it went wrong.
    fn named(&self, mut hops: impl Iterator<Item = Hop>) -> Result<IpAddr, Option<IpAddr>> {
        if let Some(count) = self.hops {
            return hops.nth(count.saturating_sub(1)).flatten().ok_or(None);
        }
        let mut last = None;
        for hop in hops.take(MOST_HOPS) {
            let address = hop.ok_or(last)?;
            last = Some(address);
            if !self.trusts_address(address) {
                break;
            }
        }
        last.ok_or(None)
    }
}

/// A proxy to believe, or a network of them: `10.0.0.0/8`, `2001:db8::1`, or `unix` for peers on a
/// Unix domain socket.
///
/// Networks are of addresses alone: bits behind the prefix are an error, and so is one of all
/// addresses (`0.0.0.0/0`), under which every client can say that it is anybody. One in mapped
/// notation (`::ffff:10.0.0.0/104`) is the IPv4 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trusted(Option<IpNet>);

impl FromStr for Trusted {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        if text == "unix" {
            return Ok(Self(None));
        }
        let network = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text.parse().map_err(|_| NetworkError::Unreadable)?,
        };
        let network = unmapped(network).ok_or(NetworkError::OfAll)?;
        if network.prefix_len() == 0 {
            return Err(NetworkError::OfAll);
        }
        if network != network.trunc() {
            return Err(NetworkError::HostBits {
                network: network.trunc().to_string(),
            });
        }
        Ok(Self(Some(network)))
    }
}

/// A network in mapped notation as IPv4; `None` if it holds all of IPv4 and more.
fn unmapped(network: IpNet) -> Option<IpNet> {
    let IpNet::V6(long) = network else {
        return Some(network);
    };
    match (
        long.addr().to_ipv4_mapped(),
        long.prefix_len().checked_sub(96),
    ) {
        (Some(short), Some(prefix)) => Ipv4Net::new(short, prefix).ok().map(IpNet::V4),
        _ if long.contains(&"::ffff:0:0".parse::<std::net::Ipv6Addr>().ok()?) => None,
        _ => Some(network),
    }
}

/// What is no proxy to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// No address and no network.
    Unreadable,
    /// Bits are set behind the prefix.
    HostBits {
        /// What was probably meant.
        network: String,
    },
    /// It holds every IPv4 or every IPv6 address.
    OfAll,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => {
                f.write_str("not an address, a network such as 10.0.0.0/8 or fd00::/8, or \"unix\"")
            }
            Self::HostBits { network } => write!(f, "not a network: did you mean {network}?"),
            Self::OfAll => {
                f.write_str("every address is in it, so any client could name any other")
            }
        }
    }
}

impl std::error::Error for NetworkError {}
