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

/// Registers this install as a device of its app: one request, once in its life.
struct DeviceRegistrar: Sendable {
    let server: WebAddress
    let app: String
    let clientKey: String
    let tls: TLSConfiguration
    let timeout: Duration

    enum Outcome: Sendable {
        case registered(DeviceIdentity)
        case failed(RegistrationFailure, PushError)
    }

    func register() async -> Outcome {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls,
            // The key is for the configured server only.
            redirectConfiguration: .disallow,
            timeout: .init(connect: TimeAmount(timeout), read: TimeAmount(timeout)))
        configuration.httpVersion = .http1Only
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let outcome = await register(with: client)
        do {
            try await client.shutdown()
        } catch {
            // Nothing of the client is used again; its connections end with it.
        }
        return outcome
    }

    private func register(with client: HTTPClient) async -> Outcome {
        do {
            var request = HTTPClientRequest(url: endpoint)
            request.method = .POST
            request.headers.add(name: "Authorization", value: "Bearer \(clientKey)")
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(RegisterDevice(app: app))))
            let response = try await client.execute(request, timeout: TimeAmount(timeout))
            let body = try await response.body.collect(upTo: Limits.apiBodyBytes)
            return outcome(of: response, body: Data(body.readableBytesView))
        } catch {
            return .failed(
                .unreachable,
                PushError(
                    .serverUnreachable, "The server \(server.authority) cannot be reached to register the device.",
                    cause: error))
        }
    }

    private var endpoint: String {
        (server.text.hasSuffix("/") ? String(server.text.dropLast()) : server.text) + "/v1/devices"
    }

    private func outcome(of response: HTTPClientResponse, body: Data) -> Outcome {
        let status = Int(response.status.code)
        if status == 201 {
            do {
                return registered(try JSONDecoder().decode(RegisteredDevice.self, from: body))
            } catch {
                return unavailable("answered the registration with a body that is not a device", response, error)
            }
        }
        do {
            let problem = try JSONDecoder().decode(ProblemDocument.self, from: body)
            guard let code = ErrorCode(rawValue: problem.code), !code.isRetryable else {
                return unavailable("cannot register the device now: \(problem.detail)", response, nil)
            }
            return .failed(
                .refused,
                PushError(
                    .registrationRefused,
                    "The server \(server.authority) refused to register the device (\(code.rawValue)): \(problem.detail)"
                ))
        } catch {
            // Some other program answered: a proxy, a login page, a server that is starting.
            return unavailable("answered the registration with status \(status)", response, error)
        }
    }

    private func registered(_ device: RegisteredDevice) -> Outcome {
        guard let socket = WebAddress(webSocket: device.socket) else {
            return .failed(
                .refused,
                PushError(
                    .protocolViolated,
                    "The server \(server.authority) gave a socket address that is not a ws: or wss: URL."))
        }
        guard socket.isSecure || !server.isSecure else {
            return .failed(
                .refused,
                PushError(
                    .protocolViolated,
                    "The server \(server.authority) is reached by https: but gave a ws: socket address; its public URL must be https:."
                ))
        }
        return .registered(DeviceIdentity(device: device.id, credential: device.credential, socket: device.socket))
    }

    private func unavailable(_ what: String, _ response: HTTPClientResponse, _ cause: (any Error)?) -> Outcome {
        let seconds = response.headers.first(name: "Retry-After").flatMap { Int($0) }
        return .failed(
            .unavailable(retryAfter: seconds.map { .seconds(max(0, min($0, 86_400))) }),
            PushError(.serverUnavailable, "The server \(server.authority) \(what).", cause: cause))
    }
}
