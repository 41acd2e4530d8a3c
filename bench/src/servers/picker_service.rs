//! The least that a picker beside the proxy must do: an external processor that says what the endpoint picker of the
//! Inference Extension says to Envoy, and nothing else.
//!
//! It reads no body, knows no metrics and takes the endpoints in turn. So what it costs is what the way to any such
//! service and back costs.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use clap::Args;
use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::{
    ExternalProcessor, ExternalProcessorServer,
};
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyMutation, BodyResponse, CommonResponse, HeaderMutation, HeadersResponse, HttpBody, ProcessingRequest,
    ProcessingResponse, StreamedBodyResponse, TrailersResponse, body_mutation, processing_request, processing_response,
};
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::child::{Child, announce};

/// A body of 128 KB goes through without a wait for the window.
const WINDOW: u32 = 1 << 20;

const DESTINATION: &str = "x-gateway-destination-endpoint";

/// The service.
#[derive(Args, Debug)]
pub(crate) struct PickerService {
    /// The endpoints to name.
    #[arg(required = true)]
    endpoints: Vec<SocketAddr>,
    #[arg(skip)]
    next: AtomicUsize,
}

type Answers = Pin<Box<dyn Stream<Item = Result<ProcessingResponse, Status>> + Send>>;

impl PickerService {
    /// Starts one in a child process.
    pub(crate) fn start(endpoints: &[SocketAddr]) -> Result<Child> {
        let endpoints: Vec<_> = endpoints.iter().map(SocketAddr::to_string).collect();
        let mut arguments = vec!["picker-service"];
        arguments.extend(endpoints.iter().map(String::as_str));
        Child::start(&arguments)
    }

    /// The child's side.
    pub(crate) async fn serve(self) -> Result<()> {
        let listener = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into())?.with_nodelay(Some(true));
        announce(&[listener.local_addr()?])?;
        let mut server =
            Server::builder().initial_stream_window_size(WINDOW).initial_connection_window_size(16 * WINDOW);
        server.add_service(ExternalProcessorServer::new(self)).serve_with_incoming(listener).await?;
        Ok(())
    }

    fn pick(&self) -> String {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.endpoints.len().max(1);
        self.endpoints.get(turn).map(SocketAddr::to_string).unwrap_or_default()
    }
}

#[tonic::async_trait]
impl ExternalProcessor for PickerService {
    type ProcessStream = Answers;

    async fn process(&self, request: Request<Streaming<ProcessingRequest>>) -> Result<Response<Answers>, Status> {
        let mut exchange = Exchange { destination: self.pick(), held: Vec::new() };
        let answers = request.into_inner().map_ok(move |message| {
            let answers = message.request.map(|message| exchange.answer(message)).unwrap_or_default();
            stream::iter(answers).map(|answer| Ok(ProcessingResponse { response: Some(answer), ..Default::default() }))
        });
        Ok(Response::new(answers.try_flatten().boxed()))
    }
}

/// One request and its answer.
struct Exchange {
    destination: String,
    /// The body so far: a picker decides when it has the whole prompt.
    held: Vec<HttpBody>,
}

impl Exchange {
    fn answer(&mut self, message: processing_request::Request) -> Vec<processing_response::Response> {
        use processing_request::Request as Asked;
        use processing_response::Response as Answer;
        match message {
            Asked::RequestHeaders(headers) if headers.end_of_stream => vec![self.named()],
            Asked::RequestHeaders(_) => Vec::new(),
            Asked::RequestBody(piece) => {
                let end = piece.end_of_stream;
                self.held.push(piece);
                if end { self.release().collect() } else { Vec::new() }
            }
            Asked::RequestTrailers(_) => {
                let trailers = Answer::RequestTrailers(TrailersResponse::default());
                self.release().chain([trailers]).collect()
            }
            Asked::ResponseHeaders(_) => vec![Answer::ResponseHeaders(HeadersResponse::default())],
            Asked::ResponseBody(piece) => vec![Answer::ResponseBody(sent_on(piece))],
            Asked::ResponseTrailers(_) => vec![Answer::ResponseTrailers(TrailersResponse::default())],
        }
    }

    /// The headers with the destination, then the body.
    fn release(&mut self) -> impl Iterator<Item = processing_response::Response> {
        let pieces = std::mem::take(&mut self.held).into_iter();
        std::iter::once(self.named())
            .chain(pieces.map(|piece| processing_response::Response::RequestBody(sent_on(piece))))
    }

    fn named(&self) -> processing_response::Response {
        let raw_value = self.destination.clone().into_bytes();
        let header = HeaderValue { key: DESTINATION.to_owned(), raw_value, ..Default::default() };
        let set = HeaderValueOption { header: Some(header), ..Default::default() };
        let header_mutation = Some(HeaderMutation { set_headers: vec![set], ..Default::default() });
        let response = Some(CommonResponse { header_mutation, ..Default::default() });
        processing_response::Response::RequestHeaders(HeadersResponse { response })
    }
}

fn sent_on(HttpBody { body, end_of_stream, .. }: HttpBody) -> BodyResponse {
    let piece = StreamedBodyResponse { body, end_of_stream, ..Default::default() };
    let body_mutation = Some(BodyMutation { mutation: Some(body_mutation::Mutation::StreamedResponse(piece)) });
    BodyResponse { response: Some(CommonResponse { body_mutation, ..Default::default() }) }
}
