//! A gRPC service on tonic (that of health checks, which comes ready made) with a limit for each
//! client: what is too much is `RESOURCE_EXHAUSTED`, and says when to try again.
//!
//! ```sh
//! cargo run -p tollgate-http --features tonic --example tonic
//! grpc_health_probe -addr 127.0.0.1:3000 # four times, or any client of grpc.health.v1
//! ```

#![expect(
    clippy::print_stdout,
    reason = "it tells whoever starts it where to ask"
)]

use std::error::Error;

use tokio::net::TcpListener;
use tollgate_http::{Rate, RateLimitLayer};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limit = RateLimitLayer::new(Rate::per_minute(1).burst(3), 100_000)?;
    let (_, health) = tonic_health::server::health_reporter();

    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    Server::builder()
        .layer(limit)
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener))
        .await?;
    Ok(())
}
