import ArgumentParser
import CarillonAPNs

/// Checks whether the service accepts the credentials: sends a push to a token that no device has.
enum AcceptanceCheck {
    /// The token of no device. A push service for tests can distinguish it from the token of an unknown device.
    static let token = "carillon apns check is no device".utf8.map { String($0, radix: 16) }.joined()

    static func finding(_ client: APNsClient, topic: String?) async -> CheckFinding {
        var notification = APNsNotification.background.expiration(.immediately)
        if let topic { notification = notification.topic(topic) }
        do {
            return finding(try await client.send(notification, to: token))
        } catch {
            return CheckFinding(
                subject: .credentials, verdict: .wrong, sentence: "there is no answer: \(error.sentence)",
                exitStatus: ExitStatus.code(of: error.code))
        }
    }

    static func finding(_ response: APNsResponse) -> CheckFinding {
        guard let rejection = response.rejection else {
            return CheckFinding(
                subject: .credentials, verdict: .ok,
                sentence: "accepted; so was the push to a token that does not exist, which Apple's service would refuse")
        }
        if rejection.reason == .badDeviceToken || rejection.reason == .deviceTokenNotForTopic || rejection.kind == .deadToken
        {
            return CheckFinding(
                subject: .credentials, verdict: .ok,
                sentence: "accepted: the answer to a token that does not exist was \(rejection.words), as it should be")
        }
        let isPassing = rejection.kind == .slowDown || rejection.kind == .tryLater
        return CheckFinding(
            subject: .credentials, verdict: .wrong,
            sentence: "\(isPassing ? "nobody knows" : "refused"): \(rejection.words). \(rejection.advice)",
            exitStatus: ExitStatus.code(of: rejection.kind))
    }
}
