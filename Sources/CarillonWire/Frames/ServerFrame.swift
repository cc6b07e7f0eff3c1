import CarillonBasics

/// The frames that the server can send over the socket. The cases after `pong` are for clients that sent `"carillon": 1` or
/// later.
package enum ServerFrame: Equatable, Sendable {
    case hello(Hello)
    case register(Registered)
    case unregister(channelID: String, status: Int)
    case notification(NotificationFrame)
    /// Carillon has no broadcasts, so the server answers each requested identifier as unknown.
    case unknownBroadcasts([String])
    case pong
    case channelEvent(ChannelEventFrame)
    /// For clients that sent `"carillon": 2` or later: the device was suspended or resumed.
    case deviceStatus(DeviceStatusFrame)
    /// The answer to a ``ClientFrame/request(_:)``.
    case answer(Answer)
    /// For clients that sent `"carillon": 4` or later: an item subscription of the device fired.
    case fired(FiredFrame)
    /// For clients that sent `"carillon": 5` or later: an audience update for the device.
    case update(UpdateFrame)
    /// For clients that sent `"carillon": 6` or later: an event of a service request.
    case service(ServiceFrame)
    /// For the same clients: the providers of services for the device's user changed.
    case providersChanged
    /// All envelopes that were waiting when the client connected have been sent.
    case caughtUp
    /// The server is about to close the socket. The client should reconnect after the delay.
    case goodbye(delaySeconds: Int)

    package struct Hello: Equatable, Sendable {
        package var uaid: String
        /// Members for Carillon clients only.
        package var carillon: Carillon?

        package init(uaid: String, carillon: Carillon? = nil) {
            self.uaid = uaid
            self.carillon = carillon
        }

        package struct Carillon: Equatable, Sendable {
            /// The time without data after which the server sends a keep-alive, in seconds.
            package var keepAliveSeconds: Int
            /// The server's identifier; nil from a server that does not send it.
            package var server: String?
            /// Changes when the server is restored from a backup; nil from a server that does not send it.
            package var history: String?
            /// The device's revision of the description that the server has.
            package var deviceRevision: String?
            /// The device's revision of the service offers that the server has.
            package var servicesRevision: String?
            /// The version of the extension that both sides support.
            package var version: Int
            /// The features that the client requested beyond this version and that the server supports.
            package var also: [String]

            package init(
                version: Int = 1, keepAliveSeconds: Int, server: String? = nil, history: String? = nil,
                deviceRevision: String? = nil, servicesRevision: String? = nil, also: [String] = []
            ) {
                self.version = version
                self.keepAliveSeconds = keepAliveSeconds
                self.server = server
                self.history = history
                self.deviceRevision = deviceRevision
                self.servicesRevision = servicesRevision
                self.also = also
            }
        }
    }

    package struct Answer: Equatable, Sendable {
        /// The number of the request.
        package var id: Int
        /// The HTTP status.
        package var status: Int
        /// JSON text, or bytes of ``contentType``; empty if the answer has no body.
        package var body: [UInt8]
        /// The type of a body that is not JSON. Such a body is written in base64url.
        package var contentType: String?

        package init(id: Int, status: Int, body: [UInt8], contentType: String? = nil) {
            self.id = id
            self.status = status
            self.body = body
            self.contentType = contentType
        }
    }

    package static func registered(channelID: String, endpoint: String) -> ServerFrame {
        .register(Registered(channelID: channelID, status: 200, pushEndpoint: endpoint))
    }

    /// - Parameter isCarillon: Whether the client sent `"carillon"`. If so, the frame also contains the error code.
    package static func registrationRefused(channelID: String, _ refusal: Refusal, isCarillon: Bool) -> ServerFrame {
        var answer = Registered(channelID: channelID, status: refusal.code.registrationStatus)
        if isCarillon {
            answer.code = refusal.code.rawValue
            answer.retryAfterSeconds = refusal.retryAfterSeconds
        }
        return .register(answer)
    }

    package static func unregistered(channelID: String) -> ServerFrame { .unregister(channelID: channelID, status: 200) }

    package static func unregistrationFailed(channelID: String) -> ServerFrame {
        .unregister(channelID: channelID, status: 500)
    }

    package struct Registered: Equatable, Sendable {
        package var channelID: String
        package var status: Int
        package var pushEndpoint: String?
        /// The name of an ``ErrorCode``, in a refusal to a Carillon client. This version may not know the code.
        package var code: String?
        /// The delay after which the same registration can succeed, in seconds.
        package var retryAfterSeconds: Int?

        package init(
            channelID: String, status: Int, pushEndpoint: String? = nil, code: String? = nil,
            retryAfterSeconds: Int? = nil
        ) {
            self.channelID = channelID
            self.status = status
            self.pushEndpoint = pushEndpoint
            self.code = code
            self.retryAfterSeconds = retryAfterSeconds
        }
    }
}

