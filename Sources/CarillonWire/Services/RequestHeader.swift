package import CarillonBasics

/// The part of a service request that the server can read.
package struct RequestHeader: Equatable, Sendable {
    /// The app that should come to the foreground. The server passes this value on and does not act on it.
    package enum Foreground: String, CaseIterable, Sendable {
        case preferMe
        case preferPeer
        case none
    }

    package var id: ServiceRequestID
    package var service: ServiceID
    package var version: ServiceVersion
    package var method: MethodName
    /// The time within which the provider must answer, in seconds by the server's clock.
    package var deadlineSeconds: Int64
    package var foreground: Foreground
    /// The user of the requesting device, if the provider is a backend device. The server sets this value.
    package var user: String?

    /// The AppKinetics service that requests an app to come to the foreground.
    package static let frontService = "com.good.gd.icc"
    package static let frontVersion = "1.0.0.0"
    package static let frontMethod = "FRONT_REQ"

    package static let defaultDeadlineSeconds: Int64 = 3600
    package static let longestDeadlineSeconds: Int64 = 7 * 86_400

    package init(
        id: ServiceRequestID, service: ServiceID, version: ServiceVersion, method: MethodName,
        deadlineSeconds: Int64 = RequestHeader.defaultDeadlineSeconds, foreground: Foreground = .none
    ) {
        self.id = id
        self.service = service
        self.version = version
        self.method = method
        self.deadlineSeconds = deadlineSeconds
        self.foreground = foreground
    }

    package var isOfFrontService: Bool { service.text == Self.frontService }

    /// The names of the members in a posted request.
    package static let memberNames: Set = ["id", "service", "version", "method", "deadline", "foreground"]

    package init(_ json: JSONValue) throws(Refusal) {
        func text(_ name: String) throws(Refusal) -> String {
            guard let text = try json.textMember(name) else {
                throw Refusal(.fieldMissing, "The field \"\(name)\" is missing.")
            }
            return text
        }
        guard let id = ServiceRequestID(try text("id")) else {
            throw Refusal(.fieldInvalid, "The field \"id\" must be 32 hexadecimal digits.")
        }
        guard let method = MethodName(try text("method")) else {
            throw Refusal(.fieldInvalid, "The field \"method\" must be a letter and up to 63 letters, digits and \"_\".")
        }
        guard case .integer(let deadline)? = json["deadline"] ?? .integer(Int(Self.defaultDeadlineSeconds)),
            (1...Self.longestDeadlineSeconds).contains(Int64(deadline))
        else {
            throw Refusal(
                .fieldInvalid, "The field \"deadline\" must be a number of seconds, 1 to \(Self.longestDeadlineSeconds).")
        }
        guard let foreground = Foreground(rawValue: try json.textMember("foreground") ?? "none") else {
            throw Refusal(.fieldInvalid, "The field \"foreground\" can be: preferMe, preferPeer, none.")
        }
        self.init(
            id: id, service: try ServiceID.checked(try text("service")),
            version: try ServiceVersion.checked(try text("version")), method: method, deadlineSeconds: Int64(deadline),
            foreground: foreground)
        user = try json.textMember("user")
    }

    package var members: [JSONValue.Member] {
        [
            .init(name: "id", value: .string(id.description)), .init(name: "service", value: .string(service.text)),
            .init(name: "version", value: .string(version.text)), .init(name: "method", value: .string(method.text)),
            .init(name: "deadline", value: .integer(Int(deadlineSeconds))),
            .init(name: "foreground", value: .string(foreground.rawValue)),
        ] + (user.map { [.init(name: "user", value: .string($0))] } ?? [])
    }
}
