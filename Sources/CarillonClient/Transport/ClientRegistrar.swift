import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What an install asks the server for by HTTP: to be registered, to be deleted, and where its sockets are. Each is one
/// request on a connection of its own, and is made seldom.
struct ClientRegistrar: Sendable {
    let server: WebAddress
    let app: String
    let clientKey: String?
    let transport: any ClientTransport

    enum Registration: Sendable {
        case registered(DeviceIdentity, server: String?)
        case failed(RegistrationFailure, PushError)
    }

    enum Location: Sendable {
        case located(ServerBody)
        case failed(RegistrationFailure, PushError)
    }

    enum Deletion: Sendable {
        case done
        case failed(RegistrationFailure, PushError)
    }

    /// A fresh secret for one registration or renewal, which may take several attempts.
    ///
    /// - Parameter bytes: A multiple of eight.
    static func makeSecret(bytes: Int = 32) -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64URL.encode((0..<bytes / 8).flatMap { _ in generator.next().bigEndianBytes })
    }

    /// - Parameter secret: the same for each attempt of one registration.
    func register(as secret: String) async -> Registration {
        guard let clientKey else {
            return .failed(
                .refused,
                PushError(
                    .clientKeyMissing,
                    "clientKey: the device is not registered, and only a key with the role client can register it."))
        }
        let body = RegisterDevice(app: app, registration: secret)
        switch await ask(.post, endpoint("/v1/devices"), bearer: clientKey, body: body, "to register the device") {
        case .failure(let fault): return .failed(fault.kind, fault.error)
        case .success(let answer):
            guard answer.status == 201 else {
                let fault = refusal(answer, "register the device", .registrationRefused)
                return .failed(fault.kind, fault.error)
            }
            return registered(answer)
        }
    }

    /// Asks the server who it is, and where its sockets are. It is told nothing.
    func locate() async -> Location {
        switch await ask(.get, endpoint("/v1/server"), bearer: nil, body: RegisterDevice?.none, "to ask for its sockets") {
        case .failure(let fault): return .failed(fault.kind, fault.error)
        case .success(let answer):
            do {
                guard answer.status == 200 else {
                    let fault = unavailable("answered with status \(answer.status) where it says who it is", answer, nil)
                    return .failed(fault.kind, fault.error)
                }
                let body = try JSONDecoder().decode(ServerBody.self, from: answer.body)
                if let fault = socketFault(body.socket) { return .failed(.refused, fault) }
                return .located(body)
            } catch {
                let fault = unavailable("does not say who it is", answer, error)
                return .failed(fault.kind, fault.error)
            }
        }
    }

    /// Deletes a device. One that the server does not know is deleted.
    func delete(_ farewell: Farewell) async -> Deletion {
        let base = farewell.server.hasSuffix("/") ? String(farewell.server.dropLast()) : farewell.server
        for credential in [farewell.credential, farewell.nextCredential].compactMap(\.self) {
            switch await ask(
                .delete, base + "/v1/device", bearer: credential, body: RegisterDevice?.none, "to delete the device")
            {
            case .failure(let fault): return .failed(fault.kind, fault.error)
            case .success(let answer):
                switch answer.status {
                case 204: return .done
                case 401: continue
                default:
                    let what = "answered the deletion of the device with status \(answer.status)"
                    let fault = unavailable(what, answer, nil)
                    return .failed(fault.kind, fault.error)
                }
            }
        }
        return .done
    }

    enum Renewal: Sendable {
        case done
        /// The server knows neither the credential nor the next one.
        case unknown
        /// The server is of a version before this.
        case unsupported
        case failed(RegistrationFailure, PushError)
    }

    /// Gives a device another credential, of a secret of ours; the one before is invalid from then on.
    func renewCredential(of identity: DeviceIdentity, to secret: String) async -> Renewal {
        let body = Data(JSONValue.object([.init(name: "secret", value: .string(secret))]).bytes)
        // An earlier attempt may have been taken, whose answer was lost.
        for credential in [identity.credential, identity.renewed(with: secret)] {
            switch await ask(
                .put, endpoint("/v1/device/credential"), bearer: credential, json: body, "to renew the credential")
            {
            case .failure(let fault): return .failed(fault.kind, fault.error)
            case .success(let answer):
                switch answer.status {
                case 204: return .done
                // A proxy's word is no reason to be nobody.
                case 401 where problem(answer)?.code == ErrorCode.credentialInvalid.rawValue: continue
                case 404, 405: return .unsupported
                default:
                    let fault = unavailable("answered the renewal with status \(answer.status)", answer, nil)
                    return .failed(fault.kind, fault.error)
                }
            }
        }
        return .unknown
    }

    enum Reported: Sendable {
        case taken(PushDeviceStatus, since: Int64)
        case failed(RegistrationFailure, PushError)
    }

    /// Says all that there is to say of the device.
    func report(_ report: PushDeviceMachine.Report, _ identity: DeviceIdentity) async -> Reported {
        let body = report.body
        switch await ask(.put, endpoint("/v1/device"), bearer: identity.credential, json: body, "to register the push token")
        {
        case .failure(let fault): return .failed(fault.kind, fault.error)
        case .success(let answer):
            guard answer.status == 200 else {
                let fault = refusal(answer, "register the push token", .registrationRefused)
                // Whose credential is refused is told so on the socket as well, and begins anew there.
                return .failed(answer.status == 401 ? .unavailable(retryAfter: nil) : fault.kind, fault.error)
            }
            guard let device = try? JSONDecoder().decode(ReportedDevice.self, from: answer.body),
                let status = PushDeviceStatus(device.status, device.reason),
                let since = Timestamp3339.milliseconds(device.statusAt)
            else {
                let fault = unavailable("answered the push token with a body that is not a device", answer, nil)
                return .failed(fault.kind, fault.error)
            }
            return .taken(status, since: since)
        }
    }

    private struct ReportedUser: Decodable {
        var user: String?
    }

    private struct ReportedDevice: Decodable {
        var status: String
        var statusAt: String
        var reason: String?
    }

    enum Said: Sendable {
        /// Whose the device is.
        case done(String?)
        case failed(RegistrationFailure, PushError)
    }

    /// Says whose the device is.
    func report(_ word: UserWord, _ identity: DeviceIdentity) async -> Said {
        let value = word.token.map { JSONValue.string($0) } ?? .null
        let body = Data(JSONValue.object([.init(name: "userToken", value: value)]).bytes)
        switch await ask(.patch, endpoint("/v1/device"), bearer: identity.credential, json: body, "to tell it of the user") {
        case .failure(let fault): return .failed(fault.kind, fault.error)
        case .success(let answer):
            if answer.status == 200 {
                return .done((try? JSONDecoder().decode(ReportedUser.self, from: answer.body))?.user)
            }
            let fault = refusal(answer, "take the user token", .userRefused)
            // Its key may be too young for the server to know.
            if answer.retryAfter != nil { return .failed(.unavailable(retryAfter: answer.retryAfter), fault.error) }
            // Whose credential is refused is told so on the socket as well, and begins anew there.
            let isOfCredential = answer.status == 401 && problem(answer)?.code != ErrorCode.userTokenInvalid.rawValue
            return .failed(isOfCredential ? .unavailable(retryAfter: nil) : fault.kind, fault.error)
        }
    }

    /// Has the server count the number on the app's icon from the beginning.
    func resetBadge(_ identity: DeviceIdentity) async throws(PushError) {
        switch await ask(
            .post, endpoint("/v1/device/badge/reset"), bearer: identity.credential, json: nil, "to reset the badge")
        {
        case .failure(let fault): throw fault.error
        case .success(let answer):
            guard answer.status == 204 else { throw refusal(answer, "reset the badge", .serverUnavailable).error }
        }
    }

    private func endpoint(_ path: String) -> String {
        (server.text.hasSuffix("/") ? String(server.text.dropLast()) : server.text) + path
    }

    // MARK: One request

    private struct Answer {
        var status: Int
        var retryAfter: Duration?
        var body: Data
    }

    private struct Fault: Error {
        var kind: RegistrationFailure
        var error: PushError
    }

    private func ask(
        _ method: WebQuestion.Method, _ url: String, bearer: String?, body: RegisterDevice?, _ purpose: String
    ) async -> Result<Answer, Fault> {
        await ask(method, url, bearer: bearer, json: body.flatMap { try? JSONEncoder().encode($0) }, purpose)
    }

    private func ask(
        _ method: WebQuestion.Method, _ url: String, bearer: String?, json: Data?, _ purpose: String
    ) async -> Result<Answer, Fault> {
        do {
            guard let address = WebAddress(http: url) else { throw TransportFault(.unreachable, nil) }
            let answer = try await transport.ask(
                WebQuestion(
                    method: method, address: address, bearer: bearer, json: json,
                    answerLimit: Limits.apiBodyBytes))
            return .success(Answer(status: answer.status, retryAfter: answer.wait, body: answer.body))
        } catch {
            let address = WebAddress(http: url)?.origin ?? url
            return .failure(
                Fault(
                    kind: .unreachable,
                    error: ConnectionFailure(error, at: address).error(.serverUnreachable, purpose)))
        }
    }

    // MARK: Answers

    private func registered(_ answer: Answer) -> Registration {
        do {
            let device = try JSONDecoder().decode(RegisteredDevice.self, from: answer.body)
            if let fault = socketFault(device.socket) { return .failed(.refused, fault) }
            return .registered(
                DeviceIdentity(device: device.id, credential: device.credential, socket: device.socket),
                server: device.server)
        } catch {
            let fault = unavailable("answered the registration with a body that is not a device", answer, error)
            return .failed(fault.kind, fault.error)
        }
    }

    private func refusal(
        _ answer: Answer, _ what: String, _ refused: PushError.Code
    ) -> Fault {
        do {
            let problem = try JSONDecoder().decode(ProblemDocument.self, from: answer.body)
            guard let code = ErrorCode(rawValue: problem.code), !code.isRetryable else {
                return unavailable("cannot \(what) now: \(problem.detail)", answer, nil)
            }
            return Fault(
                kind: .refused,
                error: PushError(
                    refused, "The server \(server.authority) refused to \(what) (\(code.rawValue)): \(problem.detail)",
                    serverCode: problem.code, appCode: problem.appCode))
        } catch {
            // Some other program answered: a proxy, a login page, a server that is starting.
            return unavailable("answered the registration with status \(answer.status)", answer, error)
        }
    }

    private func problem(_ answer: Answer) -> ProblemDocument? {
        try? JSONDecoder().decode(ProblemDocument.self, from: answer.body)
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

    private func unavailable(_ what: String, _ answer: Answer, _ cause: (any Error)?) -> Fault {
        Fault(
            kind: .unavailable(retryAfter: answer.retryAfter),
            error: PushError(.serverUnavailable, "The server \(server.authority) \(what).", cause: cause))
    }
}

extension PushDeviceMachine.Report {
    /// All of it: what is absent is not so.
    fileprivate var body: Data {
        guard case .object(var members) = details.json else { return Data() }
        members.append(.init(name: "platform", value: .string(PushPlatform.apple.rawValue)))
        members.append(.init(name: "pushToken", value: .string(token)))
        if let revision { members.append(.init(name: "revision", value: .string(revision))) }
        if let previousToken { members.append(.init(name: "previousToken", value: .string(previousToken))) }
        return Data(JSONValue.object(members).bytes)
    }
}
