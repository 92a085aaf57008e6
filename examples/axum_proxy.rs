//! A service on axum behind a proxy on the same machine: each of the proxy's clients has a limit of
//! its own, whatever else stands in the header that the proxy adds to.
//!
//! ```sh
//! cargo run -p tollgate-http --features axum --example axum_proxy
//! curl -i -H 'x-forwarded-for: 198.51.100.7' 'http://127.0.0.1:3000/#[1-4]'
//! ```

#![expect(
    clippy::print_stdout,
    reason = "it tells whoever starts it where to ask"
)]

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tollgate_http::proxies::{AddressHeader, Proxies};
use tollgate_http::{Rate, RateLimitLayer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Nobody but these is believed; all others are taken for the clients that they are.
    let proxies = Proxies::new(
        ["127.0.0.1".parse()?, "::1".parse()?],
        AddressHeader::XForwardedFor,
    );
    let limit = RateLimitLayer::new(Rate::per_minute(1).burst(3), 100_000)?.proxies(proxies);
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(limit);

    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await?;
    Ok(())
}
