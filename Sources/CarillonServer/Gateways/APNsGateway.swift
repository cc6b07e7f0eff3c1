import CarillonAPNs
import CarillonCore
import CarillonWire
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Apple's push service, with the push credentials of one app.
final class APNsGateway: PushGateway {
    private let client: APNsClient
    private let environment: APNsEnvironment
    private let rendering: PushRendering
    private let texts: AlertTexts
    private let app: AppSerial

    /// - Throws: `APNsError` if the push credentials cannot be used now.
    init(
        _ secret: GatewaySecret, queue: PushQueue, settings: GatewaySettings, rendering: PushRendering, texts: AlertTexts,
        logger: Logger
    ) throws {
        app = queue.app
        environment = queue.environment == .sandbox ? settings.sandbox : settings.production
        var configuration = APNsClient.Configuration(
            credentials: try secret.credentials(), bundleID: secret.bundleID, environment: environment)
        configuration.timeout = settings.timeout
        configuration.retryPolicy = .never
        // The app keeps no connection while it sends nothing.
        configuration.pool.minimum = 0
        configuration.queueLimit = 2 * GatewayBreaker.widest
        configuration.trustRoots = settings.authorities
        configuration.proxy = settings.proxy
        configuration.logger = logger
        client = try APNsClient(configuration)
        self.rendering = rendering
        self.texts = texts
    }

    func send(_ push: LeasedPush) async -> PushAnswer {
        do {
            let text = if case .alert = push.content { try await texts.text(of: app) } else { AlertText?.none }
            let response = try await client.send(rendering.notification(of: push, text), to: push.token.hexadecimal)
            guard let rejection = response.rejection else { return .taken }
            return PushAnswer(rejection, attempt: push.attempt)
        } catch let error as APNsError {
            return PushAnswer(error)
        } catch {
            return .notSent
        }
    }

    func close() async { await client.shutDown() }
}

extension PushAnswer {
    init(_ rejection: APNsRejection, attempt: Int) {
        let reason = rejection.reason?.rawValue ?? "\(rejection.status)"
        let wait = APNsRetryPolicy.recommendedDelay(.init(number: attempt, rejection: rejection))
        switch rejection.kind {
        case .deadToken where rejection.reason == .badDeviceToken: self = .tokenUnknownHere(reason: reason)
        case .deadToken:
            let since = rejection.invalidSince.map {
                Timestamp(milliseconds: Int64(($0.timeIntervalSince1970 * 1000).rounded(.down)))
            }
            self = .tokenDead(reason: reason, since: since)
        case .fixRequest where rejection.reason == .deviceTokenNotForTopic: self = .tokenOfAnotherApp(reason: reason)
        case .fixRequest: self = .wrong(reason: reason)
        case .fixCredentials: self = .credentialsRefused(reason: reason)
        case .slowDown, .tryLater:
            // Without a delay, the fault is in the provider token, which all pushes of the push queue share.
            self = wait.map { .later(reason: reason, seconds: $0.components.seconds) } ?? .credentialsRefused(reason: reason)
        case .unknown: self = .unknown(reason: reason, description: Self.description(of: rejection))
        }
    }

    /// Returns the status and the first 100 bytes of the body, on one line.
    private static func description(of rejection: APNsRejection) -> String {
        guard let body = rejection.text ?? rejection.reason?.rawValue else { return "\(rejection.status) without a body" }
        let line = String.UnicodeScalarView(
            body.unicodeScalars.map {
                switch $0.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: " "
                default: $0
                }
            })
        var start = String(line)
        while start.utf8.count > 100 { start.unicodeScalars.removeLast() }
        return "\(rejection.status): \(start)"
    }

    init(_ error: APNsError) {
        let reason = error.code.description
        switch error.code {
        case .notificationInvalid, .payloadTooLarge, .tokenInvalid: self = .wrong(reason: reason)
        case .credentialsInvalid, .configurationInvalid: self = .credentialsRefused(reason: reason)
        case _ where error.mayHaveBeenProcessed: self = .unanswered(reason: reason)
        case .cancelled, .shutDown, .queueFull: self = .notSent
        default: self = .unreachable(reason: reason)
        }
    }
}