extension ServerFrame.Answer {
    /// The encoding of a body that is not JSON.
    static let base64URL = "base64url"
}

extension ServerFrame {
    /// The frame's `messageType`.
    package var typeName: String {
        switch self {
        case .hello: "hello"
        case .register: "register"
        case .unregister: "unregister"
        case .notification: "notification"
        case .unknownBroadcasts: "broadcast"
        case .pong: "pong"
        case .channelEvent: "channel"
        case .deviceStatus: "device"
        case .answer: "answer"
        case .fired: "fired"
        case .update: "update"
        case .service: "service"
        case .providersChanged: "providers"
        case .caughtUp: "caughtUp"
        case .goodbye: "goodbye"
        }
    }

    /// The frame as JSON text.
    package var text: [UInt8] {
        JSONWriter.object(capacity: capacity) { json in
            switch self {
            case .hello(let hello):
                json.member("messageType", "hello")
                json.member("uaid", hello.uaid)
                json.member("status", 200)
                json.member("use_webpush", true)
                json.member("broadcasts") { _ in }
                if let carillon = hello.carillon {
                    json.member("carillon", carillon.version)
                    json.member("keepAlive", carillon.keepAliveSeconds)
                    json.member("server", carillon.server)
                    json.member("history", carillon.history)
                    json.member("deviceRevision", carillon.deviceRevision)
                    json.member("servicesRevision", carillon.servicesRevision)
                    if !carillon.also.isEmpty { json.member("also", carillon.also) }
                }
            case .register(let registered):
                json.member("messageType", "register")
                json.member("channelID", registered.channelID)
                json.member("status", registered.status)
                json.member("pushEndpoint", registered.pushEndpoint)
                json.member("code", registered.code)
                json.member("retryAfter", registered.retryAfterSeconds)
            case .unregister(let channelID, let status):
                json.member("messageType", "unregister")
                json.member("channelID", channelID)
                json.member("status", status)
            case .notification(let notification):
                notification.write(to: &json)
            case .unknownBroadcasts(let ids):
                json.member("messageType", "broadcast")
                json.member("broadcasts") { json in
                    json.member("errors") { json in
                        for id in ids { json.member(untrusted: id, "Broadcast not found") }
                    }
                }
            case .pong:
                break
            case .channelEvent(let event):
                event.write(to: &json)
            case .deviceStatus(let status):
                json.member("messageType", "device")
                json.member("version", status.version)
                json.member("event", status.status)
                json.member("reason", status.reason)
                json.member("at", status.at)
            case .answer(let answer):
                json.member("messageType", "answer")
                json.member("id", answer.id)
                json.member("status", answer.status)
                if answer.body.isEmpty { break }
                if let contentType = answer.contentType {
                    json.member("body", base64URL: answer.body)
                    json.member("encoding", Answer.base64URL)
                    json.member("contentType", contentType)
                } else {
                    json.member("body", text: answer.body)
                }
            case .fired(let fired):
                json.member("messageType", "fired")
                json.member("version", fired.version)
                json.member("fired", text: fired.body)
            case .update(let update):
                json.member("messageType", "update")
                json.member("version", update.version)
                json.member("attempt", update.attempt)
                json.member("entry", update.entry)
                json.member("startsIn", update.startsIn)
                json.member("endsIn", update.endsIn)
                json.member("update", text: update.body)
            case .service(let service):
                json.member("messageType", "service")
                json.member("version", service.version)
                json.member("service", text: service.body)
            case .providersChanged:
                json.member("messageType", "providers")
            case .caughtUp:
                json.member("messageType", "caughtUp")
            case .goodbye(let delaySeconds):
                json.member("messageType", "goodbye")
                json.member("delay", delaySeconds)
            }
        }
    }

    private var capacity: Int {
        if case .fired(let fired) = self { return 160 + fired.body.count }
        if case .update(let update) = self { return 160 + update.body.count }
        if case .service(let service) = self { return 160 + service.body.count }
        if case .answer(let answer) = self {
            return 160 + (answer.contentType == nil ? answer.body.count : Base64URL.encodedLength(of: answer.body.count))
        }
        guard case .notification(let notification) = self else { return 160 }
        return 192 + Base64URL.encodedLength(of: notification.body.count)
            + (notification.coding?.encryption?.utf8.count ?? 0) + (notification.coding?.cryptoKey?.utf8.count ?? 0)
    }
}
