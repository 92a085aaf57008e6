//! An answer that is on its way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tollgate_policy::Verdict;
use tower_service::Service;

use super::answer::{Form, refused};
use super::body::ResponseBody;
use crate::limits::{Held, Later, Limits, Ruling};

pin_project! {
    /// The answer to a request under limits.
    ///
    /// Dropped, what was taken stays taken. It needs a tokio runtime with its timer where a leaky
    /// bucket holds a request back, or a store is asked.
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        limits: Limits<Parts>,
        form: Form,
        #[pin]
        state: State<S, B, S::Future, S::Response>,
    }
}

pin_project! {
    #[project = StateNow]
    enum State<S, B, F, R> {
        /// The limits decided, and nobody has looked yet.
        Decided { ruled: Option<(Verdict, Option<Held>)>, call: Option<Call<S, B>> },
        /// A store is asked.
        Asking { asking: Later, held: Option<Held>, call: Option<Call<S, B>> },
        /// The request waits for its turn, or for its service.
        Waiting {
            sleep: Option<Pin<Box<Sleep>>>,
            held: Option<Held>,
            call: Option<Call<S, B>>,
            verdict: Option<Verdict>,
        },
        /// The service answers.
        Answering { #[pin] answering: F, verdict: Option<Verdict> },
        /// It did, and a store is told with which status.
        Telling { telling: Later, response: Option<R> },
        /// It is a refusal.
        Refused { verdict: Verdict },
    }
}

/// A request, and the service that is to answer it: one that was not made ready for it, so that
/// nobody else's turn is held up while the request is.
struct Call<S, B> {
    service: S,
    request: Request<B>,
}

impl<S: Clone, B> Call<S, B> {
    fn later(service: &mut S, request: Request<B>) -> Option<Self> {
        release(service);
        let service = service.clone();
        Some(Self { service, request })
    }
}

/// Puts one that was not made ready in a service's place: one that was, and is not called, keeps
/// what it was given for that, such as a permit, from all others.
fn release<S: Clone>(service: &mut S) {
    *service = service.clone();
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>> + Clone,
{
    /// Asks the limits, and, where that is all there is to wait for, the service, which is ready.
    pub(super) fn new(limits: &Limits<Parts>, service: &mut S, request: Request<B>) -> Self {
        let (head, body) = request.into_parts();
        let form = Form::of(&head);
        let ruling = limits.rule(&head);
        let request = Request::from_parts(head, body);
        let state = match ruling {
            Ruling::Skipped => State::Answering {
                answering: service.call(request),
                verdict: None,
            },
            Ruling::Decided(verdict, _) if !verdict.is_allowed() => {
                release(service);
                State::Refused { verdict }
            }
            Ruling::Decided(verdict, _) if verdict.delay().is_zero() => State::Answering {
                answering: service.call(request),
                verdict: Some(verdict),
            },
            Ruling::Decided(verdict, held) => State::Decided {
                ruled: Some((verdict, held)),
                call: Call::later(service, request),
            },
            Ruling::Asking(asking, held) => State::Asking {
                asking,
                held,
                call: Call::later(service, request),
            },
        };
        let limits = limits.clone();
        Self {
            limits,
            form,
            state,
        }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
    R::Data: From<Bytes>,
{
    type Output = Result<Response<ResponseBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let limits = this.limits;
        // Each step is taken once, in the order of the states.
        loop {
            let next = match this.state.as_mut().project() {
                StateNow::Decided { ruled, call } => match ruled.take() {
                    None => return Poll::Pending,
                    Some((verdict, held)) => State::after(verdict, held, call.take()),
                },
                StateNow::Asking { asking, held, call } => {
                    let verdict = ready!(asking.as_mut().poll(context));
                    limits.note(&verdict);
                    State::after(verdict, held.take(), call.take())
                }
                StateNow::Waiting {
                    sleep,
                    held,
                    call,
                    verdict,
                } => {
                    if let Some(sleep) = sleep {
                        ready!(sleep.as_mut().poll(context));
                    }
                    *sleep = None;
                    let Some(Call { service, .. }) = call else {
                        return Poll::Pending;
                    };
                    ready!(service.poll_ready(context))?;
                    let Some(Call {
                        mut service,
                        request,
                    }) = call.take()
                    else {
                        return Poll::Pending;
                    };
                    *held = None;
                    State::Answering {
                        answering: service.call(request),
                        verdict: verdict.take(),
                    }
                }
                StateNow::Answering { answering, verdict } => {
                    let response = ready!(answering.poll(context))?;
                    let Some(verdict) = verdict.take() else {
                        return Poll::Ready(Ok(response.map(ResponseBody::of_service)));
                    };
                    // What became of a call of gRPC is not told by its status.
                    let settled = match this.form {
                        Form::Grpc => Ok(verdict),
                        Form::Http | Form::Head => {
                            limits.answered(verdict, response.status().as_u16())
                        }
                    };
                    match settled {
                        Ok(verdict) => {
                            return Poll::Ready(Ok(answered(limits, &verdict, response)));
                        }
                        Err(telling) => State::Telling {
                            telling,
                            response: Some(response),
                        },
                    }
                }
                StateNow::Telling { telling, response } => {
                    let verdict = ready!(telling.as_mut().poll(context));
                    let Some(response) = response.take() else {
                        return Poll::Pending;
                    };
                    return Poll::Ready(Ok(answered(limits, &verdict, response)));
                }
                StateNow::Refused { verdict } => {
                    return Poll::Ready(Ok(refused(limits, verdict, *this.form)));
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, B, F, R> State<S, B, F, R> {
    /// What comes after a verdict.
    fn after(verdict: Verdict, held: Option<Held>, call: Option<Call<S, B>>) -> Self {
        if !verdict.is_allowed() {
            return Self::Refused { verdict };
        }
        let delay = verdict.delay();
        let is_held = !delay.is_zero();
        Self::Waiting {
            // By the runtime's clock: the limits' own may be one that is moved by hand.
            sleep: is_held.then(|| Box::pin(tokio::time::sleep(delay))),
            held: held.filter(|_| is_held),
            call,
            verdict: Some(verdict),
        }
    }
}

/// The service's answer, with the limits' figures.
fn answered<R>(
    limits: &Limits<Parts>,
    verdict: &Verdict,
    response: Response<R>,
) -> Response<ResponseBody<R>> {
    let mut response = response.map(ResponseBody::of_service);
    limits.write(verdict, response.headers_mut());
    response
}

impl<S, B> std::fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
