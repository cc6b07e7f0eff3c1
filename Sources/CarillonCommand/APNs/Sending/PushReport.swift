import CarillonAPNs
import Foundation

/// Reports the result of one push, as text or as a line of JSON.
struct PushReport {
    enum Recipient {
        case token(TokenLine)
        case channel(String)
    }

    let recipient: Recipient
    let result: Result<APNsResponse, APNsError>

    var values: [String: OutputValue] {
        var values: [String: OutputValue] = ["event": "result", "outcome": .text(outcome)]
        switch recipient {
        case .token(let token):
            values["token"] = .text(token.deviceToken)
            values["line"] = token.line.map { .number(Int64($0)) }
        case .channel(let id): values["channel"] = .text(id)
        }
        switch result {
        case .success(let response):
            values["status"] = .number(Int64(response.status))
            values["id"] = response.id.map(OutputValue.text)
            values["uniqueID"] = response.uniqueID.map(OutputValue.text)
            values["requestID"] = response.requestID.map(OutputValue.text)
            if let rejection = response.rejection {
                values["reason"] = rejection.reason.map { .text($0.rawValue) }
                values["text"] = rejection.text.map(OutputValue.text)
                values["kind"] = .text(rejection.kind.name)
                values["invalidSince"] = rejection.invalidSince.map {
                    .number(Int64(($0.timeIntervalSince1970 * 1000).rounded()))
                }
            }
        case .failure(let error):
            values["error"] = .text(error.code.description)
            values["message"] = .text(error.sentence)
            values["mayHaveBeenProcessed"] = .flag(error.mayHaveBeenProcessed)
        }
        return values
    }

    private var outcome: String {
        switch result {
        case .success(let response): response.isAccepted ? "accepted" : "rejected"
        case .failure: "failed"
        }
    }

    var sentence: String {
        switch result {
        case .success(let response):
            guard let rejection = response.rejection else {
                let names = [
                    ("apns-id", response.id), ("apns-unique-id", response.uniqueID), ("apns-request-id", response.requestID),
                ]
                return "accepted  "
                    + names.compactMap { name, id in id.map { "\(name) \($0)" } }.joined(separator: "  ")
            }
            let since = rejection.invalidSince.map { ", since \($0.formatted(.iso8601))" } ?? ""
            return "refused  \(rejection.words)\(since). \(rejection.advice)"
        case .failure(let error):
            return "failed  \(error.code): \(error.sentence)"
                + (error.mayHaveBeenProcessed ? "; it may have arrived" : "; it was not sent")
        }
    }
}

extension APNsRejection.Kind {
    /// The stable name of the kind.
    var name: String {
        switch self {
        case .deadToken: "deadToken"
        case .fixRequest: "fixRequest"
        case .fixCredentials: "fixCredentials"
        case .slowDown: "slowDown"
        case .tryLater: "tryLater"
        case .unknown: "unknown"
        }
    }
}
