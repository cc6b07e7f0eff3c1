import CarillonBasics

extension ServerFrame {
    /// Why a text from a server is not a valid frame.
    package struct Fault: Error, Equatable {
        package var reason: String
    }

    /// Reads a frame on the client's side. Returns nil for a type that this version does not know.
    package static func parse(_ text: some Sequence<UInt8>) throws(Fault) -> ServerFrame? {
        guard let json = JSONValue(parsing: Array(text)), case .object = json else {
            throw Fault(reason: "a frame of the server is no JSON object")
        }
        return try Members(json: json).frame()
    }

    private struct Members {
        let json: JSONValue

        func frame() throws(Fault) -> ServerFrame? {
            switch try text("messageType") {
            case nil: return .pong
            case "hello": return .hello(Hello(uaid: try required(text, "uaid"), carillon: try carillon()))
            case "register":
                return .register(
                    Registered(
                        channelID: try required(text, "channelID"), status: try required(number, "status"),
                        pushEndpoint: try text("pushEndpoint"), code: try text("code"),
                        retryAfterSeconds: try number("retryAfter")))
            case "unregister":
                return .unregister(channelID: try required(text, "channelID"), status: try required(number, "status"))
            case "notification":
                guard let body = Base64URL.decode(try text("data") ?? "") else {
                    throw Fault(reason: "data is not base64url")
                }
                return .notification(
                    NotificationFrame(
                        channelID: try required(text, "channelID"), version: try required(text, "version"), body: body,
                        coding: try coding()))
            case "channel":
                return .channelEvent(
                    ChannelEventFrame(
                        channelID: try required(text, "channelID"), version: try required(text, "version"),
                        event: try channelEvent()))
            case "device":
                return .deviceStatus(
                    DeviceStatusFrame(
                        version: try required(text, "version"), status: try required(text, "event"),
                        reason: try text("reason"), at: Int64(try required(number, "at"))))
            case "answer": return .answer(try answer())
            case "fired":
                return .fired(
                    FiredFrame(version: try required(text, "version"), body: try required(value, "fired").bytes))
            case "update":
                return .update(
                    UpdateFrame(
                        version: try required(text, "version"), attempt: try required(number, "attempt"),
                        entry: try required(number, "entry"), body: try required(value, "update").bytes,
                        startsIn: try number("startsIn"), endsIn: try number("endsIn")))
            case "service":
                return .service(
                    ServiceFrame(version: try required(text, "version"), body: try required(value, "service").bytes))
            case "providers": return .providersChanged
            case "caughtUp": return .caughtUp
            case "goodbye": return .goodbye(delaySeconds: max(0, try number("delay") ?? 0))
            default: return nil
            }
        }

        private func answer() throws(Fault) -> Answer {
            let (id, status) = (try required(number, "id"), try required(number, "status"))
            switch try text("encoding") {
            case nil: return Answer(id: id, status: status, body: try value("body")?.bytes ?? [])
            case Answer.base64URL?:
                guard let body = Base64URL.decode(try required(text, "body")) else {
                    throw Fault(reason: "body is not base64url")
                }
                return Answer(id: id, status: status, body: body, contentType: try required(text, "contentType"))
            case let name?: throw Fault(reason: "the encoding \(name.prefix(60)) is unknown")
            }
        }

        private func carillon() throws(Fault) -> Hello.Carillon? {
            guard let version = try number("carillon") else { return nil }
            var also: [String] = []
            if case .array(let names)? = json["also"] {
                also = names.compactMap { if case .string(let name) = $0 { name } else { nil } }
            }
            return Hello.Carillon(
                version: version, keepAliveSeconds: try number("keepAlive") ?? 0, server: try text("server"),
                history: try text("history"), deviceRevision: try text("deviceRevision"),
                servicesRevision: try text("servicesRevision"), also: also)
        }

        private func channelEvent() throws(Fault) -> ChannelEventFrame.Event {
            switch try required(text, "event") {
            case "closed": .closed
            case "error": .error(code: try required(number, "code"))
            case "pingFailed": .pingFailed(code: try required(number, "code"))
            case "recovered": .recovered
            case let name: .other(name)
            }
        }

        private func coding() throws(Fault) -> ContentCoding? {
            guard let headers = try value("headers") else { return nil }
            let members = Members(json: headers)
            guard let name = ContentCoding.Name(rawValue: try members.required(members.text, "encoding")) else {
                throw Fault(reason: "encoding is unknown")
            }
            return ContentCoding(
                name, encryption: try members.text("encryption"), cryptoKey: try members.text("crypto_key"))
        }

        // MARK: Members

        private func value(_ name: String) throws(Fault) -> JSONValue? {
            let value = json[name]
            return value == .null ? nil : value
        }

        private func text(_ name: String) throws(Fault) -> String? {
            switch json[name] {
            case nil, .null: return nil
            case .string(let text): return text
            default: throw Fault(reason: "\(name) is no text")
            }
        }

        private func number(_ name: String) throws(Fault) -> Int? {
            switch json[name] {
            case nil, .null: return nil
            case .integer(let number): return number
            default: throw Fault(reason: "\(name) is no whole number")
            }
        }

        private func required<Value>(
            _ read: (String) throws(Fault) -> Value?, _ name: String
        ) throws(Fault) -> Value {
            guard let value = try read(name) else { throw Fault(reason: "\(name) is missing") }
            return value
        }
    }
}
