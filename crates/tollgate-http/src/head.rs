//! A request as the limits see it.

use std::borrow::Cow;

use tollgate_policy::Request;
use tollgate_policy::proxies::Peer;

use crate::limits::Settings;

/// The head of a request, in one framework's terms. Only this crate implements it.
pub trait Head: sealed::Sealed {
    /// The method.
    fn method(&self) -> &str;
    /// Path and query, as they were sent.
    fn target(&self) -> &str;
    /// Who is at the other end of the connection.
    fn peer(&self) -> Peer;
    /// Each line of a header.
    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8]));
}

/// A request's head, and what the service says about it.
pub(crate) struct Described<'h, H: ?Sized> {
    pub(crate) head: &'h H,
    pub(crate) settings: &'h Settings<H>,
}

impl<H: Head + ?Sized> Request for Described<'_, H> {
    fn method(&self) -> &[u8] {
        self.head.method().as_bytes()
    }

    fn target(&self) -> &[u8] {
        self.head.target().as_bytes()
    }

    fn peer(&self) -> Peer {
        let says = self.settings.peer.as_ref();
        says.and_then(|says| says(self.head))
            .unwrap_or_else(|| self.head.peer())
    }

    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        self.head.header(name, each);
    }

    fn descriptor(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut known = self.settings.descriptors.iter().rev();
        let (_, says) = known.find(|(own, _)| own == name)?;
        says(self.head)
            .filter(|value| !value.is_empty())
            .map(Cow::Owned)
    }

    fn cost(&self, limit: &str) -> Option<u64> {
        // What is said of one limit goes before what is said of all; of several the last.
        let of = |limit: Option<&str>| {
            let mut known = self.settings.costs.iter().rev();
            known.find(|(own, _)| own.as_deref() == limit)
        };
        let (_, says) = of(Some(limit)).or_else(|| of(None))?;
        Some(says(self.head))
    }
}

pub(crate) mod sealed {
    /// No other head is one.
    pub trait Sealed {}

    impl Sealed for http::request::Parts {}
}

impl Head for http::request::Parts {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn target(&self) -> &str {
        let uri = whole_uri(self);
        uri.path_and_query().map_or("", |target| target.as_str())
    }

    fn peer(&self) -> Peer {
        peer(&self.extensions)
    }

    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        for line in self.headers.get_all(name) {
            each(line.as_bytes());
        }
    }
}

/// The target as it came. A router that is nested in another of axum's sees the rest alone.
fn whole_uri(parts: &http::request::Parts) -> &http::Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = parts.extensions.get() {
        return uri;
    }
    &parts.uri
}

/// What the server said about the connection: a [`Peer`], or in its own terms.
fn peer(extensions: &http::Extensions) -> Peer {
    if let Some(peer) = extensions.get::<Peer>() {
        return *peer;
    }
    #[cfg(feature = "axum")]
    {
        use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
        use std::net::SocketAddr;
        let real = extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map(|info| info.0);
        let mock = || {
            extensions
                .get::<MockConnectInfo<SocketAddr>>()
                .map(|info| info.0)
        };
        if let Some(address) = real.or_else(mock) {
            return Peer::Address(address.ip());
        }
    }
    #[cfg(feature = "tonic")]
    {
        use tonic::transport::server::TcpConnectInfo;
        let info = extensions.get::<TcpConnectInfo>();
        if let Some(address) = info.and_then(TcpConnectInfo::remote_addr) {
            return Peer::Address(address.ip());
        }
        #[cfg(unix)]
        if extensions
            .get::<tonic::transport::server::UdsConnectInfo>()
            .is_some()
        {
            return Peer::Unix;
        }
    }
    Peer::Unknown
}
