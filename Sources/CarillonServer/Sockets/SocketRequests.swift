import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// Performs the requests that clients send over the socket, at the home of the client's device.
struct SocketRequests: Sendable {
    /// A home of this process. If it is the only home, it is called directly.
    let domain: HomeDomain
    let addresses: PublicAddresses
    let anonymousApp: AppID?
    /// The routes of the home, for requests that are also possible over HTTP.
    let responder: any HTTPResponder<RouteContext>
    let logger: Logger

    /// The answer to a session, and its reserved memory until the peer has received the answer.
    struct Performed: Sendable {
        var answer: SessionMachine.Answer
        var place: AnswerReservation?
    }

    func perform(
        _ request: SessionMachine.Request, by requester: RequestingDevice, from address: NetworkAddress?,
        on channel: any NIOCore.Channel
    ) async -> Performed {
        switch request {
        case .register(let owner, let id, let register):
            return Performed(answer: await self.register(id, register, owner, address))
        case .unregister(let owner, let id, let asWritten):
            return Performed(answer: await unregister(id, asWritten, owner))
        case .ask(let owner, let request):
            let (answer, place) = await ask(request, owner, requester, address, channel)
            return Performed(answer: .asked(answer), place: place)
        }
    }

    private func register(
        _ id: ChannelID, _ register: ClientFrame.Register, _ owner: SessionMachine.Owner, _ address: NetworkAddress?
    ) async -> SessionMachine.Answer {
        do {
            // A registration that will be refused must not create a device.
            let vapidKey = try register.key.map(ChannelRegistrar.parseVapidKey)
            try ChannelRegistrar.check(name: register.name)
            let wake = try register.wake.map(WakeMode.checked)
            let channel = OpenChannel(
                owner: try self.owner(owner), id: id, name: register.name, vapidKey: vapidKey, wake: wake, address: address)
            let homes = domain.homes
            let opened =
                homes.isOne
                ? try await domain.open(channel) : try await homes.ask(channel, at: channel.owner.shard(in: homes))
            return .registered(
                asWritten: register.channelID, endpoint: addresses.endpoint(token: opened.token), device: opened.device)
        } catch {
            let refusal = Refusal(error, logger: logger)
            refusal.count()
            return .registrationRefused(asWritten: register.channelID, refusal)
        }
    }

    private func unregister(
        _ id: ChannelID, _ asWritten: String, _ owner: SessionMachine.Owner
    ) async -> SessionMachine.Answer {
        guard case .device(let device) = owner else { return .unregistered(asWritten: asWritten) }
        do {
            let channel = CloseChannel(device: device, id: id)
            if domain.homes.isOne {
                try await domain.close(channel)
            } else {
                try await domain.homes.ask(channel, at: Shard(of: device))
            }
            return .unregistered(asWritten: asWritten)
        } catch {
            logger.error("cannot close a channel; reporting the failure to the client", metadata: ["reason": "\(error)"])
            return .unregistrationFailed(asWritten: asWritten)
        }
    }

    private func owner(_ owner: SessionMachine.Owner) throws(Refusal) -> OpenChannel.Owner {
        switch owner {
        case .device(let device):
            return .device(device)
        case .provisional(let userAgent):
            guard let anonymousApp else { throw Refusal(.credentialMissing, "Register the device by HTTP first.") }
            return .userAgent(userAgent, app: anonymousApp)
        }
    }

    // MARK: Requests of the HTTP API

    private static let subscriptions = "/v1/device/subscriptions"
    private static let inbox = InboxRoutes.path
    private static let services = "/v1/services"

    /// Whether a request can be sent over the socket.
    private static func isAsked(_ path: Substring, _ method: String) -> Bool {
        path == subscriptions || path.hasPrefix(subscriptions + "/") || path == inbox && method == "POST"
            || path == services || path.hasPrefix(services + "/") || path == "/v1/device/services"
    }

