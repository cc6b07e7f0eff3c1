import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1

/// Runs requests at their home. They come from other processes or from the entry of this process.
final class HomeRequestHandler: Sendable {
    private let domain: HomeDomain
    private let responder: any HTTPResponder<RouteContext>
    private let publishHandler: PublishHandler
    private let quotas: ConnectionQuotas
    private let logger: Logger

    /// - Parameters:
    ///   - responder: The routes of the home.
    ///   - quotas: The connections of devices, which are counted at their home.
    init(
        domain: HomeDomain, responder: any HTTPResponder<RouteContext>, publishHandler: PublishHandler,
        quotas: ConnectionQuotas,
        logger: Logger
    ) {
        self.domain = domain
        self.responder = responder
        self.publishHandler = publishHandler
        self.quotas = quotas
        self.logger = logger
    }

    /// Runs a whole request. A long poll is answered when it is over. If the task is cancelled, the request ends.
    ///
    /// - Parameter pass: Left when the request begins to wait, so that its shard can move.
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the requested object. In this case nothing was done, and a streamed
    ///   body was not read.
    func handle(_ request: HomeRequest, _ pass: ShardPass? = nil) async throws(HomeFault) -> HomeResponse {
        do {
            if request.method == "POST", let token = PublishHandler.token(of: request.path) {
                return try await publishHandler.publish(request, to: String(token))
            }
            return try await run(request, pass)
        } catch let fault as HomeFault {
            throw fault
        } catch {
            // This response replaces that of the route.
            var answer = HTTPAnswer(Refusal(error, logger: logger))
            answer.headers.replaceOrAdd(name: HeaderNames.server, value: domain.server.description)
            return HomeResponse(answer)
        }
    }

    private func run(_ request: HomeRequest, _ pass: ShardPass?) async throws -> HomeResponse {
        guard let head = request.head else {
            throw Refusal(.requestInvalid, "The request is not valid.")
        }
        var context = RouteContext(.entry(request.address), logger: logger)
        context.isHead = request.isHead
        context.shard = request.shard
        let routed = Request(head: head, body: RequestBody(request.body))
        if let device = request.session {
            context.session = .init(device: try await self.device(device), address: request.address)
            let response = try await responder.respond(to: routed, context: context)
            return HomeResponse(response, body: .whole(try await response.body.bytes()))
        }
        let usage = ConnectionUsage(of: quotas, countedFor: request.address)
        context.usage = usage
        do {
            var response = try await responder.respond(to: routed, context: context)
            if let poll = usage.takePoll() {
                pass?.leave()
                response = try await answer(of: poll)
            }
            return try await answer(response, to: request, routed.bearer, usage)
        } catch {
            usage.closed()
            throw error
        }
    }

    /// Returns the device of a request from a socket. The credential was checked when the session of the socket arrived.
    private func device(_ serial: DeviceSerial) async throws -> Device {
        try domain.home.checkHas(serial)
        guard let device = try await domain.devices.find(serial) else { throw DeviceRegistrar.credentialInvalid }
        return device
    }

    // MARK: The response

    /// Waits as a connection does, but in the task of the request.
    private func answer(of poll: WaitingPoll) async throws -> Response {
        let (looks, next) = AsyncStream.makeStream(of: Bool.self)
        // The task ends with the time of the poll, or is cancelled.
        let clock = Task {
            try await Task.sleep(for: .seconds(poll.waitSeconds))
            next.yield(true)
        }
        defer {
            clock.cancel()
            poll.end()
        }
        poll.onChange { next.yield(false) }
        for await isLast in looks {
            if let response = try await poll.look(isLast: isLast) { return named(response) }
            poll.onChange { next.yield(false) }
        }
        // The task was cancelled. The client sends nothing more, but can still read. The last read is not cancelled.
        guard let response = try await Task(operation: { try await poll.look(isLast: true) }).value else {
            throw CancellationError()
        }
        return named(response)
    }

    /// Adds the header that identifies the server, because no route created this response.
    private func named(_ response: Response) -> Response {
        var response = response
        response.headers[.carillonServer] = domain.server.description
        return response
    }

    /// Ends the usage with the response. A large body is counted while it is read in parts. A small body is counted by the
    /// process that receives it.
    private func answer(
        _ response: Response, to request: HomeRequest, _ bearer: String?, _ usage: ConnectionUsage
    ) async throws -> HomeResponse {
        let kept = usage.takeAnswer()
        let length = response.body.contentLength
        if request.isHead {
            usage.closed()
            return HomeResponse(response, body: .none(length: length))
        }
        if let length, length <= AnswerMemory.partBytes {
            let body = HomeBody.whole(try await response.body.bytes())
            kept?.release()
            usage.closed()
            return HomeResponse(response, body: body)
        }
        var place = kept
        if place == nil, let length {
            place = try await domain.answers.place(for: length, of: usage.device, or: bearer, from: usage.address)
        }
        let parts = BodyParts(of: response.body, upTo: AnswerMemory.partBytes) { [place] in
            place?.release()
            usage.closed()
        }
        return HomeResponse(response, body: .parts(parts))
    }
}

extension ResponseBody {
    /// Returns the whole body.
    fileprivate func bytes() async throws -> [UInt8] {
        let collected = Collected()
        try await write(Collector(collected: collected))
        return Array(buffer: collected.bytes)
    }

    private final class Collected {
        var bytes = ByteBuffer()
    }

    private struct Collector: ResponseBodyWriter {
        let collected: Collected
        func write(_ buffer: ByteBuffer) { collected.bytes.add(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }
}
