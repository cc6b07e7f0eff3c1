import ArgumentParser
import CarillonAPNs
import CarillonCore
import Foundation
import Logging

/// The options that select the push service and the connection to it.
struct APNsEndpointOptions: ParsableArguments {
    @Flag(help: "Use Apple's service for apps that were built for development.")
    var sandbox = false
    @Flag(help: "Use Apple's service for apps of the App Store, TestFlight and enterprises. This is the default.")
    var production = false
    @Option(
        help: ArgumentHelp(
            "The address of another service, such as `carillon apns simulate`: https://HOST:PORT; http:// is HTTP/2 without TLS.",
            valueName: "url"),
        transform: ServiceAddress.argument)
    var endpoint: ServiceAddress?
    @Option(
        help: ArgumentHelp(
            "A PEM file of certificate authorities to trust in place of the system's; the simulator writes authority.pem.",
            valueName: "file"))
    var ca: String?
    @Option(
        help: ArgumentHelp(
            "A proxy to the service: HOST:PORT or http://HOST:PORT for HTTP CONNECT, socks://HOST:PORT for SOCKS 5.",
            valueName: "host:port"))
    var proxy: String?
    @Flag(name: .customLong("port-2197"), help: "Push over port 2197, if a firewall blocks port 443.")
    var usesPort2197 = false
    @Option(help: ArgumentHelp("The time limit of one push.", valueName: "seconds"))
    var timeout: Double = 30

    func validate() throws {
        guard [sandbox, production, endpoint != nil].count(where: \.self) <= 1 else {
            throw ValidationError("Use only one of --sandbox, --production and --endpoint URL.")
        }
        guard !usesPort2197 || endpoint == nil else {
            throw ValidationError("--port-2197 is for Apple's service; set the port in --endpoint URL.")
        }
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("--timeout must be more than 0, and at most one day.")
        }
        if let proxy {
            do {
                _ = try Self.proxy(proxy)
            } catch {
                throw ValidationError(
                    "--proxy must be HOST:PORT, such as proxy.example.com:3128, or socks://HOST:PORT: it \(error.reason).")
            }
        }
    }

    /// The address for pushes and broadcasts.
    var push: ServiceAddress {
        endpoint
            ?? ServiceAddress(
                host: sandbox ? "api.sandbox.push.apple.com" : "api.push.apple.com", port: usesPort2197 ? 2197 : 443)
    }

    /// The address for the management of broadcast channels. A custom endpoint uses its own address, unless another option sets
    /// it.
    var management: ServiceAddress {
        if let endpoint { return endpoint }
        return sandbox
            ? ServiceAddress(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195)
            : ServiceAddress(host: "api-manage-broadcast.push.apple.com", port: 2196)
    }

    var isApple: Bool { endpoint == nil }

    /// Returns the configuration of a client. The command reports warnings itself, instead of the library.
    func configuration(
        _ credentials: APNsCredentials, to address: ServiceAddress? = nil
    ) throws -> APNsClient.Configuration {
        var configuration = APNsClient.Configuration(
            credentials: credentials, environment: APNsEnvironment(address ?? push))
        configuration.timeout = .milliseconds(Int64(timeout * 1000))
        configuration.connectTimeout = min(configuration.timeout, .seconds(10))
        configuration.proxy = try proxy.map { try Self.proxy($0) }
        configuration.trustRoots = try ca.map { try TrustedFile($0, of: "--ca").pem }
        configuration.logger = Logger(label: "carillon.apns", factory: { _ in SwiftLogNoOpLogHandler() })
        return configuration
    }

    /// Opens the first connection, so that a connection fault is reported once and at once.
    func connect(_ client: APNsClient, to address: ServiceAddress) async throws {
        do {
            try await client.warmUp(APNsEnvironment(address))
        } catch {
            var fault = CommandFault(error)
            if !address.isSecure { fault.message += "; if the service uses TLS, use https://\(address.place)" }
            throw fault
        }
    }

    private static func proxy(_ text: String) throws(CallAddress.Fault) -> APNsClient.Proxy {
        let isSOCKS = text.hasPrefix("socks://")
        let place = try HostPort(text.replacing(/^(http|socks):\/\//, with: "").replacing(/\/$/, with: ""))
        return isSOCKS ? .socks(host: place.host, port: place.port) : .http(host: place.host, port: place.port)
    }
}

extension APNsEnvironment {
    /// An environment with one address for all requests.
    init(_ address: ServiceAddress) {
        self = .custom(host: address.host, port: address.port, isSecure: address.isSecure)
    }
}
