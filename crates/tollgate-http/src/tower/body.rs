//! The body of an answer: the service's, or that of a refusal.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of an answer: the service's, or that of a refusal.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        body: Whose<B>,
    }
}

pin_project! {
    #[project = WhoseNow]
    #[derive(Debug)]
    enum Whose<B> {
        Services { #[pin] body: B },
        Own { bytes: Option<Bytes> },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn of_service(body: B) -> Self {
        let body = Whose::Services { body };
        Self { body }
    }

    /// Nothing, if it is empty.
    pub(crate) fn own(text: String) -> Self {
        let bytes = Some(Bytes::from(text)).filter(|bytes| !bytes.is_empty());
        let body = Whose::Own { bytes };
        Self { body }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().body.project() {
            WhoseNow::Services { body } => body.poll_frame(context),
            WhoseNow::Own { bytes } => {
                let frame = bytes.take().map(|bytes| Ok(Frame::data(bytes.into())));
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Whose::Services { body } => body.is_end_stream(),
            Whose::Own { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Whose::Services { body } => body.size_hint(),
            Whose::Own { bytes } => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
        }
    }
}
