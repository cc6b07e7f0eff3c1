import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The HTTP requests of a device for its registration, its deletion, its reports, and the address of the server's sockets. Each
/// request uses a connection of its own, and is rare.
struct ClientRegistrar: Sendable {
    let server: WebAddress
    let app: String
    let clientKey: String?
    let api: ServerAPI

    enum Answer<Value: Sendable>: Sendable {
        case done(Value)
        case failed(RegistrationFailure, PushError)
    }

    struct Registered: Sendable {
        var identity: DeviceIdentity
        var server: String?
        /// The server answers each repetition with the same credential.
        var isRepeatable: Bool
    }

    /// A fresh secret for one registration or renewal, which may take several attempts.
    ///
    /// - Parameter bytes: A multiple of eight.
    static func makeSecret(bytes: Int = 32) -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64URL.encode((0..<bytes / 8).flatMap { _ in generator.next().bigEndianBytes })
    }

    /// - Parameter secret: The same for each attempt of one registration.
    func register(as secret: String) async -> Answer<Registered> {
        switch await requestDevice(as: secret) {
        case .done(let device):
            if let error = socketFault(device.socket) { return .failed(.refused, error) }
            let identity = DeviceIdentity(device: device.id, credential: device.credential, socket: device.socket)
            return .done(
                Registered(identity: identity, server: device.server, isRepeatable: device.repeatable == true))
        case .failed(let failure, let error): return .failed(failure, error)
        }
    }

    /// Registers a device with the configured server, and returns the device. The socket address is not checked.
    private func requestDevice(as secret: String) async -> Answer<RegisteredDevice> {
        guard let clientKey else {
            return .failed(
                .refused,
                PushError(
                    .clientKeyMissing,
                    "clientKey: the device is not registered, and only a key with the role client can register it."))
        }
        let body: JSONValue = ["app": .string(app), "registration": .string(secret)]
        return await send(
            .post, "/v1/devices", bearer: clientKey, json: Data(body.bytes), "to register the device",
            expecting: .json(201, as: RegisteredDevice.self)
        ).answer { fault($0, $1, "register the device", .registrationRefused) }
    }

    /// Requests the server's id and the address of its sockets. The request contains no credential and no body.
    func locate() async -> Answer<ServerBody> {
        let answer = await send(
            .get, "/v1/server", bearer: nil, "to ask for its sockets", expecting: .json(200, as: ServerBody.self)
        ).answer { unavailable("answered with status \($0.status) where it says who it is", $1) }
        if case .done(let body) = answer, let error = socketFault(body.socket) { return .failed(.refused, error) }
        return answer
    }

    /// Deletes a device. If the server refuses its credentials (`credential_invalid`), the device is deleted already, unless the
    /// deregistration has the secret of a registration. In that case a server of an earlier version may have replaced the
    /// credential, and the registration is repeated for a valid one. A refusal of the repetition does not show that the device is
    /// deleted.
    func delete(_ deregistration: Deregistration) async -> Answer<Void> {
        for credential in [deregistration.credential, deregistration.nextCredential].compactMap(\.self) {
            if let end = await delete(with: credential, at: deregistration.server) { return end }
        }
        guard let secret = deregistration.registration else { return .done(()) }
        // The client key is for the configured server only. Another server removes the device, which never connected, when it is
        // idle.
        guard ServerAPI.base(deregistration.server) == api.base else { return .done(()) }
        switch await requestDevice(as: secret) {
        case .done(let device):
            if let end = await delete(with: device.credential, at: deregistration.server) { return end }
            let fault = unavailable("refused the credential of a repeated registration", nil)
            return .failed(fault.kind, fault.error)
        case .failed(.refused, let error): return .failed(.unavailable(retryAfter: nil), error)
        case .failed(let failure, let error): return .failed(failure, error)
        }
    }

    /// - Returns: Nil if the server refuses the credential.
    private func delete(with credential: String, at address: String) async -> Answer<Void>? {
        let reply = await send(
            .delete, "/v1/device", at: address, bearer: credential, "to delete the device", expecting: .noContent)
        if case .refused(let refusal, _) = reply, refusal.code == .credentialInvalid { return nil }
        return reply.answer { unavailable("answered the deletion of the device with status \($0.status)", $1) }
    }

    enum Renewal: Sendable {
        case done
        /// The server accepts neither the credential nor the next one.
        case unknown
        /// The server's version does not support renewals.
        case unsupported
        case failed(RegistrationFailure, PushError)
    }

    /// Replaces the credential of a device by one that is derived from a secret. The former credential is invalid after that.
    func renewCredential(of identity: DeviceIdentity, to secret: String) async -> Renewal {
        let body = Data(JSONValue.object([.init(name: "secret", value: .string(secret))]).bytes)
        // An earlier attempt may have succeeded, and its answer was lost.
        for credential in [identity.credential, identity.renewed(with: secret)] {
            let reply = await send(
                .put, "/v1/device/credential", bearer: credential, json: body, "to renew the credential",
                expecting: .noContent)
            switch reply {
            case .done: return .done
            case .failed(let fault): return .failed(fault.kind, fault.error)
            case .refused(let refusal, let wait):
                switch refusal.code {
                case .credentialInvalid: continue
                case .notFound, .methodNotAllowed: return .unsupported
                default:
                    let fault = unavailable("answered the renewal with status \(refusal.status)", wait)
                    return .failed(fault.kind, fault.error)
                }
            }
        }
        return .unknown
    }

    /// Reports the push token and all details of the device. Returns the status of the device, and since when the device has it.
    func report(
        _ report: PushDeviceMachine.Report, _ identity: DeviceIdentity
    ) async -> Answer<(status: PushDeviceStatus, since: Int64)> {
        await send(
            .put, "/v1/device", bearer: identity.credential, json: report.body, "to register the push token",
            expecting: .content { (answer: WebAnswer) -> (status: PushDeviceStatus, since: Int64)? in
                guard let device = answer.response().json(200, as: ReportedDevice.self),
                    let status = PushDeviceStatus(device.status, device.reason),
                    let since = Timestamp3339.milliseconds(device.statusAt)
                else { return nil }
                return (status, since)
            }
        ).answer { refusal, wait in
            let fault = fault(refusal, wait, "register the push token", .registrationRefused)
            return refusal.status == 401 ? fault.ofCredential : fault
        }
    }

    private struct ReportedUser: Decodable {
        var id: String
        var user: String?
    }

    private struct ReportedDevice: Decodable {
        var status: String
        var statusAt: String
        var reason: String?
    }

    /// Reports the user of the device. Returns the user that the device has.
    func report(_ userChange: UserChange, _ identity: DeviceIdentity) async -> Answer<String?> {
        let value = userChange.token.map { JSONValue.string($0) } ?? .null
        let body = Data(JSONValue.object([.init(name: "userToken", value: value)]).bytes)
        return await send(
            .patch, "/v1/device", bearer: identity.credential, json: body, "to report the user to it",
            expecting: .content { (answer: WebAnswer) -> String?? in
                answer.response().json(200, as: ReportedUser.self).map(\.user)
            }
        ).answer { refusal, wait in
            let fault = fault(refusal, wait, "take the user token", .userRefused)
            // With a wait, the key of the token may be too new for the server.
            if wait != nil { return Fault(kind: .unavailable(retryAfter: wait), error: fault.error) }
            return refusal.status == 401 && refusal.code != .userTokenInvalid ? fault.ofCredential : fault
        }
    }

    /// Requests the server to start the number on the app's icon from the beginning.
    func resetBadge(_ identity: DeviceIdentity) async throws(PushError) {
        let answer = await send(
            .post, "/v1/device/badge/reset", bearer: identity.credential, "to reset the badge", expecting: .noContent
        ).answer { fault($0, $1, "reset the badge", .serverUnavailable) }
        if case .failed(_, let error) = answer { throw error }
    }

    // MARK: One request

    private struct Fault {
        var kind: RegistrationFailure
        var error: PushError

        /// The fault of a refused credential. The device is also notified on the socket, and registers again after that.
        var ofCredential: Fault { Fault(kind: .unavailable(retryAfter: nil), error: error) }
    }

    private enum Reply<Value: Sendable>: Sendable {
        case done(Value)
        case refused(ServerRefusal, wait: Duration?)
        /// There was no response from the server.
        case failed(Fault)

        func answer(_ refused: (ServerRefusal, Duration?) -> Fault) -> Answer<Value> {
            let fault: Fault
            switch self {
            case .done(let value): return .done(value)
            case .failed(let failed): fault = failed
            case .refused(let refusal, let wait): fault = refused(refusal, wait)
            }
            return .failed(fault.kind, fault.error)
        }
    }

    /// - Parameter address: The address of a server; nil for the configured one.
    private func send<Value>(
        _ method: WebRequest.Method, _ path: String, at address: String? = nil, bearer: String?, json: Data? = nil,
        _ purpose: String, expecting success: SuccessForm<Value>
    ) async -> Reply<Value> {
        let api = address.map(api.at) ?? api
        guard let request = api.request(method, path, bearer: bearer, json: json) else {
            return .failed(unreachable(ConnectionFailure(TransportFault(.unreachable, nil), at: api.base), purpose))
        }
        switch await api.send(request, expecting: success) {
        case .success(let value): return .done(value)
        case .refused(let refusal, let wait): return .refused(refusal, wait: wait)
        case .foreign(let error, let wait):
            return .failed(Fault(kind: .unavailable(retryAfter: wait), error: error))
        case .unreachable(let failure): return .failed(unreachable(failure, purpose))
        }
    }

    // MARK: Faults

    private func unreachable(_ failure: ConnectionFailure, _ purpose: String) -> Fault {
        Fault(kind: .unreachable, error: failure.error(.serverUnreachable, purpose))
    }

    private func fault(
        _ refusal: ServerRefusal, _ wait: Duration?, _ what: String, _ refused: PushError.Code
    ) -> Fault {
        guard let problem = refusal.problem, !(refusal.code?.isRetryable ?? refusal.isTemporary) else {
            return unavailable("cannot \(what) now: \(refusal.detail)", wait)
        }
        return Fault(
            kind: .refused,
            error: PushError(
                refused, "The server \(server.authority) refused to \(what) (\(problem.code)): \(problem.detail)",
                serverCode: problem.code, appCode: problem.appCode))
    }

    private func socketFault(_ text: String) -> PushError? {
        guard let socket = WebAddress(webSocket: text) else {
            return PushError(
                .protocolViolated,
                "The server \(server.authority) gave a socket address that is not a ws: or wss: URL.")
        }
        guard socket.isSecure || !server.isSecure else {
            return PushError(
                .protocolViolated,
                "The server \(server.authority) is reached by https: but gave a ws: socket address; its public URL must be https:."
            )
        }
        return nil
    }

    private func unavailable(_ what: String, _ wait: Duration?) -> Fault {
        Fault(
            kind: .unavailable(retryAfter: wait),
            error: PushError(.serverUnavailable, "The server \(server.authority) \(what)."))
    }
}

extension PushDeviceMachine.Report {
    /// The complete description of the device. The server clears details that are left out.
    fileprivate var body: Data {
        guard case .object(var members) = details.json else { return Data() }
        members.append(.init(name: "platform", value: .string(PushPlatform.apple.rawValue)))
        members.append(.init(name: "pushToken", value: .string(token)))
        if let revision { members.append(.init(name: "revision", value: .string(revision))) }
        if let previousToken { members.append(.init(name: "previousToken", value: .string(previousToken))) }
        return Data(JSONValue.object(members).bytes)
    }
}
