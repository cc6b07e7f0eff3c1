import CarillonBasics

/// What the server may send over the socket. The cases after `pong` are for clients that said `"carillon": 1`.
package enum ServerFrame: Equatable, Sendable {
    case hello(Hello)
    case register(Registered)
    case unregister(channelID: String, status: Int)
    case notification(NotificationFrame)
    /// Carillon has no broadcasts: each identifier asked for is answered as unknown.
    case unknownBroadcasts([String])
    case pong
    case channelEvent(ChannelEventFrame)
    /// To clients that said `"carillon": 2`: the device was suspended, or resumed.
    case deviceStatus(DeviceStatusFrame)
    /// The answer to a ``ClientFrame/request(_:)``.
    case answer(Answer)
    /// To clients that said `"carillon": 4`: a subscription of the device fired.
    case fired(FiredFrame)
    /// To clients that said `"carillon": 5`: something for the audience that the device belongs to.
    case update(UpdateFrame)
    /// To clients that said `"carillon": 6`: something about a request of a service.
    case service(ServiceFrame)
    /// To the same: who provides services to the device's user is another by now.
    case providersChanged
    /// Everything that waited at the time of connecting has been sent.
    case caughtUp
    /// The server is about to close; come back after the delay.
    case goodbye(delaySeconds: Int)

    package struct Hello: Equatable, Sendable {
        package var uaid: String
        /// What only a Carillon client is told.
        package var carillon: Carillon?

        package init(uaid: String, carillon: Carillon? = nil) {
            self.uaid = uaid
            self.carillon = carillon
        }

        package struct Carillon: Equatable, Sendable {
            /// How long the server lets a connection be silent before it asks for a sign of life, in seconds.
            package var keepAliveSeconds: Int
            /// Who the server is; nil from one that does not say so.
            package var server: String?
            /// Another after the server was restored from a backup; nil from one that does not say so.
            package var history: String?
            /// The device's own name for what it said last of itself, as the server has it.
            package var deviceRevision: String?
            /// The same of the services that it offers.
            package var servicesRevision: String?
            /// The version of the extension that both speak.
            package var version: Int
            /// What the client asked for beside that version, and has.
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
        /// The request's.
        package var id: Int
        /// As in HTTP.
        package var status: Int
        /// JSON, as text, or bytes of ``contentType``; empty where there is none.
        package var body: [UInt8]
        /// What the body is, where it is not JSON: it is written in base64url then.
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

    /// - Parameter isCarillon: Whether the client said `"carillon"`: it gets the code of the refusal, too.
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
        /// The name of an ``ErrorCode``, of a refusal to a Carillon client. It may be one that this version does not know.
        package var code: String?
        /// When the same registration may succeed, in seconds.
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
    /// How a body is written that is not JSON.
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

    /// The text of the frame.
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
