//! Which client an address is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::key::Short;

/// The address itself where it is written in another family's notation: `::ffff:192.0.2.1` and
/// `64:ff9b::192.0.2.1` are 192.0.2.1.
///
/// Told by bits, not by spelling: exactly `::ffff:0:0/96` (RFC 4291, 2.5.5.2) and, if `nat64` is
/// set, `64:ff9b::/96` (RFC 6052, 2.1), behind which a translator puts the whole of IPv4. `::1` is
/// itself.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_policy::address::canonical;
///
/// let address = |text: &str| text.parse::<IpAddr>().unwrap();
/// assert_eq!(canonical(address("::ffff:c000:201"), false), address("192.0.2.1"));
/// assert_eq!(canonical(address("64:ff9b::c000:201"), true), address("192.0.2.1"));
/// assert_ne!(canonical(address("2001:db8::192.0.2.1"), true), address("192.0.2.1"));
/// ```
#[must_use]
pub fn canonical(address: IpAddr, nat64: bool) -> IpAddr {
    let IpAddr::V6(long) = address else {
        return address;
    };
    let [.., a, b, c, d] = long.octets();
    let translated = nat64 && matches!(long.segments(), [0x64, 0xff9b, 0, 0, 0, 0, _, _]);
    match long.to_ipv4_mapped() {
        Some(short) => IpAddr::V4(short),
        None if translated => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        None => address,
    }
}

/// How much of an address tells one client from another: 32 bits of an IPv4 address and 64 of an
/// IPv6 address, unless told otherwise.
///
/// A customer of an IPv6 network has a /64 at least, and all of its 2^64 addresses; of a link-local
/// address (`fe80::/10`) all bits count, since the network is the link's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    ipv4: u8,
    ipv6: u8,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self { ipv4: 32, ipv6: 64 }
    }
}

impl Prefixes {
    /// So many bits of an IPv4 address, 1 to 32, and of an IPv6 address, 1 to 128.
    ///
    /// # Errors
    ///
    /// Anything else.
    ///
    /// ```
    /// use tollgate_policy::address::Prefixes;
    ///
    /// let prefixes = Prefixes::new(32, 56).unwrap();
    /// let client = |text: &str| prefixes.network(text.parse().unwrap());
    /// assert_eq!(client("2001:db8:0:1::7"), client("2001:db8:0:ff:8::"));
    /// assert_ne!(client("2001:db8:0:1::7"), client("2001:db8:0:100::7"));
    /// assert!(Prefixes::new(33, 64).is_err());
    /// ```
    pub fn new(ipv4: u8, ipv6: u8) -> Result<Self, PrefixError> {
        if !(1..=32).contains(&ipv4) {
            return Err(PrefixError::Ipv4 { prefix: ipv4 });
        }
        if !(1..=128).contains(&ipv6) {
            return Err(PrefixError::Ipv6 { prefix: ipv6 });
        }
        Ok(Self { ipv4, ipv6 })
    }

    /// The client that an address is: its network, after [`canonical`] with NAT64.
    #[must_use]
    pub fn network(self, address: IpAddr) -> Network {
        // Shifted by as many bits as there are, nothing is left to clear.
        match canonical(address, true) {
            IpAddr::V4(short) => {
                let host = u32::MAX.checked_shr(self.ipv4.into()).unwrap_or(0);
                Network {
                    address: Ipv4Addr::from_bits(short.to_bits() & !host).into(),
                    prefix: self.ipv4,
                }
            }
            IpAddr::V6(long) => {
                let is_of_link = long.is_unicast_link_local();
                let prefix = if is_of_link { 128 } else { self.ipv6 };
                let host = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
                Network {
                    address: Ipv6Addr::from_bits(long.to_bits() & !host).into(),
                    prefix,
                }
            }
        }
    }
}

/// A client by its address: all addresses that share its first bits.
///
/// Prints as the address where that is all of it, else as a network: `192.0.2.1`,
/// `2001:db8::/64` (RFC 5952).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// The first address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits its addresses share.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Adds the bytes that tell it from every other network: the family, the prefix, and as many
    /// bytes of the address as the prefix reaches into. A /64 takes ten.
    pub(crate) fn encode(&self, to: &mut Short) {
        let reached = usize::from(self.prefix.div_ceil(8));
        let mut add = |family: u8, octets: &[u8]| {
            to.extend_from_slice(&[family, self.prefix]);
            to.extend_from_slice(octets.get(..reached).unwrap_or(octets));
        };
        match self.address {
            IpAddr::V4(short) => add(4, &short.octets()),
            IpAddr::V6(long) => add(6, &long.octets()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.prefix) {
            (IpAddr::V4(_), 32) | (IpAddr::V6(_), 128) => self.address.fmt(f),
            (address, prefix) => write!(f, "{address}/{prefix}"),
        }
    }
}

/// A prefix that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixError {
    /// Of an IPv4 address.
    Ipv4 {
        /// As given.
        prefix: u8,
    },
    /// Of an IPv6 address.
    Ipv6 {
        /// As given.
        prefix: u8,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipv4 { prefix } => write!(f, "the IPv4 prefix is {prefix}; it has 1 to 32 bits"),
            Self::Ipv6 { prefix } => write!(f, "the IPv6 prefix is {prefix}; it has 1 to 128 bits"),
        }
    }
}

impl std::error::Error for PrefixError {}