    private func ask(
        _ request: ClientFrame.Request, _ owner: SessionMachine.Owner, _ requester: RequestingDevice,
        _ address: NetworkAddress?,
        _ channel: any NIOCore.Channel
    ) async -> (ServerFrame.Answer, AnswerReservation?) {
        var response: Response
        do {
            let target = request.path.decodingUnreserved
            let path = target.prefix { $0 != "?" }
            guard Self.isAsked(path, request.method) else {
                throw Refusal(
                    .notFound,
                    "On a socket only requests of \(Self.subscriptions), \(Self.services) and POST \(Self.inbox) are supported; send others by HTTP."
                )
            }
            guard let method = HTTPRequest.Method(rawValue: request.method), target.utf8.allSatisfy(Self.isOfURL)
            else { throw Refusal(.requestInvalid, "The request is not valid.") }
            guard case .device(let serial) = owner else { throw DeviceRegistrar.credentialInvalid }
            if domain.homes.isOne {
                guard let device = try await requester.device(serial, in: domain.devices) else {
                    throw DeviceRegistrar.credentialInvalid
                }
                var context = RouteContext(.connection(channel), logger: logger)
                context.session = .init(device: device, address: address)
                let head = HTTPRequest(method: method, scheme: nil, authority: nil, path: target)
                response = try await responder.respond(
                    to: Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: request.body))), context: context)
            } else {
                let forwarded = HomeRequest(
                    method: request.method, path: target, fields: [], body: .whole(request.body), address: address,
                    session: serial, shard: Shard(of: serial))
                response = Response(try await domain.homes.handle(forwarded, at: Shard(of: serial)))
            }
        } catch let refusal as Refusal {
            response = Response(refusal: refusal)
        } catch {
            response = Response(refusal: Self.refusal(for: error, logger: logger))
        }
        let body = WholeBody()
        var place: AnswerReservation?
        do {
            // The answer waits for the peer as one frame.
            if let length = response.body.contentLength, case .device(let device) = owner {
                place = try await domain.answers.place(for: length, of: device, or: nil, from: address)
            }
        } catch {
            response = Response(refusal: error)
        }
        do {
            try await response.body.write(body)
        } catch {
            return (ServerFrame.Answer(to: request.id, Self.refusal(for: error, logger: logger)), nil)
        }
        let answer = ServerFrame.Answer(
            id: request.id, status: response.status.code, body: Array(body.bytes.readableBytesView),
            contentType: Self.otherType(of: response))
        return (answer, place)
    }

    /// Returns the refusal for a client whose request failed.
    static func refusal(for error: any Error, logger: Logger) -> Refusal {
        if let fault = error as? HomeFault { return Refusal(fault, logger: logger) }
        logger.error("a request of a socket failed; refusing it", metadata: ["reason": "\(error)"])
        return Refusal(.storageUnavailable, "The server cannot process the request; retry later.")
    }

    /// Returns the type of a body that is not JSON; nil for JSON.
    private static func otherType(of response: Response) -> String? {
        guard let type = response.headers[.contentType] else { return "application/octet-stream" }
        let name = type.prefix { $0 != ";" && $0 != " " }.lowercased()
        return name == "application/json" || name.hasSuffix("+json") ? nil : type
    }

    private static func isOfURL(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    private final class WholeBody: ResponseBodyWriter {
        var bytes = ByteBuffer()
        func write(_ buffer: ByteBuffer) { bytes.add(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }
}

extension OpenChannel.Owner {
    /// Returns the shard whose home is called first.
    fileprivate func shard(in homes: Homes) -> Shard {
        switch self {
        case .device(let device): Shard(of: device)
        case .userAgent(let userAgent, _): homes.shard(of: DeviceName.credential(userAgent.hash))
        }
    }
}

extension ServerFrame.Answer {
    init(to id: Int, _ refusal: Refusal) {
        let answer = HTTPAnswer(refusal)
        self.init(id: id, status: refusal.code.status, body: Array(answer.body.readableBytesView))
    }
}

/// The device of a session that sends requests. It is read once, because the session ends with the device.
final class RequestingDevice: Sendable {
    private let found = Mutex<Device?>(nil)

    func device(_ serial: DeviceSerial, in devices: DeviceRegistrar) async throws -> Device? {
        if let device = found.withLock({ $0 }), device.serial == serial { return device }
        let device = try await devices.find(serial)
        found.withLock { $0 = device }
        return device
    }
}
