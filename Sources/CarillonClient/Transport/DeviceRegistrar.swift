import AsyncHTTPClient
import CarillonWire
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What an install asks the server for by HTTP: to be registered, to be deleted, and where its sockets are. Each is one
/// request on a connection of its own, and is made seldom.
struct DeviceRegistrar: Sendable {
    let server: WebAddress
    let app: String
    let clientKey: String?
    let tls: TLSConfiguration
    let timeout: Duration

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

    /// A fresh secret for one registration, which may take several attempts.
    static func makeSecret() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64URL.encode((0..<4).flatMap { _ in generator.next().bigEndianBytes })
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
        switch await ask(.POST, endpoint("/v1/devices"), bearer: clientKey, body: body, "to register the device") {
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
        switch await ask(.GET, endpoint("/v1/server"), bearer: nil, body: RegisterDevice?.none, "to ask for its sockets") {
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
        switch await ask(
            .DELETE, base + "/v1/device", bearer: farewell.credential, body: RegisterDevice?.none, "to delete the device")
        {
        case .failure(let fault): return .failed(fault.kind, fault.error)
        case .success(let answer):
            if [204, 401].contains(answer.status) { return .done }
            let fault = unavailable("answered the deletion of the device with status \(answer.status)", answer, nil)
            return .failed(fault.kind, fault.error)
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
        _ method: HTTPMethod, _ url: String, bearer: String?, body: RegisterDevice?, _ purpose: String
    ) async -> Result<Answer, Fault> {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls,
            // The secret is for the configured server only.
            redirectConfiguration: .disallow,
            timeout: .init(connect: TimeAmount(timeout), read: TimeAmount(timeout)))
        configuration.httpVersion = .http1Only
        // A connection that is refused is the answer; when to try again is the session's business.
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let answer: Result<Answer, Fault>
        do {
            var request = HTTPClientRequest(url: url)
            request.method = method
            if let bearer { request.headers.add(name: "Authorization", value: "Bearer \(bearer)") }
            if let body {
                request.headers.add(name: "Content-Type", value: "application/json")
                request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(body)))
            }
            let response = try await client.execute(request, timeout: TimeAmount(timeout))
            let data = try await response.body.collect(upTo: Limits.apiBodyBytes)
            let seconds = response.headers.first(name: "Retry-After").flatMap { Int($0) }
            answer = .success(
                Answer(
                    status: Int(response.status.code), retryAfter: seconds.map { .seconds(max(0, min($0, 86_400))) },
                    body: Data(data.readableBytesView)))
        } catch {
            answer = .failure(
                Fault(
                    kind: .unreachable,
                    error: PushError(
                        .serverUnreachable, "The server \(server.authority) cannot be reached \(purpose).", cause: error)))
        }
        do {
            try await client.shutdown()
        } catch {
            // Nothing of the client is used again; its connections end with it.
        }
        return answer
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
                    refused, "The server \(server.authority) refused to \(what) (\(code.rawValue)): \(problem.detail)"))
        } catch {
            // Some other program answered: a proxy, a login page, a server that is starting.
            return unavailable("answered the registration with status \(answer.status)", answer, error)
        }
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
