import CarillonCore
import CarillonWire
import Logging
import NIOCore
import NIOHTTP1

/// The route of senders (RFC 8030 section 5): `POST /push/{token}`.
///
/// With one home, most requests are answered without a task. A task is necessary only if the channel is not cached or the
/// ``Publisher`` must wait. With several homes, each request uses a task, and the link to the home of the device.
final class PublishHandler: Sendable {
    typealias Reply = @Sendable (HTTPAnswer) -> Void

    private let domain: HomeDomain
    private let addresses: PublicAddresses
    private let logger: Logger

    init(domain: HomeDomain, addresses: PublicAddresses, logger: Logger) {
        self.domain = domain
        self.addresses = addresses
        self.logger = logger
    }

    /// Returns the last part of an endpoint, from a normalised target; nil for any other address.
    static func token(of uri: String) -> Substring? {
        guard uri.utf8.starts(with: "/push/".utf8) else { return nil }
        var token = uri.dropFirst(6)
        if let query = token.utf8.firstIndex(of: UInt8(ascii: "?")) { token = token[..<query] }
        return token.isEmpty || token.utf8.contains(UInt8(ascii: "/")) ? nil : token
    }

    func publish(
        _ request: RequestMachine.Request, to token: Substring, on executor: EventLoopExecutor,
        then reply: @escaping Reply
    ) {
        if !domain.homes.isOne, let contents = domain.tokens.open(token) {
            return forward(request, at: Shard(of: contents.device), on: executor, then: reply)
        }
        do {
            if let channel = try domain.publisher.rememberedChannel(of: token) {
                return publish(request, to: channel, then: reply)
            }
        } catch {
            return reply(answer(error))
        }
        // The task ends with the answer of the store.
        Task(executorPreference: executor) { [self, token = String(token)] in
            do {
                publish(request, to: try await domain.publisher.channel(of: token), then: reply)
            } catch {
                reply(answer(error))
            }
        }
    }

    /// Publishes at the home of the device.
    private func forward(
        _ request: RequestMachine.Request, at shard: Shard, on executor: EventLoopExecutor, then reply: @escaping Reply
    ) {
        // The task ends with the answer of the home.
        Task(executorPreference: executor) { [self] in
            do {
                let head = request.head
                let forwarded = HomeRequest(
                    method: head.method.rawValue, path: head.uri,
                    fields: head.headers.map { ($0.name.lowercased(), $0.value) }, body: HomeBody(request.body),
                    shard: shard)
                reply(HTTPAnswer(try await domain.homes.handle(forwarded, at: shard)))
            } catch {
                reply(answer(error))
            }
        }
    }

    /// Publishes for the process that accepted the request.
    ///
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the device of the channel.
    func publish(_ request: HomeRequest, to token: String) async throws(HomeFault) -> HomeResponse {
        do {
            let channel = try await domain.publisher.channel(of: token)
            guard case .whole(let body) = request.body else { throw Self.tooLarge }
            let headers = PublishHeaders(HTTPHeaders(request.fields.map { ($0.name, $0.value) }))
            let receipt = try await domain.publisher.publish(try headers.request(body: body), to: channel)
            return HomeResponse(answer(receipt))
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return HomeResponse(answer(error))
        }
    }

    private static let tooLarge = Refusal(.bodyTooLarge, "The body must have at most \(Limits.messageBodyBytes) bytes.")

    private func publish(_ request: RequestMachine.Request, to channel: PushChannel, then reply: @escaping Reply) {
        do {
            guard case .whole(let body) = request.body else { throw Self.tooLarge }
            let headers = PublishHeaders(request.head.headers)
            domain.publisher.publish(try headers.request(body: Array(buffer: body)), to: channel) { [self] result in
                switch result {
                case .success(let receipt): reply(answer(receipt))
                case .failure(let error): reply(answer(error))
                }
            }
        } catch {
            reply(answer(error))
        }
    }

    private func answer(_ receipt: PublishReceipt) -> HTTPAnswer {
        HTTPAnswer(
            status: .created,
            headers: [
                "location": addresses.message(receipt.id), "ttl": String(receipt.ttl),
                HeaderNames.outcome: receipt.state, "cache-control": "no-store",
            ])
    }

    private func answer(_ error: any Error) -> HTTPAnswer { HTTPAnswer(Refusal(error, logger: logger)) }
}

extension PublishReceipt {
    fileprivate var state: String { outcome?.rawValue ?? (ttl == 0 ? "offered" : "waiting") }
}
